package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

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

// chainRun is one chain while it runs: the parts that it is made of, and what only a chain has.
type chainRun struct {
	input    ChainInput
	policy   *escalation.Policy
	log      *eventLog
	sessions *sessions
	gates    *gates
	people   *notifier
	requests *escalationRequests
	parent   *parentLink
	// waitingSince is when the chain first waited to be admitted; zero if it never did.
	waitingSince time.Time
}

// EscalationChain runs one chain: Tier 1, and whatever it escalates to, until an outcome.
func EscalationChain(ctx workflow.Context, input ChainInput) (ChainResult, error) {
	chain, err := setUpChain(ctx, input)
	if err != nil {
		return ChainResult{}, err
	}
	err = chain.run(ctx)
	if !workflow.IsContinueAsNewError(err) {
		chain.announce(ctx, err)
		chain.gates.refuseLateReplies(ctx)
		chain.requests.refuseLate(ctx)
	}
	if temporal.IsCanceledError(err) {
		err = cancelled(chain.log.chain)
	}
	return chain.log.chain, err
}

// setUpChain registers the handlers, checks the input and takes the snapshot of the policy.
func setUpChain(ctx workflow.Context, input ChainInput) (*chainRun, error) {
	chain := newChainRun(ctx, input)
	err := workflow.SetQueryHandler(ctx, ChainQuery, chain.log.query)
	if err == nil {
		err = chain.gates.handle(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := chain.checkInput(ctx); err != nil {
		chain.forgetUnchecked()
		return nil, chain.refuse(ctx, err)
	}
	chain.parent.relay(ctx)
	if input.Carried != nil {
		return chain, nil
	}
	err = chain.loadPolicy(ctx)
	return chain, err
}

// loadPolicy takes the snapshot of the policy, and applies the limits of the input to it.
func (c *chainRun) loadPolicy(ctx workflow.Context) error {
	policy, err := loadPolicy(ctx)
	if err != nil && ctx.Err() != nil {
		return c.abort(ctx, "the chain was cancelled before it began")
	}
	if err != nil {
		return err
	}
	*c.policy = applyLimits(policy, c.input)
	c.log.chain.DryRun, c.log.chain.MaxTier = c.policy.DryRun, c.policy.MaxTier
	if c.sessions.directory, err = findRepository(c.policy.Repositories, c.input.Repository); err == nil {
		err = checkStart(*c.policy, c.input)
	}
	if err != nil {
		return c.refuseByPolicy(ctx, err)
	}
	return nil
}

// loadPolicy returns the policy of the worker's configuration.
func loadPolicy(ctx workflow.Context) (escalation.Policy, error) {
	var settings *activities.Settings
	var loaded activities.LoadPolicyResult
	err := readRecords(withRecords(ctx, "policy snapshot"), settings.LoadPolicy, nil, &loaded)
	return loaded.Policy, err
}

// checkInput returns what is wrong with the input, before anything is known of the policy. State that an earlier run has
// handed over and that this worker cannot read, a worker of another release can: so checkInput panics, which fails the
// workflow task and leaves the chain to that worker.
func (c *chainRun) checkInput(ctx workflow.Context) error {
	if c.input.problem != nil && isContinued(ctx) {
		panic(fmt.Sprintf("what the run before has handed over cannot be read: %v", c.input.problem))
	}
	if err := c.input.Validate(); err != nil {
		return err
	}
	if c.input.Carried != nil && !isContinued(ctx) {
		return errCarried
	}
	return nil
}

// errCarried refuses an input that only a chain gives, to itself.
var errCarried = errors.New("carried is not for people: a chain gives it to itself when it goes on in a new run")

// isContinued reports whether this run continues an earlier run of the chain. One that cron starts, or that retries a
// failed one, has a run before it, too, but somebody else's input.
func isContinued(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.ContinuedExecutionRunID != "" && info.CronSchedule == "" && info.Attempt == 1
}

func newChainRun(ctx workflow.Context, input ChainInput) *chainRun {
	if input.Carried != nil && isContinued(ctx) {
		return input.Carried.chainRun(input)
	}
	return composeChain(input, escalation.Chain{
		ID:        workflow.GetInfo(ctx).WorkflowExecution.ID,
		Trigger:   cmp.Or(input.Trigger, escalation.TriggerManual),
		Services:  input.Services,
		DryRun:    input.DryRun,
		MaxTier:   input.MaxTier,
		StartedAt: workflow.Now(ctx),
		Actor:     input.Actor,
	})
}

// composeChain puts the parts of a chain together. The policy is still empty.
func composeChain(input ChainInput, chain escalation.Chain) *chainRun {
	policy, log := new(escalation.Policy), &eventLog{view: newView(chain)}
	c := &chainRun{
		input: input, policy: policy, log: log,
		sessions: &sessions{log: log, policy: policy},
		people:   &notifier{log: log, policy: policy},
		requests: &escalationRequests{log: log, policy: policy},
		parent:   &parentLink{chainID: chain.ID},
	}
	c.gates = &gates{log: log, policy: policy, sessions: c.sessions, people: c.people, requests: c.requests}
	return c
}

// forgetUnchecked removes from the visible state what a wrong input would put into search attributes.
func (c *chainRun) forgetUnchecked() {
	c.log.chain.Services = nil
	if !triggerPattern.MatchString(string(c.log.chain.Trigger)) {
		c.log.chain.Trigger = escalation.TriggerManual
	}
}

// refuse ends the chain because of its input, before anything was recorded or run. It returns the error to end with.
func (c *chainRun) refuse(ctx workflow.Context, problem error) error {
	chain := &c.log.chain
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeFailed, problem.Error(), workflow.Now(ctx)
	refusal := temporal.NewNonRetryableApplicationError(problem.Error(), ErrorTypeInput, nil)
	return cmp.Or(c.log.publish(ctx), refusal)
}

// refuseByPolicy is refuse for an input that the configuration makes impossible. Whoever types the input sees the error, and
// the chain of an issue returns it to its parent. For others, such as a schedule's, the refusal is recorded and people are
// notified.
func (c *chainRun) refuseByPolicy(ctx workflow.Context, problem error) error {
	refusal := c.refuse(ctx, problem)
	chain := c.log.chain
	if chain.Trigger == escalation.TriggerManual || chain.Trigger == escalation.TriggerIssue {
		return refusal
	}
	c.log.add(ctx, escalation.Event{
		Kind: escalation.EventChainEnded, Severity: escalation.SeverityCritical,
		Message: describeOutcome(chain) + ": " + chain.Reason,
	})
	c.announce(ctx, nil)
	c.log.recordRest(ctx)
	return refusal
}

// abort ends the chain because it was cancelled while no session was open. It returns the error to end with.
func (c *chainRun) abort(ctx workflow.Context, reason string) error {
	chain := &c.log.chain
	chain.Wait = nil
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeAborted, reason, workflow.Now(ctx)
	c.log.add(ctx, escalation.Event{Kind: escalation.EventChainEnded, Message: describeOutcome(*chain) + ": " + reason})
	return cmp.Or(c.log.recordEnd(ctx), ctx.Err())
}

// abortIfCancelled returns err, unless the chain was cancelled: then it aborts the chain.
func (c *chainRun) abortIfCancelled(ctx workflow.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return c.abort(ctx, cancelledBeforeSession)
}

// run takes one step after the other until the chain ends.
func (c *chainRun) run(ctx workflow.Context) error {
	next, err := c.begin(ctx)
	for err == nil && next.action != stepEnd {
		switch next.action {
		case stepEnd:
		case stepSession:
			next, err = c.runSession(ctx, next)
		case stepWait:
			next, err = c.wait(ctx, next)
		case stepOpenGate:
			next, err = c.openGate(ctx, next)
		case stepGate:
			next, err = c.waitAtGate(ctx, next)
		}
	}
	if err == nil && c.log.chain.Outcome == escalation.OutcomeAborted {
		return ctx.Err() // nil unless the chain was cancelled
	}
	return err
}

// begin returns the first step. A chain that continues as new begins at its gate.
func (c *chainRun) begin(ctx workflow.Context) (step, error) {
	if c.input.Carried != nil {
		c.log.show(ctx)
		return c.input.Carried.Step.step(), nil
	}
	first, err := c.firstStep(ctx)
	if err != nil {
		return step{}, err
	}
	c.log.add(ctx, escalation.Event{Kind: escalation.EventChainStarted, Message: describeStart(c.log.chain)})
	if first.tier > c.policy.MaxTier {
		return c.beginBlocked(ctx, first)
	}
	return first, nil
}

// announce notifies people of how the chain ended, if that concerns them, and waits until all notifications are sent or
// given up. problem is the error that the chain ends with; nil if there is none.
func (c *chainRun) announce(ctx workflow.Context, problem error) {
	switch {
	case problem != nil && c.log.chain.Outcome == "" && !temporal.IsCanceledError(problem):
		c.people.notify(ctx, escalation.NotifyFailed, "the chain broke off: "+rootMessage(problem))
	case problem == nil:
		if kind, notify := c.ending(); notify {
			c.people.notify(ctx, kind, c.log.chain.Reason)
		}
	}
	c.people.await(ctx, c.parent.detach)
}

// ending returns the notification that the chain's outcome calls for; false for none. People who were notified that an
// escalation is blocked, or that a budget is spent, know already that they are needed.
func (c *chainRun) ending() (kind escalation.NotificationKind, notify bool) {
	switch c.log.chain.Outcome {
	case escalation.OutcomeNeedsHuman:
		return needsHuman(c.log.chain), !c.people.notified(escalation.NotifyBlocked) && !c.people.notified(escalation.NotifyBudgetSpent)
	case escalation.OutcomeFailed:
		return escalation.NotifyFailed, true
	case escalation.OutcomeResolved:
		return escalation.NotifyResolved, c.log.chain.Tier() >= escalation.TierSafeRepair
	case escalation.OutcomeHealthy, escalation.OutcomeSuppressed, escalation.OutcomeOverridden, escalation.OutcomeAborted:
		return "", false
	}
	return "", false
}

// applyLimits applies the limits of the input, which only lower what the policy allows. A model is a choice of what to pay
// for, and the budgets stay.
func applyLimits(policy escalation.Policy, input ChainInput) escalation.Policy {
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
	if input.BudgetUSD > 0 {
		policy.ChainBudgetUSD = min(cmp.Or(policy.ChainBudgetUSD, input.BudgetUSD), input.BudgetUSD)
	}
	return policy
}

// findRepository returns the repository that has that path, or whose path ends with that name, among those that agents may
// run in; "" for the usual directory.
func findRepository(allowed []string, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if cleaned := path.Clean(name); slices.Contains(allowed, cleaned) {
		return cleaned, nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(directory string) bool { return path.Base(directory) != name })
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return "", fmt.Errorf("repository %q is none that CLAUDEOPS_REPOSITORIES lists for the workers", name)
	default:
		return "", fmt.Errorf("repository %q is the name of %d directories: give the path of one", name, len(named))
	}
}
