package workflows

import (
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

// setUpChain checks the input, takes the snapshot of the policy and registers the handlers.
func setUpChain(ctx workflow.Context, input ChainInput) (*chainRun, error) {
	if err := input.Validate(); err != nil {
		return nil, refuse(err)
	}
	var settings *activities.Settings
	var loaded activities.LoadPolicyResult
	if err := workflow.ExecuteActivity(withRecords(ctx, "policy snapshot"), settings.LoadPolicy).Get(ctx, &loaded); err != nil {
		return nil, err
	}
	chain := &chainRun{input: input, policy: narrow(loaded.Policy, input)}
	if err := checkStart(chain.policy, chain.firstStep().tier); err != nil {
		return nil, refuse(err)
	}
	chain.state = escalation.Chain{
		ID:        workflow.GetInfo(ctx).WorkflowExecution.ID,
		Trigger:   input.Trigger,
		Services:  input.Services,
		DryRun:    chain.policy.DryRun,
		MaxTier:   chain.policy.MaxTier,
		StartedAt: workflow.Now(ctx),
	}
	if chain.state.Trigger == "" {
		chain.state.Trigger = escalation.TriggerManual
	}
	return chain, workflow.SetQueryHandler(ctx, ChainQuery, func() (escalation.Chain, error) { return chain.state, nil })
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
			return c.state, ctx.Err()
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

func refuse(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrorTypeInput, nil)
}
