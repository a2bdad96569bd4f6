package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
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
	"github.com/claudeops/claudeops/internal/records/store"
)

// openRecords holds sessions and locks, and stores what was settled and released.
type openRecords struct {
	sessions []escalation.Session
	locks    []store.ServiceLock
	foreign  error

	settled  map[string]escalation.Report
	released []string

	working   []store.ChainAtWork
	abandoned []string

	// snoozed holds the incidents whose snooze has ended.
	snoozed []escalation.Incident
}

var _ Records = (*openRecords)(nil)

func (r *openRecords) Running(context.Context) ([]escalation.Session, error) { return r.sessions, nil }

func (r *openRecords) Claim(context.Context, store.Namespace, time.Time) error { return r.foreign }

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

func (r *openRecords) EndedSnoozes(context.Context, time.Time) ([]escalation.Incident, error) {
	return slices.Clone(r.snoozed), nil
}

func (r *openRecords) EndSnooze(_ context.Context, ended escalation.Incident) error {
	r.snoozed = slices.DeleteFunc(r.snoozed, func(one escalation.Incident) bool { return one.ID == ended.ID })
	return nil
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

// working returns a chain that has not ended its work on an incident.
func working(chainID string) store.ChainAtWork {
	return store.ChainAtWork{ChainRun: escalation.ChainRun{ChainID: chainID}}
}

// fakeRuns describes the runs of one workflow ID; the current run is "".
type fakeRuns map[string]*workflowservice.DescribeWorkflowExecutionResponse

func (r fakeRuns) DescribeWorkflowExecution(
	_ context.Context, _, runID string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if described, known := r[runID]; known {
		return described, nil
	}
	return nil, serviceerror.NewNotFound("unknown")
}

// TestEndingOfARun checks that a chain has ended although a later one with the same ID runs, and that a chain runs
// whose first run was reset or continued as new.
func TestEndingOfARun(t *testing.T) {
	t.Parallel()
	in := func(status enumspb.WorkflowExecutionStatus, first string) *workflowservice.DescribeWorkflowExecutionResponse {
		described := chainIn(t, status)
		described.GetWorkflowExecutionInfo().FirstRunId = first
		described.GetWorkflowExecutionInfo().Execution = &commonpb.WorkflowExecution{RunId: "current"}
		return described
	}
	const running, terminated = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	const continued = enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	for name, c := range map[string]struct {
		runs  fakeRuns
		ended bool
	}{
		"it runs":                      {fakeRuns{"": in(running, "first")}, false},
		"it ended":                     {fakeRuns{"": in(terminated, "first")}, true},
		"it was reset":                 {fakeRuns{"": in(running, "first"), "first": in(terminated, "first")}, false},
		"a later one runs":             {fakeRuns{"": in(running, "later"), "first": in(terminated, "first")}, true},
		"a later one runs, it is gone": {fakeRuns{"": in(running, "later")}, true},
		"a run of a cron schedule":     {fakeRuns{"": in(running, "cron"), "first": in(running, "cron")}, false},
		"a run of a cron, continued":   {fakeRuns{"": in(running, "cron"), "first": in(continued, "cron")}, false},
		"an earlier run of a cron":     {fakeRuns{"": in(running, "cron"), "first": in(terminated, "cron")}, true},
		"nothing is known of this ID":  {fakeRuns{}, true},
	} {
		states := &chainStates{temporal: c.runs, endings: map[escalation.ChainRun]ending{}}
		end := states.ending(t.Context(), escalation.ChainRun{ChainID: "nightly", FirstRunID: "first"})
		require.Equal(t, c.ended, end.reason != "", name)
		require.Empty(t, states.problems, name)
	}
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
		records.sessions = append(records.sessions, escalation.Session{ChainID: chain, SessionID: "of " + chain})
		records.locks = append(records.locks, store.ServiceLock{ChainID: chain, Service: "of " + chain})
	}
	sweeper := Sweeper{Records: records, Converter: converter.GetDefaultDataConverter(), Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{
		"running": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		"terminated": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			activities.TierProgress{SessionID: "of terminated", Now: activities.AgentProgress{CostUSD: 0.5}}),
	}}
	sweeper.Sweep(t.Context())

	require.Equal(t, []string{"of terminated", "of unknown"}, records.released)
	require.Len(t, records.settled, 2)
	for sessionID, want := range map[string]struct {
		cost float64
		text string
	}{
		"of terminated": {0.5, "its chain ended without closing it: terminated"},
		"of unknown":    {0, "its chain is unknown to Temporal"},
	} {
		report := records.settled[sessionID]
		require.Equal(t, escalation.SessionFailed, report.Status)
		require.InDelta(t, want.cost, report.CostUSD, 1e-9)
		require.True(t, report.CostEstimated)
		require.Equal(t, want.text, report.Error)
	}
}

// TestSweepOfForeignRecords checks that a worker settles nothing once the records belong to another namespace: the
// chains there are unknown to its Temporal.
func TestSweepOfForeignRecords(t *testing.T) {
	t.Parallel()
	records := &openRecords{
		foreign: store.ErrForeign, settled: map[string]escalation.Report{},
		sessions: []escalation.Session{{ChainID: "unknown", SessionID: "a"}}, locks: []store.ServiceLock{{ChainID: "unknown"}},
	}
	Sweeper{Records: records, Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{}}.Sweep(t.Context())
	require.Empty(t, records.settled)
	require.Empty(t, records.released)
}

// TestSweepEndsTheWorkOnIncidents checks that an ended chain takes care of no incident any more. A running chain must
// keep its incidents.
func TestSweepEndsTheWorkOnIncidents(t *testing.T) {
	t.Parallel()
	records := &openRecords{working: []store.ChainAtWork{working("runs"), working("terminated"), working("unknown"), working("away")}}
	Sweeper{Records: records, Converter: converter.GetDefaultDataConverter(), Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{
		"runs":       chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		"terminated": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED),
	}}.Sweep(t.Context())
	require.Equal(t, []string{"terminated", "unknown"}, records.abandoned)
}

// TestSweepTellsOfEndedSnoozes checks that people are told of the end of a snooze, and that a snooze of which nobody
// could be told stays for the next sweep.
func TestSweepTellsOfEndedSnoozes(t *testing.T) {
	t.Parallel()
	records := &openRecords{snoozed: []escalation.Incident{{ID: "incident-1"}, {ID: "incident-2"}, {ID: "incident-3"}}}
	var told []string
	sweeper := Sweeper{
		Records: records, Logger: slog.New(slog.DiscardHandler), Temporal: fakeChains{},
		TellSnoozeEnded: func(_ context.Context, ended escalation.Incident) error {
			told = append(told, ended.ID)
			if len(told) == 2 {
				return errors.New("Temporal is away")
			}
			return nil
		},
	}
	sweeper.Sweep(t.Context())
	require.Equal(t, []string{"incident-1", "incident-2"}, told)
	sweeper.Sweep(t.Context())
	require.Equal(t, []string{"incident-1", "incident-2", "incident-2", "incident-3"}, told)
	sweeper.Sweep(t.Context())
	require.Len(t, told, 4)
}

// TestSweepersTakeTurns checks that of several workers one sweeps.
func TestSweepersTakeTurns(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	isDue := func(holder string) bool {
		return Sweeper{Records: records, Holder: holder, Interval: time.Hour, Logger: slog.New(slog.DiscardHandler)}.isDue(t.Context())
	}
	require.True(t, isDue("a"))
	require.False(t, isDue("b"))
	require.True(t, isDue("a"))
}
