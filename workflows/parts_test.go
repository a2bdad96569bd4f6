package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// relay is a small workflow composed of the parts of a chain. One agent works, and another one checks its work with the
// conversation of the first. A person decides at a gate whether the result counts.
func relay(ctx workflow.Context, request string) (escalation.Chain, error) {
	policy, err := parts.LoadPolicy(ctx)
	if err != nil {
		return escalation.Chain{}, err
	}
	begun := escalation.Chain{ID: workflow.GetInfo(ctx).WorkflowExecution.ID, StartedAt: workflow.Now(ctx)}
	of := parts.NewSet(begun)
	*of.Policy = policy
	log, agents, people, gate := of.Log, of.Sessions, of.People, of.Gates
	if err := gate.Handle(ctx); err != nil {
		return log.Chain, err
	}
	var before *escalation.Session
	for _, tier := range []escalation.Tier{escalation.TierSafeRepair, escalation.TierObserve} {
		session, err := relayTo(ctx, agents, tier, before, request)
		if err != nil {
			return log.Chain, err
		}
		before = &session
	}
	decision := escalation.Decision{Action: escalation.DecisionGate, Rule: escalation.RuleVerdict, Reason: "is that what you wanted?"}
	if opened, err := gate.Open(ctx, parts.GateRequest{Decision: decision, Tier: before.Tier}); err != nil || !opened {
		return log.Chain, err
	}
	if _, err := gate.Wait(ctx, before.Tier); err != nil {
		return log.Chain, err
	}
	log.Chain.Outcome, log.Chain.EndedAt = escalation.OutcomeAborted, workflow.Now(ctx)
	if gate.Latest().Answer.Action == escalation.GateOverride {
		log.Chain.Outcome = escalation.OutcomeOverridden
	}
	people.Await(ctx)
	return log.Chain, log.Record(ctx, "record the end", true)
}

// relayTo runs the session of one agent.
func relayTo(
	ctx workflow.Context, agents *parts.Sessions, tier escalation.Tier, before *escalation.Session, request string,
) (escalation.Session, error) {
	wanted := parts.SessionRequest{Tier: tier, Context: escalation.ChooseContinuity(escalation.ContinuityInput{Parent: before}), Origin: before}
	opening, err := agents.Open(ctx, wanted)
	if err != nil {
		return escalation.Session{}, err
	}
	session := opening.Session
	input := activities.RunTierInput{
		ChainID: session.ChainID, SessionID: session.SessionID, Tier: tier, Policy: agents.Policy.OfSession(tier), Request: request,
		Continuity: session.Continuity, Cooldowns: opening.Services,
	}
	if before != nil {
		input.ParentTier, input.ParentSessionID = before.Tier, before.SessionID
	}
	var tiers *activities.Tiers
	var result activities.RunTierResult
	session, _ = agents.Run(ctx, session, tiers.RunTier, input, &result)
	agents.Ended(ctx, session)
	return *agents.Log.Chain.Last(), agents.Close(ctx, session, false)
}

// keeper stores records and admits every session.
type keeper struct {
	activities.Recorder

	opened []escalation.Session
	closed []string
	events []escalation.Event
}

func (k *keeper) OpenSession(
	_ context.Context, session escalation.Session, _ escalation.AdmissionRequest, _ escalation.Policy,
) (escalation.AdmissionResult, error) {
	session.ID = int64(len(k.opened) + 1)
	k.opened = append(k.opened, session)
	return escalation.AdmissionResult{Session: session}, nil
}

func (k *keeper) Review(context.Context, escalation.AdmissionRequest, escalation.Policy) (escalation.Admission, error) {
	return escalation.Admission{Granted: true}, nil
}

func (k *keeper) ReleaseServices(context.Context, string) error { return nil }

func (k *keeper) CloseSession(_ context.Context, sessionID string, _ escalation.Report, _ time.Time) error {
	k.closed = append(k.closed, sessionID)
	return nil
}

func (k *keeper) KnownIncidents(context.Context, escalation.KnownIncidents) ([]escalation.Incident, error) {
	return nil, nil
}

func (k *keeper) ChainIncidents(context.Context, escalation.ChainRun, string) (own, healed []escalation.Incident, err error) {
	return nil, nil, nil
}

func (k *keeper) RecordProgress(context.Context, escalation.ChainRun, escalation.ChainProgress) error {
	return nil
}

func (k *keeper) AppendEvents(_ context.Context, events []escalation.Event) error {
	k.events = append(k.events, events...)
	return nil
}

func (k *keeper) GateNotes(context.Context, escalation.NotesRequest) (escalation.GateNotes, error) {
	return escalation.GateNotes{}, nil
}

func (k *keeper) ContextWindow(context.Context, string) (int, error) { return 0, nil }

var (
	_ activities.Recorder     = (*keeper)(nil)
	_ activities.WindowReader = (*keeper)(nil)
)

// TestPartsMakeAnotherWorkflow runs relay with two agents in turn and one gate.
func TestPartsMakeAnotherWorkflow(t *testing.T) {
	t.Parallel()
	policy := escalation.Policy{
		Tiers: []escalation.TierPolicy{{Model: "haiku"}, {Model: "sonnet"}, {Model: "opus"}}, MaxTier: escalation.TierFullRepair,
		Gate: escalation.GatePolicy{Timeout: escalation.Duration(time.Hour), OnTimeout: escalation.GateAbort},
	}
	records := &keeper{}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute) // both for a busy machine
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.RegisterWorkflow(relay)
	env.RegisterActivity(&activities.Settings{Policy: policy, Windows: records})
	env.RegisterActivity(&activities.Records{Store: records})
	var ran []activities.RunTierInput
	tiers := &activities.Tiers{}
	env.RegisterActivity(tiers)
	env.OnActivity(tiers.RunTier, mock.Anything, mock.Anything).Return(
		func(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
			ran = append(ran, input)
			return activities.RunTierResult{Report: escalation.Report{
				Status: escalation.SessionCompleted, ReportedSessionID: input.SessionID, Cost: escalation.Cost{CostUSD: 0.25},
				Verdict: &escalation.Verdict{Status: escalation.VerdictResolved, Summary: "done"},
			}}, nil
		})
	var open *escalation.Gate
	env.RegisterDelayedCallback(func() {
		answer, err := env.QueryWorkflow(parts.GateQuery)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&open))
		env.SignalWorkflow(parts.ResolveGate, escalation.GateAnswer{GateID: open.ID, Action: escalation.GateOverride, Actor: "ada"})
	}, time.Minute)

	env.ExecuteWorkflow(relay, "tidy up")

	require.NoError(t, env.GetWorkflowError())
	var result escalation.Chain
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	require.Equal(t, "is that what you wanted?", open.Reason)
	require.InDelta(t, 0.5, result.CostUSD, 1e-9)
	require.Len(t, ran, 2)
	require.Equal(t, escalation.ContinuityResume, ran[1].Continuity)
	require.Equal(t, ran[0].SessionID, ran[1].ParentSessionID)
	require.Equal(t, records.opened[0].ID, records.opened[1].ParentID)
	require.Equal(t, []string{ran[0].SessionID, ran[1].SessionID}, records.closed)
	require.Equal(t, result.Events, records.events)
}
