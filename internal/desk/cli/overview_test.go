package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestOverview shows chains that work, and chains that wait for each possible reason, on a real server.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	environ := slices.Concat(s.environ, []string{"CLAUDEOPS_DAY_BUDGET_USD=3"})
	records := clitest.OpenRecords(t, environ)
	locked := chaintest.Repairing()
	locked.ChainID, locked.Scope = "chain-holder", []string{"jellyfin"}
	policy := escalation.Policy{Tiers: []escalation.TierPolicy{{}, {BudgetUSD: 0.5}, {}}}
	_, err := records.OpenSession(t.Context(), locked, escalation.AdmissionRequest{Services: locked.Scope}, policy)
	require.NoError(t, err)

	waits := func(rule escalation.Rule) escalation.Chain {
		chain := chaintest.Pausing()
		chain.Wait.Rule = rule
		return chain
	}
	progress := chaintest.ToolsInFlight()
	s.plays(t, "chain-works", scene{Chain: chaintest.Working(), Progress: progress}, scene{})
	s.plays(t, "chain-gate", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{})
	s.plays(t, "chain-cooldown", scene{Chain: waits(escalation.RuleCooldown)}, scene{})
	s.plays(t, "chain-busy", scene{Chain: waits(escalation.RuleServiceBusy)}, scene{})
	s.plays(t, "chain-budget", scene{Chain: waits(escalation.RuleDayBudget)}, scene{})
	s.plays(t, "chain-queued", scene{Chain: chaintest.Working(), Progress: progress, Queue: "nobody"}, scene{})
	issues := chaintest.Working()
	issues.Sessions, issues.Issues = issues.Sessions[:1], []escalation.IssueChain{{ChainID: "chain-issue"}, {ChainID: "x", Outcome: "resolved"}}
	s.plays(t, "chain-issues", scene{Chain: issues}, scene{})
	patiently(t, func() error {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "chain-alone", TaskQueue: "nobody"}, workflows.ChainWorkflow)
		return err
	})

	host := operations.New(operations.Options{Environ: environ, Clock: chaintest.Clock, Patience: time.Second, Masked: func() {}})
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	var now operations.Now
	doing := "Bash]0;owned  ./jellyfin status[2J" // without what controls a terminal
	require.Eventually(t, func() bool {
		now = host.Overview.Now(t.Context())
		works := slices.ContainsFunc(now.Work.Chains, func(chain operations.WorkingChain) bool { return chain.Doing == doing })
		unanswered := 0 // by a chain whose worker is slow; two have none
		for _, wait := range now.Waits.Chains {
			if wait.Kind == operations.WaitWorker {
				unanswered++
			}
		}
		return works && len(now.Gates.Gates) == 1 && len(now.Work.Chains) == 2 && len(now.Waits.Chains) == 6 && unanswered == 2
	}, clitest.Timeout, clitest.Look)
	require.Empty(t, now.Gates.Problem+now.Work.Problem+now.Waits.Problem+now.Incidents.Problem+now.Day.Problem+now.Cycles.Problem)
	require.Equal(t, 8, now.Work.Running)

	byID := map[string]operations.WaitingChain{}
	for _, wait := range now.Waits.Chains {
		byID[wait.ChainID] = wait
	}
	kinds := map[string]operations.WaitKind{}
	for id, wait := range byID {
		kinds[id] = wait.Kind
	}
	require.Equal(t, map[string]operations.WaitKind{
		"chain-gate": operations.WaitGate, "chain-cooldown": operations.WaitCooldown, "chain-busy": operations.WaitService,
		"chain-budget": operations.WaitBudget, "chain-queued": operations.WaitWorker, "chain-alone": operations.WaitWorker,
	}, kinds)
	require.Equal(t, "chain-gate", now.Waits.Chains[0].ChainID, "people come first")
	require.Equal(t, chaintest.OpenedGate().ExpiresAt, byID["chain-gate"].Until)
	require.Equal(t, chaintest.Noon.Add(90*time.Minute), byID["chain-cooldown"].Until)
	require.Equal(t, []operations.ServiceHolder{{Service: "jellyfin", ChainID: "chain-holder", Since: locked.StartedAt}}, byID["chain-busy"].Holders)
	require.Equal(t, chaintest.Noon.Add(12*time.Hour), byID["chain-budget"].ResetsAt)
	require.Equal(t, "nobody", byID["chain-queued"].Queue)
	require.Equal(t, 1, byID["chain-queued"].Attempt)
	require.Equal(t, "nobody", byID["chain-alone"].Queue)
	require.Contains(t, byID["chain-alone"].Reason, "no worker answered")

	for _, chain := range now.Work.Chains {
		if chain.ChainID == "chain-issues" {
			require.Equal(t, "waits for the chains of 1 issue", chain.Doing)
			continue
		}
		require.Equal(t, "chain-works", chain.ChainID)
		require.Equal(t, int64(2), chain.Session.Number)
		require.Equal(t, "host-1", chain.Session.Host)
		require.InDelta(t, 0.12, chain.Session.CostUSD, 1e-9)
		require.InDelta(t, 0.15, chain.CostUSD, 1e-9)
	}
	require.Equal(t, operations.NowDay{
		From: chaintest.Noon.Add(-12 * time.Hour), ResetsAt: chaintest.Noon.Add(12 * time.Hour), ReservedUSD: 0.5, BudgetUSD: 3, LeftUSD: 2.5,
	}, now.Day)

	list := func(filter operations.ChainFilter) (ids []string) {
		t.Helper()
		filter.Limit = 50
		page, err := host.Chains.List(t.Context(), filter)
		require.NoError(t, err)
		for _, row := range page.Chains {
			ids = append(ids, row.ID)
		}
		return ids
	}
	require.ElementsMatch(t, []string{"chain-gate", "chain-cooldown", "chain-busy", "chain-budget", "chain-queued", "chain-alone"},
		list(operations.ChainFilter{Waits: true}))
	require.Equal(t, []string{"chain-queued"}, list(operations.ChainFilter{Retries: true}))
	require.Equal(t, []string{"chain-queued"}, list(operations.ChainFilter{Retries: true, Waits: true}))
}

// TestOverviewOfARetry shows a chain whose session is at its second attempt.
func TestOverviewOfARetry(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	progress := chaintest.ToolsInFlight()
	s.plays(t, "chain-retry", scene{Chain: chaintest.Working(), Progress: progress, Failure: "the disk is full"}, scene{})
	host := operations.New(operations.Options{Environ: s.environ, Clock: chaintest.Clock, Patience: time.Second, Masked: func() {}})
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	var now operations.Now
	require.Eventually(t, func() bool {
		now = host.Overview.Now(t.Context())
		return len(now.Work.Chains) == 1 && now.Work.Chains[0].Session.Attempt == 2
	}, clitest.Timeout, clitest.Look)
	require.Equal(t, "the disk is full", now.Work.Chains[0].Session.Failure)
	require.Contains(t, now.Day.Problem, "there are no records")
	page, err := host.Chains.List(t.Context(), operations.ChainFilter{Retries: true, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Chains, 1)
}
