package workflows_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/workflows"
)

// branches lists the branches of a chain, of a cycle and of a conversation whose histories are recorded.
var branches = []string{
	"cancelled",
	"cancelled_before_the_policy",
	"cancelled_between_attempts",
	"cancelled_in_a_wait",
	"cancelled_while_it_is_back",
	"cancelled_while_opening",
	"chain_budget",
	"conversation",
	"conversation_anew",
	"conversation_carried",
	"conversation_continued",
	"conversation_day_budget",
	"conversation_stopped",
	"cooldown",
	"cooldown_healthy",
	"cycle",
	"cycle_failed",
	"cycle_waiting",
	"day_budget",
	"detached",
	"drained",
	"dry_run",
	"escalated_by_hand",
	"escalation_limit",
	"excessive_verdict",
	"gate_anew",
	"gate_continued",
	"gate_expired",
	"gate_fixed",
	"handoff",
	"handoff_asked",
	"handoff_invalid",
	"healthy",
	"incident_healed",
	"incident_worse",
	"issues",
	"known",
	"look_anew",
	"look_failed",
	"max_tier",
	"notified",
	"one_issue_cancelled",
	"plan_phases",
	"plan_review",
	"refused",
	"resume_failed",
	"returned",
	"returned_asked",
	"review_required",
	"reviewed",
	"service_busy",
	"three_tiers",
	"transcript_lost",
	"unknown_conversation",
	"verdict_never_given",
	"verdict_repaired",
}

// shortConversations maps the workflow IDs of recorded conversations that continue as new from a short history to the
// length of that history, in events.
var shortConversations = map[string]int{"conversation-TestConversationContinuesAsNew": 12}

// TestReplay replays the history of every branch. It fails if the workflow takes other steps than at the time of the
// recording, or takes them in another order. Such a change is permitted for chains that no release began: `make
// histories` records the histories again. TestReleasedHistories replays the histories of releases.
func TestReplay(t *testing.T) {
	t.Parallel()
	recorded, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	var names []string
	for _, file := range recorded {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	require.ElementsMatch(t, branches, names, "`make histories` records every branch")
	for _, file := range recorded {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, replay(readHistory(t, file)))
		})
	}
}

// replay replays a history with the workflows of this package.
func replay(history *historypb.History) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DisableDeadlockDetection: true, // a busy machine would look like a workflow that blocks
	})
	if err != nil {
		return err
	}
	replayer.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.Cycle, workflow.RegisterOptions{Name: workflows.CycleWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.PlanReview, workflow.RegisterOptions{Name: workflows.PlanReviewWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.PhaseExecution, workflow.RegisterOptions{Name: workflows.PhaseExecutionWorkflow})
	conversation := workflows.Conversation
	if limit := shortConversations[history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()]; limit != 0 {
		conversation = workflows.NewConversation(limit)
	}
	replayer.RegisterWorkflowWithOptions(conversation, workflow.RegisterOptions{Name: workflows.ConversationWorkflow})
	// Replay under the original ID, because a workflow may derive other IDs from it.
	original := workflow.Execution{ID: history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()}
	if original.ID == "" {
		return errors.New("the history does not name its workflow")
	}
	return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{OriginalExecution: original})
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	opened, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	history, err := client.HistoryFromJSON(opened, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return history
}
