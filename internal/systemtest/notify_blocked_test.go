package systemtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// blockedCase is a chain that the policy ends, and the notification about it.
type blockedCase struct {
	env []string
	// before runs another chain first, which spends the budget.
	before         bool
	title, because string
	rule           escalation.Rule
}

func blockedCases() map[string]blockedCase {
	const blocked, spent = "Claude Ops: an escalation was blocked (jellyfin)", "Claude Ops: a budget is spent"
	return map[string]blockedCase{
		"max_tier": {
			env:   []string{"CLAUDEOPS_MAX_TIER=1"},
			title: blocked, because: "tier 1 asks for tier 2, and tier 1 is the highest allowed", rule: escalation.RuleMaxTier,
		},
		"escalation_limit": {
			env:   []string{"CLAUDEOPS_ESCALATION_LIMIT=0/1h"},
			title: blocked, because: "tier 2 cannot start: 0 chains have escalated within 1 h, and 0 are allowed", rule: escalation.RuleEscalationLimit,
		},
		"chain_budget": {
			env:   []string{"CLAUDEOPS_CHAIN_BUDGET_USD=0.0015"},
			title: spent + " (jellyfin)", because: "tier 2 cannot start: the chain's budget", rule: escalation.RuleChainBudget,
		},
		"day_budget": {
			env: []string{"CLAUDEOPS_DAY_BUDGET_USD=0.0015", "CLAUDEOPS_MAX_TIER=1"}, before: true,
			title: spent, because: "tier 1 cannot start: the budget of all chains for this day (UTC)", rule: escalation.RuleDayBudget,
		},
	}
}

// TestBlockedChainNotifies ends chains by a rule of the policy while one of two notification targets is down. It
// kills the worker before that target is back. Each target must get the message once.
func TestBlockedChainNotifies(t *testing.T) {
	t.Parallel()
	temporalServer, address := startTemporalAt(t)
	for name, tt := range blockedCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, temporalServer, address, "blocked-"+name)
		})
	}
}

func (tt blockedCase) run(t *testing.T, temporalServer client.Client, address, queue string) {
	away, well := notifytest.Start(t), notifytest.Start(t)
	// Tier 1 costs $0.001. What remains of each budget is less than any call costs.
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(asksFor(2)).Using(claudesim.Usage{Input: 10_000}))))
	environ := environment(t, claude, append(tt.env, "CLAUDEOPS_TASK_QUEUE="+queue, "CLAUDEOPS_LOG_LEVEL=debug", "CLAUDEOPS_NOTIFY_URLS="+away.Generic()+","+well.Apprise())...)
	s := siteOf(t, temporalServer, environ)
	first := startWorker(t, environ, address)
	if tt.before {
		awaitOneDay(t)
		_, err := s.finish(s.startAs(queue+"-before", nil))
		require.NoError(t, err)
	}
	toldBefore := len(well.Received())
	away.Leave()
	run := s.startAs(queue, nil)
	records := s.records()
	delivered := func(number int) ([]string, error) {
		return records.Delivered(t.Context(), fmt.Sprintf("%s/notification/%d", run.GetRunID(), number))
	}
	require.Eventually(t, func() bool {
		places, err := delivered(1)
		return err == nil && len(places) == 1 && away.Refusals() > 1
	}, testTimeout, 20*time.Millisecond)
	first.kill(t)
	away.ComeBack()

	second := startWorker(t, environ, address)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)
	require.Contains(t, chain.Events[len(chain.Events)-2].Message, "("+escalation.InWords(tt.rule)+"): ")
	requireRecorded(t, s, chain)
	places, err := delivered(1)
	require.NoError(t, err)
	require.Len(t, places, 2)
	again, err := delivered(2)
	require.NoError(t, err)
	require.Empty(t, again, "nobody is told of the same twice, in other words")

	require.Len(t, well.Received(), toldBefore+1, "once, whatever the other one and the workers did")
	require.Len(t, away.Received(), toldBefore+1, "once, when it was back")
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(well.Received()[toldBefore]), &sent))
	require.Equal(t, tt.title, sent["title"])
	require.Contains(t, sent["body"], tt.because)
	require.Contains(t, sent["body"], "claudeops chain "+queue)
	require.Equal(t, sent["title"]+"\n\n"+sent["body"], away.Received()[toldBefore])

	logged := first.said.text() + second.said.text()
	require.Contains(t, logged, "502 Bad Gateway", "attempts that fail are logged")
	for place, text := range map[string]string{
		"log": logged, "history": historyOf(t, s, run), "records": strings.Join(places, " "), "message": sent["title"] + sent["body"],
	} {
		require.NotContains(t, text, notifytest.Secret, place)
	}
}
