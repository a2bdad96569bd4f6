package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// listedServices returns a catalog of jellyfin and a shop.
func listedServices(t *testing.T) *escalation.Catalog {
	t.Helper()
	catalog, err := escalation.NewCatalog([]escalation.Service{
		{Name: "Jellyfin", Aliases: []string{"Media"}}, {Name: "shop"},
	})
	require.NoError(t, err)
	return catalog
}

// TestChainUsesNamesOfTheServicesFile starts a chain with an alias and an unknown name. Admissions, agents, the search
// attribute and the result have the canonical names, and the unknown ones are listed.
func TestChainUsesNamesOfTheServicesFile(t *testing.T) {
	t.Parallel()
	finds := func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{Status: escalation.SessionCompleted, ReportedSessionID: input.SessionID, Verdict: &escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "down", Services: []string{"JELLYFIN", "tv", "radio"},
		}}, nil
	}
	w := newWorld(t, finds, concludes(escalation.VerdictResolved, 0.1))
	w.catalog = listedServices(t)
	var published []string
	w.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		if services, ok := args.Get(0).(temporal.SearchAttributes).GetKeywordList(workflows.ServicesAttribute); ok {
			published = services
		}
	}).Return(nil)
	result, err := w.run(t, workflows.ChainInput{Services: []string{"media", "TV", "jellyfin "}})
	require.NoError(t, err)
	require.Equal(t, []string{"Jellyfin", "TV"}, w.requests[0].Services)
	require.Equal(t, []string{"Jellyfin", "TV"}, w.ran[0].Services)
	require.Equal(t, []string{"Jellyfin", "TV"}, w.ran[0].Affected)
	require.Equal(t, []string{"Jellyfin", "tv", "radio"}, w.requests[1].Services)
	require.Equal(t, []string{"Jellyfin", "TV"}, w.ran[1].Services, "the input's limit")
	require.Equal(t, []string{"Jellyfin", "tv", "radio"}, w.ran[1].Affected)
	require.Equal(t, []string{"Jellyfin"}, result.Services)
	require.Equal(t, []string{"Jellyfin"}, published)

	require.Equal(t, []string{"TV", "radio"}, result.UnknownServices)
	unknown := eventsOf(result.Events, escalation.EventUnknownService)
	require.Len(t, unknown, 2, "each name once")
	require.Equal(t, escalation.SeverityWarning, unknown[0].Severity)
	require.Equal(t, `CLAUDEOPS_SERVICES_FILE has no service of this name, so it counts as a service of its own: "TV"`, unknown[0].Message)
	require.Empty(t, unknown[0].SessionID)
	require.Contains(t, unknown[1].Message, `"radio"`)
	require.Equal(t, result.Sessions[0].SessionID, unknown[1].SessionID)
	requireRecorded(t, result.Events, w.events)
	require.Equal(t, escalation.EventChainStarted, result.Events[0].Kind)
}

// TestIssuesHaveNamesOfTheServicesFile checks the input of an issue's chain.
func TestIssuesHaveNamesOfTheServicesFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{Status: escalation.SessionCompleted, ReportedSessionID: input.SessionID, Verdict: &escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "two", Services: []string{"media", "Shop"}, Issues: []escalation.Issue{
				{Summary: "one", Services: []string{"MEDIA"}, Severity: escalation.SeverityWarning},
				{Summary: "two", Services: []string{"SHOP", "tv"}, Severity: escalation.SeverityWarning},
			},
		}}, nil
	})
	w.catalog = listedServices(t)
	var inputs []workflows.ChainInput
	w.issue = func(_ workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		inputs = append(inputs, input)
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, inputs, 2)
	require.ElementsMatch(t, [][]string{{"Jellyfin"}, {"shop", "tv"}}, [][]string{inputs[0].Services, inputs[1].Services})
	require.Equal(t, []string{"shop", "tv"}, result.Issues[1].Services)
	require.Equal(t, []string{"tv"}, result.UnknownServices)
}

// TestRepairWithoutServicesWorksOnAllOfThem covers a chain that repairs without naming a service, with the store's
// rules of admission. While another chain repairs, it waits. While it runs, no other repair starts.
func TestRepairWithoutServicesWorksOnAllOfThem(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	world := &trial{policy: testPolicy(), records: newMemoryRecords(), calls: map[string]int{}, told: map[string]int{}}
	world.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	world.scripts = [][]agentRun{{{
		status: escalation.SessionCompleted, verdict: escalation.VerdictResolved, costUSD: 0.1, attempts: 1, services: []string{"web"},
	}}}
	env := newEnvironment(new(testsuite.WorkflowTestSuite))
	env.SetStartTime(start)
	world.register(env)
	other := func(id string, at time.Time) *escalation.Admission {
		t.Helper()
		session := escalation.Session{
			ChainID: "other", SessionID: id, Tier: escalation.TierSafeRepair, StartedAt: at,
			Report: escalation.Report{Status: escalation.SessionRunning},
		}
		opened, err := world.records.OpenSession(t.Context(), session, escalation.AdmissionRequest{Services: []string{"db"}}, world.policy)
		require.NoError(t, err)
		return opened.Refusal
	}
	require.Nil(t, other("before", start.Add(-time.Minute)))
	env.RegisterDelayedCallback(func() {
		require.Equal(t, escalation.RuleServiceBusy, chainOf(t, env).Wait.Rule)
		require.NoError(t, world.records.CloseSession(t.Context(), "before", escalation.Report{Status: escalation.SessionFailed}, env.Now()))
		require.NoError(t, world.records.ReleaseServices(t.Context(), "other"))
	}, 150*time.Second)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, map[string]store.ServiceLock{"": {ChainID: "default-test-workflow-id", Since: start.Add(3 * time.Minute)}}, world.records.locks)
		refusal := other("meanwhile", env.Now())
		require.NotNil(t, refusal)
		require.Equal(t, escalation.RuleServiceBusy, refusal.Rule)
	}, 5*time.Minute)
	env.ExecuteWorkflow(workflows.ChainWorkflow, workflows.ChainInput{StartTier: escalation.TierSafeRepair})
	require.NoError(t, env.GetWorkflowError())
	var chain escalation.Chain
	require.NoError(t, env.GetWorkflowResult(&chain))
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Len(t, chain.Sessions, 1)
	require.Empty(t, world.records.locks)
	require.Nil(t, other("after", env.Now()))
}

// chainOf asks the running chain for its state.
func chainOf(t *testing.T, env *testsuite.TestWorkflowEnvironment) (chain escalation.Chain) {
	t.Helper()
	answer, err := env.QueryWorkflow(workflows.ChainQuery)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&chain))
	return chain
}
