//go:build soak

package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// goneWithin limits the time from a cancellation until all processes of the agent have ended, with the default grace
// period.
const goneWithin = 5 * time.Second

// toldWithin limits the time from a cancellation until the agent's worker knows of it, with the longest interval of
// heartbeats.
const toldWithin = 15 * time.Second

// cancelAsCommandLine cancels as `temporal workflow cancel` does.
func cancelAsCommandLine(ctx context.Context, c client.Client, run client.WorkflowRun) error {
	return c.CancelWorkflow(ctx, run.GetID(), "")
}

// cancelAsWebUI cancels with the request that the Web UI sends.
func cancelAsWebUI(ctx context.Context, c client.Client, run client.WorkflowRun) error {
	_, err := c.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace:         client.DefaultNamespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
		Reason:            "Canceled from the Web UI",
	})
	return err
}

// TestSoakCancel cancels chains in the middle of a tool call. It measures times, so no other test may run beside it.
func TestSoakCancel(t *testing.T) {
	temporalServer := startTemporal(t)
	for name, tt := range map[string]struct {
		cancel func(context.Context, client.Client, client.WorkflowRun) error
		fault  claudesim.Fault
		// interval is the time between two heartbeats.
		interval time.Duration
		within   time.Duration
	}{
		"by_command_line":            {cancelAsCommandLine, claudesim.Fault{}, time.Second, goneWithin},
		"by_web_ui":                  {cancelAsWebUI, claudesim.Fault{}, time.Second, goneWithin},
		"of_one_that_ignores_sigint": {cancelAsWebUI, claudesim.Fault{IgnoreInterrupt: true}, time.Second, goneWithin},
		"with_six_heartbeats_a_minute": {
			cancelAsWebUI, claudesim.Fault{IgnoreInterrupt: true}, 10 * time.Second, toldWithin + goneWithin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(t.TempDir(), "started")
			claude := simtest.Install(t, claudesim.Play(
				claudesim.Always(claudesim.Bash("setsid sleep 300 > /dev/null 2>&1 & touch "+marker+"; sleep 300")).Failing(tt.fault)))
			s := startSite(t, temporalServer, environment(t, claude, append(toolsAllowed(), "CLAUDEOPS_TASK_QUEUE=cancel_"+name,
				"CLAUDEOPS_HEARTBEAT_INTERVAL="+tt.interval.String())...))
			var gone time.Duration
			for try := range 3 { // one fast attempt is enough, because the machine may stall during the others
				require.NoError(t, os.RemoveAll(marker))
				run := s.startAs(fmt.Sprintf("cancelled-%s-%d", name, try), nil)
				require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
				before := len(processesOf(t, run.GetID()))
				require.GreaterOrEqual(t, before, 3, "the CLI and its commands")
				cancelled := time.Now()
				require.NoError(t, tt.cancel(t.Context(), s.client, run))
				requireGone(t, run.GetID())
				gone = time.Since(cancelled)
				requireAborted(t, s, run)
				t.Logf("soak: cancelled %s in a tool call: %d processes gone after %.2f s, record stopped", name, before, gone.Seconds())
				if gone < tt.within {
					break
				}
			}
			require.Less(t, gone, tt.within)
		})
	}
}

// requireAborted waits for the end of a cancelled chain, and checks that its only agent was stopped.
func requireAborted(t *testing.T, s *site, run client.WorkflowRun) {
	t.Helper()
	_, err := s.finish(run)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := s.query(run)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Len(t, chain.Sessions, 1)
	require.Equal(t, escalation.SessionStopped, chain.Sessions[0].Status)
	requireRecorded(t, s, chain)
}

// TestSoakCancelBetweenAttempts cancels a chain while its tier waits for a retry, because the model is unavailable.
// The tier's earlier spending must be recorded. Temporal has two seconds to report it, because people should wait no
// longer. Therefore no other test may run beside this one.
func TestSoakCancelBetweenAttempts(t *testing.T) {
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(
		claudesim.Bash("true").Using(claudesim.Usage{Input: 10_000}), claudesim.Fail(http.StatusServiceUnavailable, "overloaded"))))
	s := startSite(t, temporalServer, environment(t, claude, toolsAllowed()...))
	run := s.start(nil)
	var told activities.TierProgress // if an attempt's last heartbeat is lost, the next attempt's counts
	require.Eventually(t, func() bool {
		described, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
		pending := described.GetPendingActivities()
		if err != nil || len(pending) != 1 || pending[0].GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			return false
		}
		told = s.heartbeat(run.GetID())
		return int(pending[0].GetAttempt()) == told.Attempt+1 && told.Total().CostUSD > 0
	}, testTimeout, 20*time.Millisecond)
	cancelled := time.Now()
	require.NoError(t, cancelAsWebUI(t.Context(), s.client, run))
	_, err := s.finish(run)
	took := time.Since(cancelled)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := s.query(run)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	session := chain.Sessions[0]
	require.Equal(t, escalation.SessionStopped, session.Status)
	require.Equal(t, told.Attempt, session.Attempts)
	require.Positive(t, session.CostUSD)
	require.False(t, session.CostUnknown())
	require.InDelta(t, session.CostUSD, chain.CostUSD, 1e-9)
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "cancelled_between_attempts")
	t.Logf("soak: cancelled between attempts: ended after %.2f s, record %s with $%.4f", took.Seconds(), session.Status, session.CostUSD)
}
