package supervisor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/workflows"
)

// The fault tests kill and cut off what a chain depends on, at random moments, and hold the
// supervisor to its promise: no crash loses a conversation or runs a repair twice. Each prints its
// figures in one line that begins with "faults:". `make faults` runs them at full length.
var (
	faultChains = flag.Int("faults.chains", 6, "chains that run while their worker is killed")
	faultKills  = flag.Int("faults.kills", 2, "times that the Temporal server is killed")
	faultLong   = flag.Bool("faults.long", false, "run also what takes minutes of waiting")
	faultSeed   = flag.Uint64("faults.seed", 0, "seed of the random moments; 0 chooses one")
)

// startedAgain is in every prompt of a session that had a process before.
const startedAgain = "ended before its work was done"

// What the ids of chains begin with whose repair takes long: longer than it takes to start a worker again,
// longer than a worker may be without Temporal, and only when it has acted.
const (
	longChain      = "long-"
	slowChain      = "slow-"
	lingeringChain = "lingering-"
)

// newDice returns a source of random moments, and the seed with which -faults.seed repeats them.
func newDice() (dice *rand.Rand, seed uint64) {
	if seed = *faultSeed; seed == 0 {
		seed = rand.Uint64() //nolint:gosec // moments, no secrets
	}
	return rand.New(rand.NewPCG(seed, 0)), seed //nolint:gosec // the same
}

// moment returns a random time of at most limit.
func moment(dice *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(limit)))
}

// faultSite is an installation whose repairs leave a trace, watched from outside.
type faultSite struct {
	*site
	environ []string
	claude  string
	// effects is a directory with a file for each chain, to which its repair adds a line.
	effects string
	// mark is in the environment of the workers and of all that comes of them.
	mark  string
	watch *watch
}

// newFaultSite makes an installation without a worker. Its chains need Tier 2, which repairs once.
func newFaultSite(t *testing.T, c client.Client, more ...string) *faultSite {
	t.Helper()
	f := &faultSite{effects: t.TempDir()}
	f.claude = simtest.Install(t, claudesim.Play(repairingOnce(f.effects)...))
	f.mark = "FAULTS_MARK=" + f.effects
	f.environ = environment(t, f.claude, append([]string{
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER1_ALLOWED_TOOLS=Bash",
		"CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_TIER2_ALLOWED_TOOLS=Bash",
		"CLAUDEOPS_ESCALATION_LIMIT=none", fmt.Sprintf("CLAUDEOPS_MAX_CONCURRENT_AGENTS=%d", agentsAtOnce),
		"CLAUDEOPS_PASS_ENV=FAULTS_MARK", f.mark,
	}, more...)...)
	cfg, err := config.Load(f.environ)
	require.NoError(t, err)
	f.site = &site{t: t, cfg: cfg, client: c}
	f.watch = startWatch(t, f.claude)
	return f
}

const (
	// agentsAtOnce is how many agents of a fault site work at a time.
	agentsAtOnce = 4
	// shortestAgent is how long each of them works at least.
	shortestAgent = 300 * time.Millisecond
)

// repairingOnce is a Tier 2 that must not act twice, and that goes by its prompt: only where it is told
// of an earlier process does it look first whether that one has acted.
func repairingOnce(effects string) []claudesim.Turn {
	file := `"` + effects + `/$CLAUDEOPS_CHAIN_ID"`
	long := `case "$CLAUDEOPS_CHAIN_ID" in ` + longChain + `*) sleep 3;; ` + slowChain + `*) sleep 20;; esac`
	lingering := `case "$CLAUDEOPS_CHAIN_ID" in ` + lingeringChain + `*) sleep 20;; esac`
	act := long + `; sleep 0.3; echo "$CLAUDEOPS_SESSION_ID" >> ` + file + `; sleep 0.3; ` + lingering
	turns := []claudesim.Turn{
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: startedAgain},
			claudesim.Bash("test -s "+file+" || { "+act+"; }"), claudesim.Conclude(resolved())),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash(act), claudesim.Conclude(resolved())),
	}
	// Each chain has a service of its own, or one would wait for the other.
	for i := range max(*faultChains, 10) {
		own := asksFor(2)
		own.Services = []string{serviceOf(i)}
		turns = append(turns, claudesim.On(claudesim.Match{Model: "haiku", First: "`" + serviceOf(i) + "`"},
			claudesim.Bash("sleep 0.3"), claudesim.Conclude(own)))
	}
	return turns
}

// serviceOf is the service of the chains that run one after the other as the i-th.
func serviceOf(i int) string { return fmt.Sprintf("service-%d", i) }

// run starts a chain, or finds it started, and returns how it ended. It outlasts a Temporal
// server that is away.
func (f *faultSite) run(ctx context.Context, id, service string) (chain escalation.Chain, err error) {
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: f.cfg.Worker.TaskQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	for started := false; ; {
		if !started {
			_, err = f.client.ExecuteWorkflow(ctx, options, workflows.ChainWorkflow, map[string]any{"services": []string{service}})
			started = err == nil || temporal.IsWorkflowExecutionAlreadyStartedError(err)
		}
		if started {
			err = f.client.GetWorkflow(ctx, id, "").Get(ctx, &chain)
		}
		if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); err == nil || ended {
			return chain, err
		}
		select {
		case <-ctx.Done():
			return chain, fmt.Errorf("chain %s did not end: %w", id, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// requireUnharmed holds chains that have ended to the promise, and returns what there is to tell.
// Nothing of the installation runs any more.
func (f *faultSite) requireUnharmed(t *testing.T, chains []escalation.Chain) (figures string) {
	t.Helper()
	seen := f.watch.stop(t)
	seen.requireAlone(t)
	records := f.records()
	sessions, unseen, again, most := 0, 0, 0, 0
	for _, chain := range chains {
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s: %s", chain.ID, chain.Reason)
		f.requireActedOnce(t, chain)
		requireRecordedOnce(t, records, chain)
		for i := range chain.Sessions {
			sessions++
			again += chain.Sessions[i].Attempts - 1
			most = max(most, chain.Sessions[i].Attempts)
			if len(seen.of(chain.Sessions[i].SessionID)) == 0 {
				unseen++
			}
		}
	}
	open, err := records.Running(t.Context())
	require.NoError(t, err)
	require.Empty(t, open, "no record may be left open")
	var left []string
	require.Eventually(t, func() bool { left = seen.leftOver(t, f.mark); return len(left) == 0 },
		testTimeout, 100*time.Millisecond, "processes are left: %q", left)
	// A machine that is busy beyond measure may hide an agent for all its life, but not many; and while
	// the watcher stood still, nobody saw those that began and ended.
	hidden := agentsAtOnce * int(seen.Blind/shortestAgent)
	require.LessOrEqual(t, unseen, max(1, sessions/50)+hidden, "the watcher must have seen the sessions' agents")
	launches := len(simtest.Launches(t, f.claude))
	require.GreaterOrEqual(t, len(seen.Sightings)+hidden, launches*9/10, "the watcher must not have missed agents")
	return fmt.Sprintf("chains=%d sessions=%d sessions_unseen=%d repeated_attempts=%d most_attempts=%d agents_started=%d agents_seen=%d "+
		"at_once=0 acted_twice=0 not_acted=0 records_open=0 processes_left=0 looks=%d longest_blind=%s",
		len(chains), sessions, unseen, again, most, launches, len(seen.Sightings), seen.Looks, seen.Blind.Round(time.Millisecond))
}

// requireActedOnce wants exactly one line in the chain's file.
func (f *faultSite) requireActedOnce(t *testing.T, chain escalation.Chain) {
	t.Helper()
	effect, err := os.ReadFile(filepath.Join(f.effects, chain.ID))
	require.NoError(t, err, "%s did not repair", chain.ID)
	require.Equal(t, 1, strings.Count(string(effect), "\n"), "%s: %q", chain.ID, effect)
}

// requireRecordedOnce wants one closed record for each session of the chain, and no other.
func requireRecordedOnce(t *testing.T, records *store.Store, chain escalation.Chain) {
	t.Helper()
	recorded, err := records.Chain(t.Context(), chain.ID)
	require.NoError(t, err)
	require.Equal(t, asJSON(t, chain.Sessions), asJSON(t, recorded))
	ids := map[string]bool{}
	for i := range recorded {
		ids[recorded[i].SessionID] = true
		require.NotEqual(t, escalation.SessionRunning, recorded[i].Status)
	}
	require.Len(t, ids, len(recorded))
	require.Len(t, recorded, 2, "%s: a tier may be repeated in its own session only", chain.ID)
}
