package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// openRecords holds sessions and locks, and stores what was settled and released.
type openRecords struct {
	sessions []escalation.Session
	locks    []store.ServiceLock
	seen     []store.SeenNamespace

	settled  map[string]escalation.Report
	released []string

	working   []store.ChainAtWork
	abandoned []string
}

var _ Records = (*openRecords)(nil)

func (r *openRecords) Running(context.Context) ([]escalation.Session, error) { return r.sessions, nil }

func (r *openRecords) ReportAlive(context.Context, time.Time) ([]store.SeenNamespace, error) {
	return r.seen, nil
}

func (r *openRecords) ClaimDuty(context.Context, string, string, time.Time, time.Time) (bool, error) {
	return true, nil
}

func (r *openRecords) ServiceLocks(context.Context) ([]store.ServiceLock, error) { return r.locks, nil }

func (r *openRecords) SettleSession(_ context.Context, sessionID string, report escalation.Report, _ time.Time) (bool, error) {
	r.settled[sessionID] = report
	return true, nil
}

func (r *openRecords) ReleaseLock(_ context.Context, lock store.ServiceLock) (bool, error) {
	r.released = append(r.released, lock.Service)
	return true, nil
}

func (r *openRecords) ChainsAtWork(context.Context) ([]store.ChainAtWork, error) {
	return r.working, nil
}

func (r *openRecords) AbandonIncidents(_ context.Context, chain store.ChainAtWork, _ string) (bool, error) {
	r.abandoned = append(r.abandoned, chain.ChainID)
	return true, nil
}

// fakeChains describes chains by their IDs. The lookup of the chain "away" fails.
type fakeChains map[string]*workflowservice.DescribeWorkflowExecutionResponse

func (c fakeChains) DescribeWorkflowExecution(
	_ context.Context, workflowID, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if described, known := c[workflowID]; known {
		return described, nil
	}
	if workflowID == "away" {
		return nil, errors.New("away")
	}
	return nil, serviceerror.NewNotFound("unknown")
}

// chainIn returns a chain with this status. Its pending activities have the heartbeats of agents.
func chainIn(
	t *testing.T, status enumspb.WorkflowExecutionStatus, agents ...activities.TierProgress,
) *workflowservice.DescribeWorkflowExecutionResponse {
	t.Helper()
	described := &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status},
	}
	for _, agent := range agents {
		details, err := converter.GetDefaultDataConverter().ToPayloads(agent)
		require.NoError(t, err)
		described.PendingActivities = append(described.PendingActivities, &workflowpb.PendingActivityInfo{
			ActivityType: &commonpb.ActivityType{Name: activities.AgentActivities()[0]}, HeartbeatDetails: details,
		})
	}
	return described
}

func TestSweep(t *testing.T) {
	t.Parallel()
	records := &openRecords{settled: map[string]escalation.Report{}}
	for _, chain := range []string{"running", "terminated", "unknown", "away"} {
		for _, namespace := range []string{"own", "other"} { // the other one has chains of the same IDs
			records.sessions = append(records.sessions, escalation.Session{
				NamespaceID: namespace, ChainID: chain, SessionID: namespace + " " + chain,
			})
			records.locks = append(records.locks, store.ServiceLock{
				NamespaceID: namespace, ChainID: chain, Service: namespace + " " + chain,
			})
		}
	}
	sweeper := Sweeper{Records: records, Converter: converter.GetDefaultDataConverter(), NamespaceID: "own", Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{
		"running": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		"terminated": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			activities.TierProgress{SessionID: "own terminated", Now: activities.AgentProgress{CostUSD: 0.5}}),
	}}
	sweeper.Sweep(t.Context())

	require.Equal(t, []string{"own terminated", "own unknown"}, records.released)
	require.Len(t, records.settled, 2)
	for sessionID, want := range map[string]struct {
		cost float64
		text string
	}{
		"own terminated": {0.5, "its chain ended without closing it: terminated"},
		"own unknown":    {0, "its chain is unknown to Temporal"},
	} {
		report := records.settled[sessionID]
		require.Equal(t, escalation.SessionFailed, report.Status)
		require.InDelta(t, want.cost, report.CostUSD, 1e-9)
		require.True(t, report.CostEstimated)
		require.Equal(t, want.text, report.Error)
	}
}

// TestSweepOfLostNamespaces settles the records of other namespaces, whose workers last ran at different times.
func TestSweepOfLostNamespaces(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		started time.Time
		want    []string
	}{
		"a worker that has run for long":   {now.Add(-2 * lostAfter), []string{"lost"}},
		"a worker that has just started":   {now, nil},
		"a worker that was started lately": {now.Add(-lostAfter / 2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := &openRecords{settled: map[string]escalation.Report{}, seen: []store.SeenNamespace{
				{Namespace: store.Namespace{ID: "own"}, SeenAt: now},
				{Namespace: store.Namespace{ID: "restarts"}, SeenAt: now.Add(-lostAfter / 2)},
				{Namespace: store.Namespace{ID: "lost"}, SeenAt: now.Add(-lostAfter)},
			}}
			for _, namespace := range []string{"own", "restarts", "lost", "never seen"} {
				records.sessions = append(records.sessions, escalation.Session{NamespaceID: namespace, ChainID: "nightly", SessionID: namespace})
				records.locks = append(records.locks, store.ServiceLock{NamespaceID: namespace, ChainID: "nightly", Service: namespace})
			}
			sweeper := Sweeper{
				Converter: converter.GetDefaultDataConverter(),
				Records:   records, NamespaceID: "own", Started: tc.started, Logger: slog.New(slog.DiscardHandler),
				Temporal: fakeChains{"nightly": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
			}
			sweeper.Sweep(t.Context())
			require.Equal(t, tc.want, records.released)
			require.Len(t, records.settled, len(tc.want))
			for _, namespace := range tc.want {
				require.Equal(t, "no worker of its Temporal namespace has run for an hour", records.settled[namespace].Error)
				require.True(t, records.settled[namespace].CostEstimated)
			}
		})
	}
}

// TestSweepEndsTheWorkOnIncidents checks that an ended chain takes care of no incident any more. A running chain must keep its
// incidents.
func TestSweepEndsTheWorkOnIncidents(t *testing.T) {
	t.Parallel()
	records := &openRecords{working: []store.ChainAtWork{{ChainID: "runs"}, {ChainID: "terminated"}, {ChainID: "unknown"}, {ChainID: "away"}}}
	Sweeper{Records: records, Converter: converter.GetDefaultDataConverter(), Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{
		"runs":       chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		"terminated": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED),
	}}.Sweep(t.Context())
	require.Equal(t, []string{"terminated", "unknown"}, records.abandoned)
}

// TestSweepersTakeTurns checks that of several workers of a namespace one sweeps, and that namespaces do not wait for each
// other.
func TestSweepersTakeTurns(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	isDue := func(holder, namespace string) bool {
		sweeper := Sweeper{Records: records, NamespaceID: namespace, Holder: holder, Interval: time.Hour, Logger: slog.New(slog.DiscardHandler)}
		return sweeper.isDue(t.Context())
	}
	require.True(t, isDue("a", "own"))
	require.False(t, isDue("b", "own"))
	require.True(t, isDue("a", "own"))
	require.True(t, isDue("b", "other"))
}
