package chain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// Workflow is the workflow type of EscalationChain.
const Workflow = "EscalationChain"

// Result is the final state of a chain.
type Result = escalation.Chain

// chainRun is the state of a running chain. It connects the parts of package workflows, such as sessions and gates, and
// decides on the next step.
type chainRun struct {
	*parts.Set

	input  Input
	parent *parts.ParentLink
	// WaitingSince is the time at which the chain began to wait for admission; zero if it has not waited. An answer
	// at a gate sets it to zero.
	waitingSince time.Time
	// proposed is the change of the chain with the state of its review; nil if it has committed nothing.
	proposed *proposedChange
	// unknown lists those services in the input that the services file lacks.
	unknown []string
}

// EscalationChain runs one chain until it has an outcome. Normally it begins with Tier 1 and escalates to higher tiers.
// The input can name another first tier.
func EscalationChain(ctx workflow.Context, input Input) (Result, error) {
	chain, err := setUpChain(ctx, input)
	if err != nil {
		return Result{}, err
	}
	return chain.EndRun(ctx, chain.run(ctx))
}

// setUpChain registers the handlers and checks the input. For a new chain, it also takes the snapshot of the policy.
func setUpChain(ctx workflow.Context, input Input) (*chainRun, error) {
	chain := newChainRun(ctx, input)
	if err := chain.Handle(ctx); err != nil {
		return nil, err
	}
	if err := chain.checkInput(ctx); err != nil {
		chain.forgetUnchecked()
		return nil, chain.Log.Refuse(ctx, err)
	}
	chain.parent.Relay(ctx)
	if input.Carried != nil {
		return chain, nil
	}
	err := chain.loadPolicy(ctx)
	return chain, err
}

// loadPolicy takes the snapshot of the policy and applies the limits of the input to it. Services in the input get
// their canonical names.
func (c *chainRun) loadPolicy(ctx workflow.Context) error {
	loaded, err := parts.LoadSettings(ctx, activities.LoadPolicyInput{Services: c.input.Services})
	if err != nil && ctx.Err() != nil {
		return c.abort(ctx, "the chain was cancelled before it began")
	}
	if err != nil {
		return err
	}
	*c.Policy = applyLimits(loaded.Policy, c.input)
	c.input.Services, c.Log.Chain.Services, c.unknown = loaded.Services, loaded.Services, loaded.Unknown
	c.Log.Chain.DryRun, c.Log.Chain.MaxTier = c.Policy.DryRun, c.Policy.MaxTier
	if c.Sessions.Directory, err = parts.FindRepository(c.Policy.Repositories, c.input.Repository); err == nil {
		err = checkStart(*c.Policy, c.input)
	}
	if err != nil {
		return c.refuseByPolicy(ctx, err)
	}
	return nil
}

// checkInput returns the first error that can be found in the input before the policy is loaded. If the input comes
// from the previous run and this worker cannot decode it, checkInput panics. A panic fails the workflow task, and not
// the chain. A worker of a release that can decode the input then continues the chain.
func (c *chainRun) checkInput(ctx workflow.Context) error {
	if c.input.problem != nil && parts.IsContinued(ctx) {
		panic(fmt.Sprintf("what the run before has handed over cannot be read: %v", c.input.problem))
	}
	if err := c.input.Validate(); err != nil {
		return err
	}
	if c.input.Carried != nil && !parts.IsContinued(ctx) {
		return parts.ErrCarried
	}
	if escalation.IsConversation(c.Log.Chain.ID) {
		return fmt.Errorf("the workflow ID of a chain must not begin with %s, which is for conversations",
			escalation.ConversationPrefix)
	}
	return nil
}

func newChainRun(ctx workflow.Context, input Input) *chainRun {
	if input.Carried != nil && parts.IsContinued(ctx) {
		return input.Carried.chainRun(input)
	}
	var known []escalation.ChainIncident
	for _, id := range input.Incidents {
		known = append(known, escalation.ChainIncident{ID: id})
	}
	return composeChain(input, parts.NewSet(escalation.Chain{
		Incidents: known,
		ID:        workflow.GetInfo(ctx).WorkflowExecution.ID,
		Trigger:   cmp.Or(input.Trigger, escalation.TriggerManual),
		Services:  input.Services,
		DryRun:    input.DryRun,
		MaxTier:   input.MaxTier,
		StartedAt: workflow.Now(ctx),
		Actor:     input.Actor,
		Verified:  input.Verified,
	}))
}

// composeChain returns a chain with its parts.
func composeChain(input Input, of *parts.Set) *chainRun {
	of.AddIncidents()
	of.Sessions.HasRequest = input.Prompt != ""
	return &chainRun{Set: of, input: input, parent: &parts.ParentLink{ChainID: of.Log.Chain.ID}}
}

// forgetUnchecked removes values of an invalid input from the visible state, so that they do not become search
// attributes.
func (c *chainRun) forgetUnchecked() {
	c.Log.Chain.Services, c.Log.Chain.Incidents = nil, nil
	if !triggerPattern.MatchString(string(c.Log.Chain.Trigger)) {
		c.Log.Chain.Trigger = escalation.TriggerManual
	}
}

// refuseByPolicy ends the chain because the configuration does not permit its input. It returns the error for the end
// of the workflow. If a person started the chain by hand, the person sees this error. If the chain is the chain of an
// issue, its parent receives the error. For other chains, such as the chains of a schedule, refuseByPolicy also
// records the refusal and notifies people.
func (c *chainRun) refuseByPolicy(ctx workflow.Context, problem error) error {
	refusal := c.Log.Refuse(ctx, problem)
	chain := c.Log.Chain
	if chain.Trigger == escalation.TriggerManual || chain.Trigger == escalation.TriggerIssue {
		return refusal
	}
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventChainEnded, Severity: escalation.SeverityCritical,
		Message: parts.DescribeOutcome(chain) + ": " + chain.Reason,
	})
	c.People.Announce(ctx, nil)
	c.Log.RecordRest(ctx)
	return refusal
}

// abort ends a chain that was cancelled while no session was open. It returns the error for the end of the workflow.
func (c *chainRun) abort(ctx workflow.Context, reason string) error {
	chain := &c.Log.Chain
	chain.Wait = nil
	chain.Outcome, chain.Rule, chain.Reason = escalation.OutcomeAborted, escalation.RuleCancelled, reason
	chain.EndedAt = workflow.Now(ctx)
	c.Log.Add(ctx, escalation.Event{Kind: escalation.EventChainEnded, Message: parts.DescribeOutcome(*chain) + ": " +
		reason})
	c.Log.Progress = c.Incidents.Progress(ctx, escalation.Cancelled())
	return cmp.Or(c.Log.RecordEnd(ctx), ctx.Err())
}

// abortIfCancelled aborts a cancelled chain and returns its error. If the chain is not cancelled, abortIfCancelled
// returns err.
func (c *chainRun) abortIfCancelled(ctx workflow.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return c.abort(ctx, parts.CancelledBeforeSession)
}

// run executes the steps of the chain until it ends.
func (c *chainRun) run(ctx workflow.Context) error {
	next, err := c.begin(ctx)
	for err == nil && next != nil {
		c.Incidents.Send(ctx) // before a step that can wait for days
		next, err = next.do(ctx, c)
	}
	c.Incidents.Send(ctx)
	if err == nil && c.Log.Chain.Outcome == escalation.OutcomeAborted {
		return ctx.Err() // nil unless the chain was cancelled
	}
	return err
}

// begin returns the first step. A chain that continues as new begins at its gate.
func (c *chainRun) begin(ctx workflow.Context) (step, error) {
	if c.input.Carried != nil {
		c.Log.Show(ctx)
		return c.input.Carried.Step, nil
	}
	first, err := c.firstWork(ctx)
	if err != nil {
		return nil, err
	}
	c.Log.Add(ctx, escalation.Event{Kind: escalation.EventChainStarted, Message: parts.DescribeStart(c.Log.Chain)})
	c.listUnknown(ctx, "", c.unknown)
	switch {
	case first.Tier > c.Policy.MaxTier:
		return c.beginBlocked(ctx, first)
	case c.input.Ask != nil:
		c.Gates.History = c.input.Ask.History
		return c.stop(ctx, pending{first, true}, escalation.Gated(*c.Policy, escalation.AskFirst(c.input.Ask.Reason)))
	}
	return sessionStep{first}, nil
}

// applyLimits applies the limits of the input to the policy. The input can lower a limit, but not raise it. The input
// can also replace models. A tier with another model keeps its budget.
func applyLimits(policy escalation.Policy, input Input) escalation.Policy {
	policy.DryRun = policy.DryRun || input.DryRun
	if input.MaxTier != 0 {
		policy.MaxTier = min(policy.MaxTier, input.MaxTier)
	}
	policy.Tiers = slices.Clone(policy.Tiers)
	for _, tier := range escalation.Tiers() {
		own := &policy.Tiers[tier-1]
		if model, given := input.Models[tier]; given && model != own.Model {
			own.Model, own.ContextWindow = model, 0 // unknown until the CLI reports it
		}
	}
	return parts.WithBudget(policy, input.BudgetUSD)
}
