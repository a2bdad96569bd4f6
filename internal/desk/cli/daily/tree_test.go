package daily

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestWriteTree(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	WriteTree(&b, chaintest.Clock, chaintest.Climbed())
	WriteLineage(&b, "Forward:", chaintest.Climbed().Sessions)
	chaintest.RequireGolden(t, "tree.txt", b.Bytes())
}

func TestSessionsThatWereLeftOutAreTold(t *testing.T) {
	t.Parallel()
	chain := chaintest.Climbed()
	require.Empty(t, earlierOf(chain))
	chain.Earlier = escalation.Earlier{Sessions: 1, Cost: escalation.Cost{CostUSD: 0.004}}
	require.Equal(t, "… 1 earlier session, $0.0040: in the records", earlierOf(chain))

	chain.Earlier, chain.CostUSD = escalation.Earlier{Sessions: 40, Cost: escalation.Cost{CostUSD: 1.2}}, chain.CostUSD+1.2
	var b bytes.Buffer
	WriteTree(&b, chaintest.Clock, chain)
	require.Contains(t, b.String(), "(jellyfin)\n… 40 earlier sessions, $1.20: in the records\n├── Session #18 ")
	require.Contains(t, b.String(), "Total: $3.70  more than 7m47s\n", "how long those took is not known here")
}

func TestTreeListsUnknownServices(t *testing.T) {
	t.Parallel()
	chain := chaintest.Climbed()
	chain.UnknownServices = []string{"tv", "ra\x1bdio"}
	var b bytes.Buffer
	WriteTree(&b, chaintest.Clock, chain)
	require.Contains(t, b.String(), "(jellyfin)\nNot in the services file: tv, radio\n├── Session #18 ")
}

func TestTreeShowsReviews(t *testing.T) {
	t.Parallel()
	chain := chaintest.Climbed()
	proposed := chaintest.Objected()
	proposed.PullRequest = "https://github.com/acme/infra/pull/7"
	chain.Reviews = []escalation.Review{proposed}
	chain.Reviewed = escalation.ReviewTotals{Found: 3, Fixed: 2, ReviewCostUSD: 0.3, CostPerFixUSD: 0.15}
	var b bytes.Buffer
	WriteTree(&b, chaintest.Clock, chain)
	require.Contains(t, b.String(), "        Pull request: https://github.com/acme/infra/pull/7\n")
	require.Contains(t, b.String(), "    Review of claudeops/chain-42 (verdict not ready, checks passed): not approved: findings block: P1 wrong-port")
	require.Contains(t, b.String(), "        P1 wrong-port (compose.yaml:4): ]0;owned[2J<b>take</b> over\n")
	require.Contains(t, b.String(), "    Reviews: 2 of 3 findings fixed, reviews cost $0.30, $0.15 for each fixed\n")
}

func TestASessionThatRunsIsShownWithWhatItHasComeTo(t *testing.T) {
	t.Parallel()
	now := operations.Snapshot{Chain: chaintest.Working(), Live: true, Progress: chaintest.ToolsInFlight(), Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 2, Failure: chaintest.HostileFailure}}
	now.Chain.ID = "chain-42"
	var b bytes.Buffer
	writeSnapshot(&b, chaintest.Clock, now, deniedCalls)
	chaintest.RequireGolden(t, "tree-running.txt", b.Bytes())

	b.Reset()
	now.Chain.Sessions[1].StartedAt = chaintest.Noon.Add(time.Minute)
	writeSnapshot(&b, chaintest.Clock, now, deniedCalls)
	require.Contains(t, b.String(), "  0.0s  … running", "another clock is ahead")

	b.Reset()
	now.Chain.Sessions[1].StartedAt = chaintest.Noon.Add(-72 * time.Hour)
	WriteTree(&b, chaintest.Clock, now.Chain)
	require.NotContains(t, b.String(), "72h", "nobody knows until when a session of the records ran")
}
