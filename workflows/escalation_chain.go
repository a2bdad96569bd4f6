package workflows

import (
	"cmp"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Names that are relied upon from outside.
const (
	// ChainWorkflow is the workflow type of EscalationChain.
	ChainWorkflow = "EscalationChain"
	// ChainQuery answers with the whole chain as JSON.
	ChainQuery = "chain"
	// ErrorTypeInput is the type of the application error that refuses an input.
	ErrorTypeInput = "InvalidInput"
)

// ChainResult is the chain as it ended.
type ChainResult = escalation.Chain

// chainRun is one chain while it runs.
type chainRun struct {
	input  ChainInput
	policy escalation.Policy
	// state is what people see.
	state escalation.Chain
	// unrecorded are the events that the next record takes along.
	unrecorded []escalation.Event
}

// EscalationChain runs one chain: Tier 1, and whatever it escalates to, until an outcome.
func EscalationChain(ctx workflow.Context, input ChainInput) (ChainResult, error) {
	chain, err := setUpChain(ctx, input)
	if err != nil {
		return ChainResult{}, err
	}
	return chain.run(ctx)
}

// setUpChain registers the handlers, checks the input and takes the snapshot of the policy.
func setUpChain(ctx workflow.Context, input ChainInput) (*chainRun, error) {
	chain := newChainRun(ctx, input)
	if err := workflow.SetQueryHandler(ctx, ChainQuery, chain.query); err != nil {
		return nil, err
	}
	if err := input.Validate(); err != nil {
		return nil, chain.refuse(ctx, err)
	}
	var settings *activities.Settings
	var loaded activities.LoadPolicyResult
	policyCtx := withRecords(ctx, "policy snapshot")
	if err := workflow.ExecuteActivity(policyCtx, settings.LoadPolicy).Get(ctx, &loaded); err != nil {
		if ctx.Err() != nil && endsWhenCancelled(ctx) {
			chain.abort(ctx, "the chain was cancelled before it began")
			return nil, cmp.Or(chain.publish(ctx), ctx.Err())
		}
		return nil, err
	}
	chain.policy = narrow(loaded.Policy, input)
	chain.state.DryRun, chain.state.MaxTier = chain.policy.DryRun, chain.policy.MaxTier
	if err := checkStart(chain.policy, chain.firstStep().tier); err != nil {
		return nil, chain.refuse(ctx, err)
	}
	return chain, nil
}

func newChainRun(ctx workflow.Context, input ChainInput) *chainRun {
	return &chainRun{input: input, state: escalation.Chain{
		ID:        workflow.GetInfo(ctx).WorkflowExecution.ID,
		Trigger:   cmp.Or(input.Trigger, escalation.TriggerManual),
		Services:  input.Services,
		DryRun:    input.DryRun,
		MaxTier:   input.MaxTier,
		StartedAt: workflow.Now(ctx),
	}}
}

func (c *chainRun) query() (escalation.Chain, error) { return c.state, nil }

// refuse ends the chain because of its input, before anything was recorded or run.
func (c *chainRun) refuse(ctx workflow.Context, problem error) error {
	c.state.Outcome, c.state.Reason, c.state.EndedAt = escalation.OutcomeFailed, problem.Error(), workflow.Now(ctx)
	return temporal.NewNonRetryableApplicationError(problem.Error(), ErrorTypeInput, nil)
}

// endsWhenCancelled reports whether the chain ends at once when it is cancelled while no session is
// open. Chains of before that change wait for their database.
func endsWhenCancelled(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "ends-when-cancelled", workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// abort ends the chain because it was cancelled while no session was open.
func (c *chainRun) abort(ctx workflow.Context, reason string) {
	c.state.Outcome, c.state.Reason, c.state.EndedAt = escalation.OutcomeAborted, reason, workflow.Now(ctx)
	c.note(ctx, escalation.Event{Kind: escalation.EventChainEnded, Message: describeOutcome(c.state) + ": " + reason})
}

// run is the story of a chain.
func (c *chainRun) run(ctx workflow.Context) (ChainResult, error) {
	c.note(ctx, escalation.Event{Kind: escalation.EventChainStarted, Message: describeStart(c.state)})
	for step := c.firstStep(); ; {
		session, err := c.runTier(ctx, step)
		if err != nil {
			return c.state, err
		}
		decision := escalation.Decide(c.policy, session)
		if err := c.conclude(ctx, session, decision); err != nil {
			return c.state, err
		}
		switch decision.Action {
		case escalation.DecisionComplete:
			if session.Status == escalation.SessionStopped {
				return c.state, ctx.Err() // nil unless the chain was cancelled
			}
			return c.state, nil
		case escalation.DecisionEscalate:
			step = step.escalate(session, decision.Tier)
		case escalation.DecisionHandoff:
			step = step.handOff(session)
		}
	}
}

// narrow applies what the input asks for, which can only be less than the policy allows.
func narrow(policy escalation.Policy, input ChainInput) escalation.Policy {
	policy.DryRun = policy.DryRun || input.DryRun
	if input.MaxTier != 0 {
		policy.MaxTier = min(policy.MaxTier, input.MaxTier)
	}
	return policy
}
