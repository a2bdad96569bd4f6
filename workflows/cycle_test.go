package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// calendar runs a cycle of a schedule under test. A function of the test stands in for its chain.
type calendar struct {
	env     *testsuite.TestWorkflowEnvironment
	started []workflows.ChainInput
	omitted activities.OmittedCycles
	askErr  error
	notify  bool
	told    []escalation.Notification
	tellErr error
}

func newCalendar(t *testing.T, chain func(ctx workflow.Context, input workflows.ChainInput) (workflows.ChainResult, error)) *calendar {
	t.Helper()
	c := &calendar{env: newEnvironment(new(testsuite.WorkflowTestSuite)), notify: true}
	c.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "cycle-hourly-2026-03-01T12:00:00Z", TaskQueue: "claudeops"})
	c.env.RegisterWorkflow(workflows.Cycle)
	c.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, input workflows.ChainInput) (workflows.ChainResult, error) {
		c.started = append(c.started, input)
		return chain(ctx, input)
	}, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	c.env.RegisterActivity(&activities.Settings{})
	c.env.RegisterActivity(&activities.Notifications{})
	c.env.RegisterActivity(&activities.Schedules{})
	c.env.OnActivity("LoadPolicy", mock.Anything, mock.Anything).Maybe().Return(
		func(context.Context, activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
			return activities.LoadPolicyResult{Policy: escalation.Policy{Notify: c.notify}}, nil
		})
	c.env.OnActivity("Omitted", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.OmittedInput) (activities.OmittedCycles, error) {
			require.Equal(t, "hourly", input.ScheduleID)
			return c.omitted, c.askErr
		})
	c.env.OnActivity("Notify", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.NotifyInput) error {
			c.told = append(c.told, input.Notification)
			return c.tellErr
		})
	return c
}

// scheduled makes the cycle one that a schedule started. last is the result of the schedule's previous cycle; nil if
// there was none.
func (c *calendar) scheduled(t *testing.T, last *workflows.CycleResult) {
	t.Helper()
	attribute := temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")
	require.NoError(t, c.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(attribute.ValueSet("hourly"))))
	if last != nil {
		c.env.SetLastCompletionResult(*last)
	}
}

func (c *calendar) run(t *testing.T, input workflows.ChainInput) (workflows.CycleResult, error) {
	t.Helper()
	c.env.ExecuteWorkflow(workflows.Cycle, input)
	require.True(t, c.env.IsWorkflowCompleted())
	var result workflows.CycleResult
	if err := c.env.GetWorkflowError(); err != nil {
		return result, err
	}
	require.NoError(t, c.env.GetWorkflowResult(&result))
	return result, nil
}

func endsWith(outcome escalation.Outcome) func(workflow.Context, workflows.ChainInput) (workflows.ChainResult, error) {
	return func(ctx workflow.Context, _ workflows.ChainInput) (workflows.ChainResult, error) {
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return workflows.ChainResult{}, err
		}
		return workflows.ChainResult{ID: workflow.GetInfo(ctx).WorkflowExecution.ID, Outcome: outcome, Reason: "the reason", CostUSD: 0.25}, nil
	}
}

func TestCycleRunsItsChain(t *testing.T) {
	t.Parallel()
	for _, outcome := range []escalation.Outcome{escalation.OutcomeHealthy, escalation.OutcomeNeedsHuman, escalation.OutcomeResolved} {
		c := newCalendar(t, endsWith(outcome))
		result, err := c.run(t, workflows.ChainInput{Services: []string{"nas"}, Trigger: "manual"})
		require.NoError(t, err)
		require.Equal(t, workflows.CycleResult{ChainID: "chain-hourly-2026-03-01T12:00:00Z", Outcome: outcome, CostUSD: 0.25}, result)
		require.Equal(t, []workflows.ChainInput{{Services: []string{"nas"}, Trigger: escalation.TriggerScheduled, Actor: "schedule"}}, c.started)
	}
}

func TestCycleFailsWithItsChain(t *testing.T) {
	t.Parallel()
	refusing := func(workflow.Context, workflows.ChainInput) (workflows.ChainResult, error) {
		return workflows.ChainResult{}, temporal.NewNonRetryableApplicationError("start_tier 3 is too high", workflows.ErrorTypeInput, nil)
	}
	for want, chain := range map[string]func(workflow.Context, workflows.ChainInput) (workflows.ChainResult, error){
		"chain chain-hourly-2026-03-01T12:00:00Z failed: the reason":               endsWith(escalation.OutcomeFailed),
		"chain chain-hourly-2026-03-01T12:00:00Z failed: start_tier 3 is too high": refusing,
	} {
		_, err := newCalendar(t, chain).run(t, workflows.ChainInput{})
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, want, failure.Message())
		require.Equal(t, workflows.ErrorTypeChainFailed, failure.Type())
	}
}

func TestCycleRefusesItsInput(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, endsWith(escalation.OutcomeHealthy))
	_, err := c.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"}})
	require.ErrorContains(t, err, "a cycle has a conversation of its own: resume_from is not for schedules")
	c = newCalendar(t, endsWith(escalation.OutcomeHealthy))
	_, err = c.run(t, workflows.ChainInput{StartTier: 4})
	require.ErrorContains(t, err, "start_tier 4 is not a tier")
	require.Empty(t, c.started)
}

// TestCycleDoesNotWaitForAChainThatWaits checks that a cycle ends when its chain signals a long wait. Later cycles are
// then not delayed.
func TestCycleDoesNotWaitForAChainThatWaits(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, func(ctx workflow.Context, _ workflows.ChainInput) (workflows.ChainResult, error) {
		starter := workflow.GetInfo(ctx).ParentWorkflowExecution
		if err := workflow.SignalExternalWorkflow(ctx, starter.ID, "", workflows.WaitingSignal, nil).Get(ctx, nil); err != nil {
			return workflows.ChainResult{}, err
		}
		return workflows.ChainResult{}, workflow.Sleep(ctx, 72*time.Hour)
	})
	result, err := c.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.True(t, result.Waiting)
	require.Empty(t, result.Outcome, "it did not wait for one")
}

// TestAChainDetachesOnce checks that a chain signals its parent only once, even if both the chain and one of its child
// chains wait.
func TestAChainDetachesOnce(t *testing.T) {
	t.Parallel()
	signals := 0
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "the-chain"})
		chain := workflow.ExecuteChildWorkflow(ctx, workflows.EscalationChain, workflows.ChainInput{})
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				workflow.GetSignalChannel(ctx, workflows.WaitingSignal).Receive(ctx, nil)
				signals++
			}
		})
		if err := chain.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return err
		}
		if err := chain.SignalChildWorkflow(ctx, workflows.WaitingSignal, "a child of the chain").Get(ctx, nil); err != nil {
			return err
		}
		return chain.Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "Starter"})
	w.answer(t)
	w.env.ExecuteWorkflow("Starter")
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 1, signals)
}

// TestAChainThatWaitsForTheDaysBudgetDoesNotDetach checks that a chain that waits for the day's budget does not detach.
// So it delays the next cycle. A chain that waits for a service detaches.
func TestAChainThatWaitsForTheDaysBudgetDoesNotDetach(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts    escalation.AdmissionFacts
		detaches bool
	}{
		"the day's budget": {escalation.AdmissionFacts{DaySpentUSD: 1, DayReservedUSD: 9}, false},
		"a busy service":   {escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "other"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patient(newWorld(t, concludes(escalation.VerdictResolved, 0.01)))
			w.policy.DayBudgetUSD = 10
			start, signalled := w.env.Now(), false
			w.facts = func(_ escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
				if now.Sub(start) < 10*time.Minute {
					return tt.facts
				}
				return escalation.AdmissionFacts{}
			}
			w.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
				workflow.Go(ctx, func(ctx workflow.Context) {
					workflow.GetSignalChannel(ctx, workflows.WaitingSignal).Receive(ctx, nil)
					signalled = true
				})
				input := workflows.ChainInput{StartTier: 2, Services: []string{"jellyfin"}}
				return workflow.ExecuteChildWorkflow(ctx, workflows.EscalationChain, input).Get(ctx, nil)
			}, workflow.RegisterOptions{Name: "Starter"})
			w.answer(t)
			w.env.ExecuteWorkflow("Starter")
			require.NoError(t, w.env.GetWorkflowError())
			require.Equal(t, tt.detaches, signalled)
		})
	}
}

func TestOmittedCyclesAreTold(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, endsWith(escalation.OutcomeHealthy))
	c.scheduled(t, &workflows.CycleResult{Omitted: activities.OmittedCycles{Overlapped: 1, Late: 1}})
	c.omitted = activities.OmittedCycles{Overlapped: 3, Late: 5}
	result, err := c.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, c.omitted, result.Omitted)
	require.Len(t, c.told, 1)
	require.Equal(t, escalation.NotifyCycleMissed, c.told[0].Kind)
	require.Equal(t, "schedule/hourly/3/5", c.told[0].Key)
	require.Contains(t, c.told[0].Title, "scheduled cycles did not take place (hourly)")
	require.Contains(t, c.told[0].Text, "2 skipped because the one before still ran, 4 missed while Temporal was away")
	require.Contains(t, c.told[0].Then, "claudeops schedule describe hourly")
}

func TestOmittedCyclesAreToldUntilThatSucceeds(t *testing.T) {
	t.Parallel()
	last := &workflows.CycleResult{Omitted: activities.OmittedCycles{Overlapped: 1}}
	c := newCalendar(t, endsWith(escalation.OutcomeHealthy))
	c.scheduled(t, last)
	c.omitted, c.tellErr = activities.OmittedCycles{Overlapped: 2}, errors.New("nobody answers")
	result, err := c.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.NotEmpty(t, c.told)
	require.Equal(t, last.Omitted, result.Omitted, "the next cycle tells it again")
}

func TestNothingOmitted(t *testing.T) {
	t.Parallel()
	counted := activities.OmittedCycles{Overlapped: 3}
	for name, prepare := range map[string]func(c *calendar){
		"as the last cycle counted": func(c *calendar) { c.scheduled(t, &workflows.CycleResult{Omitted: counted}) },
		"nobody is notified":        func(c *calendar) { c.scheduled(t, nil); c.notify = false },
		"started by hand":           func(*calendar) {},
		"the schedule cannot be asked": func(c *calendar) {
			c.scheduled(t, &workflows.CycleResult{Omitted: counted})
			c.askErr = errors.New("denied")
		},
		"no result and nothing left out": func(c *calendar) { c.scheduled(t, nil); c.omitted = activities.OmittedCycles{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalendar(t, endsWith(escalation.OutcomeHealthy))
			c.omitted = counted
			prepare(c)
			result, err := c.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Empty(t, c.told)
			require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
		})
	}
}

// TestCancelledCycleCancelsItsChain checks the behaviour on which the overlap policy cancel_other depends.
func TestCancelledCycleCancelsItsChain(t *testing.T) {
	t.Parallel()
	cancelled := false
	c := newCalendar(t, func(ctx workflow.Context, _ workflows.ChainInput) (workflows.ChainResult, error) {
		err := workflow.Sleep(ctx, time.Hour)
		cancelled = temporal.IsCanceledError(err)
		return workflows.ChainResult{}, err
	})
	c.env.RegisterDelayedCallback(c.env.CancelWorkflow, time.Minute)
	_, err := c.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.True(t, cancelled)
}
