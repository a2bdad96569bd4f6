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
	"github.com/claudeops/claudeops/internal/records/store"
)

// openRecords holds sessions and locks, and stores what was settled and released.
type openRecords struct {
	sessions []escalation.Session
	locks    []store.ServiceLock
	absences []store.Absence

	settled  map[string]escalation.Report
	released []string

	working   []store.ChainAtWork
	abandoned []string
}

var _ Records = (*openRecords)(nil)

func (r *openRecords) Running(context.Context) ([]escalation.Session, error) { return r.sessions, nil }

func (r *openRecords) ReportAlive(context.Context, string, time.Time) ([]store.Absence, error) {
	return r.absences, nil
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

// TestEndingOfARun checks that a chain has ended although a later one with the same ID runs, and that a chain runs whose first run
// was reset or continued as new.
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
		states := &chainStates{temporal: c.runs, namespaceID: "own", endings: map[escalation.ChainRun]ending{}}
		end := states.ending(t.Context(), "own", escalation.ChainRun{ChainID: "nightly", FirstRunID: "first"})
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

// TestSweepOfLostNamespaces settles the records of other namespaces, which have missed different numbers of sweeps.
func TestSweepOfLostNamespaces(t *testing.T) {
	t.Parallel()
	hour := int(lostAfter / sweepInterval)
	records := &openRecords{
		absences: []store.Absence{
			{NamespaceID: "back", Host: "own", Sweeps: 1},
			{NamespaceID: "late", Host: "own", Sweeps: hour},
			{NamespaceID: "lost", Host: "own", Sweeps: hour + 1},
			{NamespaceID: "asleep", Host: "other", Sweeps: 48 * hour},
		},
		settled: map[string]escalation.Report{},
	}
	for _, namespace := range []string{"own", "back", "late", "lost", "asleep", "unheard of"} {
		records.sessions = append(records.sessions, escalation.Session{NamespaceID: namespace, ChainID: "nightly", SessionID: namespace})
		records.locks = append(records.locks, store.ServiceLock{NamespaceID: namespace, ChainID: "nightly", Service: namespace})
	}
	Sweeper{
		Converter: converter.GetDefaultDataConverter(), Records: records, NamespaceID: "own", Host: "own", Logger: slog.New(slog.DiscardHandler),
		Temporal: fakeChains{"nightly": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
	}.Sweep(t.Context())
	require.Equal(t, []string{"lost"}, records.released)
	require.Len(t, records.settled, 1)
	require.Equal(t, "no worker of its Temporal namespace has run for 1h", records.settled["lost"].Error)
	require.True(t, records.settled["lost"].CostEstimated)
}

// TestSweepAfterAnOutage checks two namespaces that share the records of a real store. The database is away for an hour, and one
// worker comes back before the other. The first one must settle nothing of the other, whose chain runs, before the other had an
// hour to report again.
func TestSweepAfterAnOutage(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	policy := escalation.Policy{Tiers: make([]escalation.TierPolicy, 3), MaxTier: escalation.TierFullRepair}
	of := map[string]*store.Store{}
	for _, id := range []string{"here", "there"} {
		of[id] = records.In(store.Namespace{ID: id, Name: "default"})
	}
	repair := escalation.Session{
		ChainID: "nightly", SessionID: "living", Tier: escalation.TierSafeRepair, StartedAt: time.Now(),
		Report: escalation.Report{Status: escalation.SessionRunning},
	}
	web := escalation.AdmissionRequest{Services: []string{"web"}}
	opened, err := of["there"].OpenSession(t.Context(), repair, web, policy)
	require.NoError(t, err)
	require.Nil(t, opened.Refusal)
	sweep := func(id string) {
		Sweeper{
			Records: of[id], NamespaceID: id, Converter: converter.GetDefaultDataConverter(), Logger: slog.New(slog.DiscardHandler),
			Temporal: fakeChains{"nightly": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
		}.Sweep(t.Context())
	}
	// What the workers' clocks say of the last reports makes no difference.
	for _, id := range []string{"here", "there"} {
		_, err := of[id].ReportAlive(t.Context(), "", time.Now().Add(-2*time.Hour))
		require.NoError(t, err)
	}
	hour := int(lostAfter / sweepInterval)
	for range hour {
		sweep("here")
		locks, err := records.ServiceLocks(t.Context())
		require.NoError(t, err)
		require.Len(t, locks, 1, "it has had no hour to report again")
	}
	sweep("there")
	for range hour {
		sweep("here")
	}
	second := repair
	second.ChainID, second.SessionID = "weekly", "second"
	opened, err = of["here"].OpenSession(t.Context(), second, web, policy)
	require.NoError(t, err)
	require.NotNil(t, opened.Refusal, "no second repair beside the living agent")
	sweep("here")
	opened, err = of["here"].OpenSession(t.Context(), second, web, policy)
	require.NoError(t, err)
	require.Nil(t, opened.Refusal, "a namespace that stays away is lost")
}

// TestSweepWhileAHostSleeps checks that a host that sleeps alone, with its agents, is not lost after an hour. It is if it never wakes.
func TestSweepWhileAHostSleeps(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	policy := escalation.Policy{Tiers: make([]escalation.TierPolicy, 3), MaxTier: escalation.TierFullRepair}
	_, err = records.In(store.Namespace{ID: "laptop"}).OpenSession(t.Context(), escalation.Session{
		ChainID: "nightly", SessionID: "asleep", Tier: escalation.TierSafeRepair, StartedAt: time.Now(),
		Report: escalation.Report{Status: escalation.SessionRunning},
	}, escalation.AdmissionRequest{Services: []string{"web"}}, policy)
	require.NoError(t, err)
	sweep := func(host string) {
		Sweeper{
			Records: records.In(store.Namespace{ID: host}), NamespaceID: host, Host: host, Interval: time.Hour,
			Converter: converter.GetDefaultDataConverter(), Logger: slog.New(slog.DiscardHandler),
			Temporal: fakeChains{"nightly": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
		}.Sweep(t.Context())
	}
	sleep := func(hours int) (running []escalation.Session) {
		sweep("laptop")
		for range hours {
			sweep("server")
		}
		running, err := records.Running(t.Context())
		require.NoError(t, err)
		return running
	}
	require.Len(t, sleep(64), 1, "a weekend")
	require.Len(t, sleep(64), 1, "another one")
	require.Empty(t, sleep(int(lostElsewhereAfter.Hours())+1))
}

// TestSweepEndsTheWorkOnIncidents checks that an ended chain takes care of no incident any more. A running chain must keep its
// incidents.
func TestSweepEndsTheWorkOnIncidents(t *testing.T) {
	t.Parallel()
	records := &openRecords{working: []store.ChainAtWork{working("runs"), working("terminated"), working("unknown"), working("away")}}
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
