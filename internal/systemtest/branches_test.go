package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// These tests cover branches of a chain that no other test takes. Each branch has a short chain of its own, so that
// its history can be replayed. Several chains share a worker.

// writing returns the turn of a tier that the chain asks for its handoff. The tier writes content to the handoff
// file.
func writing(chainID, content string) claudesim.Turn {
	file := activities.ChainsDir + "/" + activities.ChainDirName(chainID) + "/" + activities.HandoffFile
	return claudesim.On(claudesim.Match{Prompt: file},
		claudesim.Call("Write", map[string]any{"file_path": file, "content": content}), claudesim.Say("done")).Named(chainID)
}

// requireEnded waits for the end of a chain. It checks the outcome, the records and the texts in the Web UI, and
// records the history if that is requested.
func requireEnded(t *testing.T, s *site, run client.WorkflowRun, outcome escalation.Outcome) escalation.Chain {
	t.Helper()
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, outcome, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	requireRecorded(t, s, chain)
	requireExplained(t, s, run, chain)
	recordHistory(t, s, run, run.GetID())
	return chain
}

// requireRule checks that the chain's last decision names the rule.
func requireRule(t *testing.T, chain escalation.Chain, rule escalation.Rule) {
	t.Helper()
	var message string
	for _, event := range chain.Events {
		if event.Kind == escalation.EventDecision {
			message = event.Message
		}
	}
	require.Contains(t, message, "("+escalation.InWords(rule)+"): ")
}

// requireRechecked waits for the end of a chain that looked again after a wait.
func requireRechecked(t *testing.T, s *site, run client.WorkflowRun, outcome escalation.Outcome) {
	t.Helper()
	chain := requireEnded(t, s, run, outcome)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, escalation.PurposeRecheck, chain.Sessions[1].Purpose)
}

// TestChainBranchesOfHandoffs has Tier 1 write a handoff, because its verdict lacks required fields. One handoff is
// valid and one is invalid.
func TestChainBranchesOfHandoffs(t *testing.T) {
	t.Parallel()
	const complete = `{"schema_version": 1, "recommended_tier": 2, "summary": "the upstream is gone", "services_affected": ["jellyfin"],
		"check_results": [{"service": "jellyfin", "check_type": "http", "status": "down"}], "cooldown_state": {}}`
	claude := simtest.Install(t, claudesim.Play(
		writing("handoff_asked", complete), writing("handoff_invalid", `{"schema_version": 2}`),
		concluding("haiku", asksFor(2)), concluding("sonnet", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_CONTINUITY=handoff"))

	chain := requireEnded(t, s, s.startAs("handoff_asked", nil), escalation.OutcomeResolved)
	require.Len(t, chain.Sessions, 3)
	wrote := chain.Sessions[1]
	require.Equal(t, escalation.PurposeHandoff, wrote.Purpose)
	require.Equal(t, chain.Sessions[0].ID, wrote.ParentID)
	require.Positive(t, wrote.CostUSD)
	requests := simtest.Requests(t, claude)
	require.Contains(t, requests[len(requests)-1].Prompts()[0], "the upstream is gone")

	chain = requireEnded(t, s, s.startAs("handoff_invalid", nil), escalation.OutcomeNeedsHuman)
	require.Len(t, chain.Sessions, 2)
	require.Contains(t, chain.Reason, "tier 1 left an invalid handoff: schema_version is 2")
	requireRule(t, chain, escalation.RuleHandoffInvalid)
}

// TestChainBranchesOfLimits runs a chain that the escalation limit stops, a chain that exceeds its budget, and a chain
// whose conversation no longer fits the model's window.
func TestChainBranchesOfLimits(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	// At ten cents per million tokens this call costs 0.95 cents. What remains of a budget of one cent is less than
	// any call costs.
	costly := claudesim.Conclude(asksFor(2)).Using(claudesim.Usage{Input: 95_000})
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{First: "at great cost"}, costly),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "## Handoff"}, claudesim.Conclude(resolved())),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Fail(http.StatusBadRequest, claudesim.PromptTooLong)),
		concluding("haiku", asksFor(2))))
	open := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_TASK_QUEUE=open"))
	closed := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_TASK_QUEUE=closed", "CLAUDEOPS_ESCALATION_LIMIT=0/1h"))

	chain := requireEnded(t, closed, closed.startAs("escalation_limit", nil), escalation.OutcomeNeedsHuman)
	require.Len(t, chain.Sessions, 1)
	requireRule(t, chain, escalation.RuleEscalationLimit)

	chain = requireEnded(t, open, open.startAs("chain_budget", map[string]any{"budget_usd": 0.01, "prompt": "at great cost"}),
		escalation.OutcomeNeedsHuman)
	require.Len(t, chain.Sessions, 1)
	require.InDelta(t, 0.0095, chain.CostUSD, 1e-9)
	requireRule(t, chain, escalation.RuleChainBudget)

	chain = requireEnded(t, open, open.startAs("resume_failed", nil), escalation.OutcomeResolved)
	require.Len(t, chain.Sessions, 3)
	require.Equal(t, escalation.SessionResumeFailed, chain.Sessions[1].Status)
	require.Equal(t, escalation.ReasonResumeFailed, chain.Sessions[2].ContinuityReason)
}

// TestChainBranchesOfWaits runs four chains. One repairs two services. One waits for one of these services until the
// first chain tells it that the fault is gone. One waits for the cooldown and then finds everything healthy. One is
// cancelled while it waits for the cooldown.
func TestChainBranchesOfWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repairing, release := filepath.Join(dir, "repairing"), filepath.Join(dir, "release")
	asks := func(services ...string) claudesim.Reply {
		verdict := asksFor(2)
		verdict.Services = services
		return claudesim.Conclude(verdict)
	}
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "The chain has waited"}, claudesim.Conclude(allWell())),
		claudesim.On(claudesim.Match{Model: "sonnet"},
			claudesim.Bash(fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.1; done", repairing, release)), claudesim.Conclude(restarted())),
		claudesim.On(claudesim.Match{First: "everything"}, asks("jellyfin", "nas")),
		claudesim.On(claudesim.Match{First: "the nas"}, asks("nas")),
		claudesim.Always(asks("jellyfin"))))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_TIER2_TOOLS=Bash",
		"CLAUDEOPS_RESTART_LIMIT=1/60s", "CLAUDEOPS_COOLDOWN_MAX_WAIT=75s", "CLAUDEOPS_ESCALATION_LIMIT=none"))

	first := s.startAs("repairs", map[string]any{"prompt": "look at everything"})
	require.Eventually(t, exists(repairing), testTimeout, 50*time.Millisecond)
	// Without force, these looks would leave the fault to the chain that already takes care of it.
	busy := s.startAs("service_busy", map[string]any{"prompt": "look at the nas", "force": true})
	require.Equal(t, escalation.RuleServiceBusy, s.awaitWait("service_busy").Wait.Rule)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	_, err := s.finish(first)
	require.NoError(t, err)
	// Its second look finds all well. That would heal the incidents of looks that begin before.
	requireRechecked(t, s, busy, escalation.OutcomeResolved)

	cooling := s.startAs("cooldown_healthy", map[string]any{"force": true})
	cancelled := s.startAs("cancelled_in_a_wait", map[string]any{"force": true})
	require.Equal(t, escalation.RuleCooldown, s.awaitWait("cancelled_in_a_wait").Wait.Rule)
	require.NoError(t, s.client.CancelWorkflow(t.Context(), cancelled.GetID(), cancelled.GetRunID()))
	_, err = s.finish(cancelled)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := s.query(cancelled)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	requireRecorded(t, s, chain)
	recordHistory(t, s, cancelled, cancelled.GetID())

	requireRechecked(t, s, cooling, escalation.OutcomeResolved)
	locks, err := s.records().ServiceLocks(t.Context())
	require.NoError(t, err)
	require.Empty(t, locks)
}
