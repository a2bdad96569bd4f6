package workflows_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// findsIssues returns a script that reports independent issues, one for each requested tier.
func findsIssues(tiers ...escalation.Tier) tierScript {
	return func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.04)(t, input)
		for i, tier := range tiers {
			report.Verdict.Issues = append(report.Verdict.Issues, escalation.Issue{
				Summary: fmt.Sprintf("issue %d", i+1), Services: []string{fmt.Sprintf("service-%d", i+1)},
				Severity: escalation.SeverityWarning, RecommendedTier: tier,
			})
		}
		return report, err
	}
}

// splitting is a world in which issues are found. The chain of each issue takes an hour.
type splitting struct {
	*world
	inputs       []workflows.ChainInput
	now, mostNow int
}

func newSplitting(t *testing.T, outcome func(services string) (escalation.Chain, error), tiers ...escalation.Tier) *splitting {
	t.Helper()
	s := &splitting{world: newWorld(t, findsIssues(tiers...))}
	s.policy.MaxParallelIssues = 2
	s.issue = func(ctx workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		s.inputs = append(s.inputs, input)
		s.now++
		s.mostNow = max(s.mostNow, s.now)
		defer func() { s.now-- }()
		if err := workflow.Sleep(ctx, time.Hour); err != nil {
			return escalation.Chain{}, err
		}
		return outcome(input.Services[0])
	}
	return s
}

func TestChainSplitsIntoItsIssues(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(service string) (escalation.Chain, error) {
		if service == "service-2" {
			return escalation.Chain{Outcome: escalation.OutcomeNeedsHuman, Reason: "the disk is full", CostUSD: 0.20}, nil
		}
		return escalation.Chain{Outcome: escalation.OutcomeResolved, Reason: "restarted", CostUSD: 0.10}, nil
	}, 2, 3, 0, 2)
	s.policy.ChainBudgetUSD = 4.04

	result, err := s.run(t, workflows.ChainInput{Prompt: "be quick"})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome, "as the worst of its issues")
	require.Equal(t, "1 of 4 issues ended needs_human", result.Reason)
	require.Len(t, result.Sessions, 1, "the issues have chains of their own")
	require.Equal(t, 2, s.mostNow, "as many at a time as allowed")
	require.Len(t, result.Issues, 4)
	require.Len(t, s.inputs, 4)
	for i, issue := range result.Issues {
		require.Equal(t, fmt.Sprintf("%s-issue-%d", result.ID, i+1), issue.ChainID)
		require.NotEmpty(t, issue.Outcome)
	}
	require.InDelta(t, 0.20, result.Issues[1].CostUSD, 1e-9)
	require.Equal(t, "the disk is full", result.Issues[1].Reason)
	at := slices.IndexFunc(s.inputs, func(input workflows.ChainInput) bool { return slices.Equal(input.Services, []string{"service-1"}) })
	require.GreaterOrEqual(t, at, 0)
	first := s.inputs[at] // two start at the same time, in any order
	require.Equal(t, escalation.TriggerIssue, first.Trigger)
	require.Equal(t, escalation.TierSafeRepair, first.StartTier)
	require.Equal(t, result.Sessions[0].SessionID, first.ResumeFrom.SessionID, "it forks the observer's conversation")
	require.Equal(t, "be quick", first.Prompt)
	require.True(t, result.Sessions[0].HasRequest)
	require.Equal(t, "issue 1", first.Issue)
	require.InDelta(t, 1.00, first.BudgetUSD, 1e-9, "its share of what is left")
	require.Equal(t, result.Events, s.events)
}

// TestSplitSharesItsBudgetAmongChains checks that issues without a chain get no share of the budget.
func TestSplitSharesItsBudgetAmongChains(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 2, 2, 2, 3, 2)
	s.policy.ChainBudgetUSD, s.policy.MaxTier = 10.04, escalation.TierSafeRepair
	for i := range 3 {
		other := escalation.IncidentChain{ChainID: fmt.Sprintf("other-%d", i+1)}
		other.Status = escalation.ChainRepairing
		s.incidents = append(s.incidents, escalation.Incident{
			ID: fmt.Sprintf("incident-%d", i+1), Services: []string{fmt.Sprintf("service-%d", i+1)}, Severity: escalation.SeverityWarning,
			Chains: []escalation.IncidentChain{other},
		})
	}
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, s.inputs, 1, "three are known, and one is for tier 3")
	require.InDelta(t, 10.00, s.inputs[0].BudgetUSD, 1e-9)
	require.Equal(t, escalation.RuleMaxTier, result.Issues[3].Rule)
}

// TestSplitWithoutBudget checks that no chain starts on a share with which no session can work, and that a person is
// asked.
func TestSplitWithoutBudget(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]float64{"spent": 0.04, "overspent": 0.03, "too little": 0.045} {
		s := newSplitting(t, nil, 2, 2)
		s.policy.ChainBudgetUSD, s.policy.Tiers[1].BudgetUSD = budget, 2.5
		result, err := s.run(t, workflows.ChainInput{})
		require.NoError(t, err, name)
		require.Empty(t, s.inputs, name)
		require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome, name)
		for _, issue := range result.Issues {
			require.Equal(t, escalation.RuleChainBudget, issue.Rule, name)
			require.Contains(t, issue.Reason, "is left for this issue", name)
		}
	}
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeAborted}, nil
	}, 2, 2)
	s.policy.ChainBudgetUSD, s.policy.Gate.Timeout = 0.04, escalation.Duration(time.Hour)
	_, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, s.inputs, 2, "with gates, the chain of each issue asks")
	for _, input := range s.inputs {
		require.Contains(t, input.Ask.Reason, "is left for this issue")
		require.Less(t, input.BudgetUSD, 0.001)
		require.Positive(t, input.BudgetUSD)
	}
}

// TestSplitChainIsListedWithItsIssues checks that the search attributes include the cost of an issue as soon as its
// chain has ended.
func TestSplitChainIsListedWithItsIssues(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, nil, 2, 2)
	s.issue = func(ctx workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		takes := map[string]time.Duration{"service-1": time.Hour, "service-2": 2 * time.Hour}[input.Services[0]]
		return escalation.Chain{Outcome: escalation.OutcomeResolved, CostUSD: 0.10}, workflow.Sleep(ctx, takes)
	}
	costs := make(map[time.Duration]float64)
	var services []string
	start := s.env.Now()
	s.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		attributes, _ := args.Get(0).(temporal.SearchAttributes)
		if cost, changed := attributes.GetFloat64(workflows.CostAttribute); changed {
			costs[s.env.Now().Sub(start).Round(time.Hour)] = cost
		}
		if listed, changed := attributes.GetKeywordList(workflows.ServicesAttribute); changed {
			services = listed
		}
	}).Return(nil)
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	for hours, want := range []float64{0.04, 0.14, 0.24} {
		require.InDelta(t, want, costs[time.Duration(hours)*time.Hour], 1e-9, "after %d hours", hours)
	}
	require.Equal(t, []string{"jellyfin", "service-1", "service-2"}, services)
	require.InDelta(t, 0.04, result.CostUSD, 1e-9, "the chain's own cost is that of its sessions")
	require.InDelta(t, 0.24, result.CostWithIssuesUSD(), 1e-9)
}

func TestIssueAboveTheHighestTierGetsNoChain(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 3, 2)
	s.policy.MaxTier = 2
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, s.inputs, 1)
	require.Empty(t, result.Issues[0].ChainID)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Issues[0].Outcome)
	require.Equal(t, escalation.OutcomeResolved, result.Issues[1].Outcome)
}

// TestIssueThatWaitsLetsTheNextBegin covers three minor issues that wait for days at gates, and a critical issue that
// was found last.
func TestIssueThatWaitsLetsTheNextBegin(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, nil, 2, 2, 2, 2)
	script := s.tiers[0]
	s.tiers[0] = func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := script(t, input)
		report.Verdict.Issues[3].Severity = escalation.SeverityCritical
		return report, err
	}
	began := map[string]time.Duration{}
	var order []string
	start := s.env.Now()
	s.issue = func(ctx workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		began[input.Issue] = workflow.Now(ctx).Sub(start)
		order = append(order, input.Issue)
		if input.Issue == "issue 4" {
			return escalation.Chain{Outcome: escalation.OutcomeResolved}, workflow.Sleep(ctx, time.Hour)
		}
		info := workflow.GetInfo(ctx)
		parent := info.ParentWorkflowExecution
		err := workflow.SignalExternalWorkflow(ctx, parent.ID, parent.RunID, workflows.WaitingSignal, info.WorkflowExecution.ID).Get(ctx, nil)
		if err != nil {
			return escalation.Chain{}, err
		}
		return escalation.Chain{Outcome: escalation.OutcomeNeedsHuman}, workflow.Sleep(ctx, 72*time.Hour)
	}
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	require.Contains(t, order[:2], "issue 4", "the most severe is one of the two that begin")
	for issue, after := range began {
		require.Less(t, after, time.Hour, "%s began after %s", issue, after)
	}
}

// TestEscalateSignalToASplitChain checks that the signal adds an event and has no other effect. Only the chain of an
// issue accepts the signal.
func TestEscalateSignalToASplitChain(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 2, 2)
	s.signalAfter(30*time.Minute, `{"to_tier":3}`)
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	requireRefusedSignal(t, result, "the chain has split; send it to the chain of an issue")
}

func requireRefusedSignal(t *testing.T, chain escalation.Chain, why string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(chain.Events, func(event escalation.Event) bool {
		return event.Kind == escalation.EventSignal && event.Message == "signal escalate is refused: "+why
	}), "%+v", chain.Events)
}

func TestIssueWhoseChainFails(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(service string) (escalation.Chain, error) {
		if service == "service-1" {
			return escalation.Chain{}, temporal.NewNonRetryableApplicationError("the observer's conversation is gone", "Gone", nil)
		}
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 2, 2)
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeFailed, result.Outcome)
	require.Equal(t, "the observer's conversation is gone", result.Issues[0].Reason)
	require.Equal(t, escalation.OutcomeResolved, result.Issues[1].Outcome, "the others are not held up")
}

// TestIssueTakesTheChainsInputAlong checks that the chains of issues get the same value for every field of the input.
// The fields listed below are exceptions.
func TestIssueTakesTheChainsInputAlong(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 2, 2)
	s.policy.Repositories = []string{"/srv/infra", "/srv/other"}
	input := workflows.ChainInput{
		Prompt: "be quick", Repository: "infra", Models: map[escalation.Tier]string{2: "opus"}, Actor: "ben", Verified: true, MaxTier: 2,
	}
	_, err := s.run(t, input)
	require.NoError(t, err)
	require.Equal(t, "/srv/infra", s.ran[0].Directory)
	input.Repository = "/srv/infra"

	given, got := reflect.ValueOf(input), reflect.ValueOf(s.inputs[0])
	ofItsOwn := []string{
		"Trigger", "StartTier", "Services", "ResumeFrom", "Issue", "Incidents", "Ask", // specific to the issue
		"Alert",     // the observer has it in its conversation, which is forked
		"BudgetUSD", // its share of the budget
		"Force",     // applies to the first tier only
		"DryRun",    // a dry run does not split
		"Carried", "problem",
	}
	for i, field := range reflect.VisibleFields(given.Type()) {
		if !slices.Contains(ofItsOwn, field.Name) {
			require.False(t, given.Field(i).IsZero(), "set %s here, or say why an issue has its own", field.Name)
			require.Equal(t, given.Field(i).Interface(), got.Field(i).Interface(), field.Name)
		}
	}
}

// TestIssueCancelledAlone cancels the chain of one of two issues. That does not fail the parent, and the cost of the
// cancelled chain is known.
func TestIssueCancelledAlone(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(service string) (escalation.Chain, error) {
		if service == "service-1" {
			return escalation.Chain{}, temporal.NewCanceledError(escalation.Chain{Outcome: escalation.OutcomeAborted, CostUSD: 0.70})
		}
		return escalation.Chain{Outcome: escalation.OutcomeResolved, CostUSD: 0.10}, nil
	}, 2, 2)
	result, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	require.Equal(t, "the chain of this issue was cancelled", result.Issues[0].Reason)
	require.InDelta(t, 0.04+0.70+0.10, result.CostWithIssuesUSD(), 1e-9)
}

// TestCancelledChainTellsWhatItCameTo checks that a cancelled chain returns itself in the details of its error, where
// its parent reads it.
func TestCancelledChainTellsWhatItCameTo(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
	_, err := w.run(t, workflows.ChainInput{})
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	var chain escalation.Chain
	require.NoError(t, cancelled.Details(&chain))
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.InDelta(t, 0.03, chain.CostUSD, 1e-9)
}

func TestSplitChainCancelled(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	}, 2, 2, 2)
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, 30*time.Minute)
	_, err := s.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := s.query(t)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	for _, issue := range chain.Issues {
		require.Equal(t, escalation.OutcomeAborted, issue.Outcome)
	}
}

// TestIssueChain runs the chain of an issue. It checks that the chain continues the observer's record and does not
// split again.
func TestIssueChain(t *testing.T) {
	t.Parallel()
	const observer = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	known := escalation.Session{ID: 7, SessionID: observer, Tier: escalation.TierObserve}
	known.Status, known.ReportedSessionID = escalation.SessionCompleted, observer
	known.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Summary: "two things are broken", Services: []string{"a", "b"}}
	w := newWorld(t, ends(escalation.SessionResumeFailed), concludes(escalation.VerdictResolved, 0.50))
	w.known = map[string]escalation.Session{observer: known}
	result, err := w.run(t, workflows.ChainInput{
		Trigger: escalation.TriggerIssue, StartTier: 2, Services: []string{"a"}, BudgetUSD: 1,
		ResumeFrom: &workflows.ResumeFrom{SessionID: observer},
	})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, []int64{7, 7}, []int64{result.Sessions[0].ParentID, result.Sessions[1].ParentID})
	require.Equal(t, "two things are broken", w.ran[1].Handoff.Summary, "its verdict serves as a handoff")
	require.Equal(t, []string{"a"}, w.requests[0].Services, "its cooldowns are those of its own services")
	require.InDelta(t, 1.00, result.Sessions[0].BudgetUSD, 1e-9)
}

func TestChainDoesNotResumeWhatStillRuns(t *testing.T) {
	t.Parallel()
	const busy = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	running := escalation.Session{ID: 7, SessionID: busy, ChainID: "other"}
	running.Status = escalation.SessionRunning
	w := newWorld(t)
	w.known = map[string]escalation.Session{busy: running}
	_, err := w.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: busy}})
	require.ErrorContains(t, err, "resume_from.session_id "+busy+" is still running in chain other")
	require.Empty(t, w.ran)
}
