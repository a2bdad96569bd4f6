//go:build linux

package systemtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestFaultReset resets a chain that has ended to a moment before its Tier 2 ran: once before Tier 2 had a record,
// and once after. Tier 2 must run again, and the results of the first run must be kept.
func TestFaultReset(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, tt := range map[string]struct {
		// beforeThe is an activity of Tier 2. The chain is reset to the moment before it.
		beforeThe string
		// records counts the session records afterwards. replaced counts the replaced reports of the last session.
		records, replaced int
	}{
		"before_its_record": {"OpenSession", 3, 0},
		"before_its_agent":  {"RunTier", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claude := simtest.Install(t, claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
				concluding("sonnet", resolved())))
			s := startSite(t, temporalServer, environment(t, claude, append(toolsAllowed(), "CLAUDEOPS_TASK_QUEUE=reset_"+name)...))
			run := s.start(nil)
			first, err := s.finish(run)
			require.NoError(t, err)
			tier1 := conversationOf(s.cfg, first.Sessions[0].SessionID)
			checkpoint, err := os.ReadFile(tier1)
			require.NoError(t, err)

			chain, again := resetBefore(t, s, run, tt.beforeThe)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
			require.Len(t, chain.Sessions, 2)
			require.Equal(t, first.Sessions[0], chain.Sessions[0], "Tier 1 did not run again")
			second := chain.Sessions[1]
			require.Equal(t, first.Sessions[0].ID, second.ParentID)
			require.Equal(t, run.GetRunID(), second.FirstRunID, "it is still the same chain")
			require.Equal(t, escalation.ContinuityResume, second.Continuity)
			kept, err := os.ReadFile(tier1)
			require.NoError(t, err)
			require.Equal(t, string(checkpoint), string(kept), "Tier 1's transcript is as it was")

			launches := simtest.Launches(t, claude)
			require.Len(t, launches, 3, "Tier 2 ran twice, Tier 1 once")
			requests := simtest.Requests(t, claude)
			require.Contains(t, requests[len(requests)-1].ToolResults(), "seen by tier 1", "from Tier 1's conversation")
			if second.SessionID != first.Sessions[1].SessionID {
				require.Subset(t, launches[2].Args, []string{"--fork-session", first.Sessions[0].SessionID})
			} else {
				require.Contains(t, launches[2].Stdin, "ended before its work was done", "it must not take what was done for undone")
			}
			requireBothRuns(t, s, first, chain, tt.records, tt.replaced)
			t.Logf("faults: reset %s: run %s again from session %d, tier 2 ran twice, %d session records and %d replaced reports kept",
				name, again.GetRunID(), second.ParentID, tt.records, tt.replaced)
		})
	}
}

// resetBefore resets a run to the moment before an activity of that type was last scheduled. It waits for the new run
// and returns its chain.
func resetBefore(t *testing.T, s *site, run client.WorkflowRun, activity string) (escalation.Chain, client.WorkflowRun) {
	t.Helper()
	again := s.resetTo(run, activity)
	chain, err := s.finish(again)
	require.NoError(t, err)
	return chain, again
}

// resetTo resets a run to the moment before an activity of that type was last scheduled, and returns the new run.
func (s *site) resetTo(run client.WorkflowRun, activity string) client.WorkflowRun {
	t := s.t
	t.Helper()
	var decided int64
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == activity {
			decided = scheduled.GetWorkflowTaskCompletedEventId()
		}
	}
	require.Positive(t, decided)
	reset, err := s.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         client.DefaultNamespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
		Reason:            "run " + activity + " again", RequestId: t.Name(), WorkflowTaskFinishEventId: decided,
	})
	require.NoError(t, err)
	return s.client.GetWorkflow(t.Context(), run.GetID(), reset.GetRunId())
}

// requireBothRuns checks that the records hold the results of both runs of a chain.
func requireBothRuns(t *testing.T, s *site, first, second escalation.Chain, records, replaced int) {
	t.Helper()
	kept := s.records()
	sessions, err := kept.Chain(t.Context(), first.ID)
	require.NoError(t, err)
	require.Len(t, sessions, records)
	require.Equal(t, asJSON(t, second.Sessions), asJSON(t, []escalation.Session{sessions[0], sessions[records-1]}))
	require.Equal(t, asJSON(t, first.Sessions[:1]), asJSON(t, sessions[:1]))
	costs := replacedCosts(t, s, sessions[records-1].SessionID)
	require.Len(t, costs, replaced)
	if replaced > 0 {
		require.InDelta(t, first.Sessions[1].CostUSD, costs[0], 1e-9)
	} else {
		require.Equal(t, asJSON(t, first.Sessions[1:]), asJSON(t, sessions[1:2]))
	}
	events, err := kept.Events(t.Context(), first.ID)
	require.NoError(t, err)
	// The second run added three events: the end of Tier 2, the decision that follows, and the end of the chain.
	require.Subset(t, keys(events), append(keys(first.Events), keys(second.Events[len(second.Events)-3:])...))
}

// replacedCosts returns the costs of a session's replaced reports, oldest first.
func replacedCosts(t *testing.T, s *site, sessionID string) (costs []float64) {
	t.Helper()
	db := openSQL(t, s.cfg)
	rows, err := db.QueryContext(t.Context(), "SELECT cost_usd FROM replaced_reports WHERE session_id = $1 ORDER BY id", sessionID)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var cost float64
		require.NoError(t, rows.Scan(&cost))
		costs = append(costs, cost)
	}
	require.NoError(t, rows.Err())
	return costs
}

func keys(events []escalation.Event) []string {
	var all []string
	for i := range events {
		all = append(all, events[i].Key)
	}
	return all
}
