package systemtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// restarted returns the verdict of a repair that restarted jellyfin.
func restarted() escalation.Verdict {
	verdict := resolved()
	verdict.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin", Succeeded: true}}
	return verdict
}

// awaitWait waits until a chain is in a wait, and returns the chain.
func (s *site) awaitWait(id string) escalation.Chain {
	s.t.Helper()
	var chain escalation.Chain
	require.Eventually(s.t, func() bool {
		answer, err := s.client.QueryWorkflow(s.t.Context(), id, "", workflows.ChainQuery)
		return err == nil && answer.Get(&chain) == nil && chain.Wait != nil
	}, testTimeout, 50*time.Millisecond)
	return chain
}

// TestChainWaitsForACooldownAcrossARestart uses up the restart limit. A second chain waits for the next permitted
// restart, while its worker is stopped and another one is started.
func TestChainWaitsForACooldownAcrossARestart(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "The chain has waited"}, claudesim.Conclude(asksFor(2))).Named("recheck"),
		concluding("haiku", asksFor(2)), concluding("sonnet", restarted())))
	environ := environment(t, claude, "CLAUDEOPS_RESTART_LIMIT=1/60s", "CLAUDEOPS_COOLDOWN_MAX_WAIT=5m", "CLAUDEOPS_ESCALATION_LIMIT=none")
	first := startSite(t, temporalServer, environ)
	chain, err := first.finish(first.startAs("uses-it-up", nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	repairedAt := chain.Last().EndedAt

	run := first.startAs("waits", nil)
	waiting := first.awaitWait("waits")
	require.Equal(t, escalation.RuleCooldown, waiting.Wait.Rule)
	require.NoError(t, first.stop())

	second := startSite(t, temporalServer, environ)
	chain, err = second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 3)
	require.Equal(t, escalation.PurposeRecheck, chain.Sessions[1].Purpose)
	require.False(t, chain.Sessions[1].StartedAt.Before(repairedAt.Add(time.Minute)), "nothing ran before the slot")
	requireRecorded(t, second, chain)
	recordHistory(t, second, run, "cooldown")
}

// TestChainEscalatedByHand ends a cooldown of hours with the escalation signal, in the JSON that people type.
func TestChainEscalatedByHand(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("sonnet", restarted()), concluding("opus", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_RESTART_LIMIT=0/4h", "CLAUDEOPS_COOLDOWN_OVERRIDES=jellyfin:restart=1/4h;jellyfin:redeployment=0/24h"))
	_, err := s.finish(s.startAs("uses-it-up-before", nil))
	require.NoError(t, err)
	run := s.startAs("by-hand", nil)
	s.awaitWait("by-hand")
	for _, payload := range []string{`{"to_tier":9}`, `{"to_tier":3,"force":true,"reason":"users complain","guidance":"take the proxy down first"}`} {
		require.NoError(t, s.client.SignalWorkflow(t.Context(), "by-hand", "", workflows.EscalateSignalName, json.RawMessage(payload)))
	}
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, escalation.TierFullRepair, chain.Last().Tier)
	require.True(t, chain.Last().Forced, "the record says so")
	launches := simtest.Launches(t, claude)
	require.Contains(t, launches[len(launches)-1].Stdin, "take the proxy down first")
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "escalated_by_hand")
}

// twoIssues returns a verdict that asks for the repair of two unrelated issues.
func twoIssues() escalation.Verdict {
	found := asksFor(2)
	found.Services = []string{"jellyfin", "nas"}
	found.Issues = []escalation.Issue{
		{Summary: "jellyfin answers 502", Services: []string{"jellyfin"}, Severity: escalation.SeverityCritical},
		{Summary: "a disk of the nas is full", Services: []string{"nas"}, Severity: escalation.SeverityWarning},
	}
	return found
}

// TestChainOfSeveralIssues checks that a chain splits, and that each issue's chain forks the observer's conversation.
func TestChainOfSeveralIssues(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", twoIssues()), concluding("sonnet", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude))
	run := s.startAs("several", nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Issues)
	require.Len(t, chain.Issues, 2)
	records := s.records()
	for _, issue := range chain.Issues {
		require.Equal(t, escalation.OutcomeResolved, issue.Outcome)
		sessions, err := records.Chain(t.Context(), issue.ChainID)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, chain.Sessions[0].ID, sessions[0].ParentID)
		require.Equal(t, escalation.ContinuityResume, sessions[0].Continuity)
	}
	line, err := records.Forward(t.Context(), chain.Sessions[0].ID)
	require.NoError(t, err)
	require.Len(t, line, 3, "the observer, and one repair for each issue")
	locks, err := records.ServiceLocks(t.Context())
	require.NoError(t, err)
	require.Empty(t, locks)
	recordHistory(t, s, run, "issues")
}

// TestChainOfOneIssueIsCancelled cancels the repair of one of two issues by hand. The chain that found the issue must
// report it as aborted, not as failed, and must include its cost.
func TestChainOfOneIssueIsCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, hold := filepath.Join(dir, "begun"), filepath.Join(dir, "hold")
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", twoIssues()), claudesim.On(claudesim.Match{Model: "sonnet"},
		claudesim.Bash("touch "+begun+"; while [ -e "+hold+" ]; do sleep 0.05; done"), claudesim.Conclude(resolved()))))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_MAX_PARALLEL_ISSUES=1"))
	run := s.startAs("one_issue_cancelled", nil)
	require.Eventually(t, func() bool {
		_, err := os.Stat(begun)
		return err == nil
	}, testTimeout, 20*time.Millisecond)
	require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID()+"-issue-1", ""))
	require.Eventually(t, func() bool {
		chain, ok := s.tryQuery(run)
		return ok && len(chain.Issues) > 0 && chain.Issues[0].Outcome != ""
	}, testTimeout, 20*time.Millisecond)
	require.NoError(t, os.Remove(hold))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Equal(t, escalation.OutcomeAborted, chain.Issues[0].Outcome)
	require.Equal(t, escalation.OutcomeResolved, chain.Issues[1].Outcome)
	for _, issue := range chain.Issues {
		sessions, err := s.records().Chain(t.Context(), issue.ChainID)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Positive(t, issue.CostUSD)
		require.InDelta(t, sessions[0].CostUSD, issue.CostUSD, 1e-9)
	}
	recordHistory(t, s, run, run.GetID())
}

// awaitOneDay waits for the next UTC day if the current day ends within three minutes. The daily budget is then the
// same for the whole test.
func awaitOneDay(t *testing.T) {
	t.Helper()
	const enough = 3 * time.Minute
	if left := 24*time.Hour - time.Duration(time.Now().Unix())*time.Second%(24*time.Hour); left < enough {
		t.Logf("waiting %s for the next day", left)
		time.Sleep(left)
	}
}

// TestChainsReserveTheDaysBudget starts three chains at once. The daily budget is enough for two. The third one waits
// until the others have ended, because they spend less than was reserved for them.
func TestChainsReserveTheDaysBudget(t *testing.T) {
	t.Parallel()
	awaitOneDay(t)
	finish := filepath.Join(t.TempDir(), "finish")
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(
		claudesim.Bash("until [ -e "+finish+" ]; do sleep 0.05; done"), claudesim.Conclude(allWell()))))
	s := startSite(t, startTemporal(t), environment(t, claude, append(toolsAllowed(),
		"CLAUDEOPS_DAY_BUDGET_USD=1", "CLAUDEOPS_TIER1_BUDGET_USD=0.5", "CLAUDEOPS_COOLDOWN_MAX_WAIT=15s")...))
	runs := []client.WorkflowRun{s.startAs("a", nil), s.startAs("b", nil), s.startAs("c", nil)}
	var third client.WorkflowRun
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(runs, func(run client.WorkflowRun) bool {
			chain, ok := s.tryQuery(run)
			third = run
			return ok && chain.Wait != nil && chain.Wait.Rule == escalation.RuleDayBudget
		})
	}, testTimeout, 50*time.Millisecond, "none waits")
	require.NoError(t, os.WriteFile(finish, nil, 0o600))
	for _, run := range runs {
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
		waited := slices.ContainsFunc(chain.Events, func(event escalation.Event) bool {
			return event.Kind == escalation.EventWaitStarted &&
				strings.Contains(event.Message, "the budget of all chains for this day (UTC) of $1.00 is spent or reserved ($1.00)")
		})
		require.Equal(t, run == third, waited)
		if !waited {
			require.InDelta(t, 0.5, chain.Sessions[0].BudgetUSD, 1e-9)
		}
	}
	recordHistory(t, s, third, "day_budget")
}
