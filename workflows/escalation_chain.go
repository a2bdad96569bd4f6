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

// Changes of the workflow's shape since its first one, as workflow.GetVersion names them. A history
// that was recorded before a change replays without it.
const (
	// changeLookUp looks up the record of the conversation that a chain starts from.
	changeLookUp = "look-up-resumed-session"
	// changeAskForHandoff asks the tier before for a handoff where its verdict does not do.
	changeAskForHandoff = "ask-for-handoff"
	// changeReviewCancelled records the end of a chain that is cancelled while it asks for admission.
	changeReviewCancelled = "review-cancelled"
	// changeIssueAttributes brings the search attributes up to date whenever an issue has ended.
	changeIssueAttributes = "issues-in-search-attributes"
	// changeBlockedIssues gives an issue whose repair the policy blocks a chain, too, where there are gates.
	changeBlockedIssues = "blocked-issues-have-gates"
	// changeCancelledIssue takes an issue for aborted, and not for failed, whose chain was cancelled.
	changeCancelledIssue = "cancelled-issue-is-aborted"
	// changeRefusalsAreTold lists chains that are refused with their outcome, and tells people of those
	// that the policy refuses while nobody looks on.
	changeRefusalsAreTold = "refusals-are-told"
	// changeRefusedOrders holds the order of a tier that was not admitted to who may answer at its gate.
	changeRefusedOrders = "orders-of-refused-tiers"
	// changeSpentBeforeCancel looks up what an agent has spent before it is cancelled.
	changeSpentBeforeCancel = "spent-before-cancel"
	// changeUnknownCostAtGates offers at a gate only what the budget leaves where a cost is unknown.
	changeUnknownCostAtGates = "unknown-cost-at-gates"
)

// ChainResult is the chain as it ended.
type ChainResult = escalation.Chain

// chainRun is one chain while it runs.
type chainRun struct {
	input  ChainInput
	policy escalation.Policy
	// directory is where the agents work; empty for the usual one.
	directory string
	// state is what people see.
	state escalation.Chain
	// unrecorded are the events that the next record takes along.
	unrecorded []escalation.Event
	// notifications are those that people are being sent, or were since settleNotifications.
	notifications []pendingNotification
	// notified counts those of this run.
	notified int
	// toldBefore are the kinds of those that earlier runs of the chain have sent.
	toldBefore []escalation.NotificationKind
	// detached says that whoever started the chain does not wait for it any more.
	detached bool
	// order is the tier that a person asks for; nil if nobody does.
	order *EscalateSignal
	// inFlight are the tool calls that the session which ran last left without a result.
	inFlight []activities.ToolCall
	// reminded counts the reminders of the open gate that were due.
	reminded int
	// waitingSince is when the chain first waited to be admitted; zero if it never did.
	waitingSince time.Time
}

// EscalationChain runs one chain: Tier 1, and whatever it escalates to, until an outcome.
func EscalationChain(ctx workflow.Context, input ChainInput) (ChainResult, error) {
	chain, err := setUpChain(ctx, input)
	if err != nil {
		return ChainResult{}, err
	}
	_, err = chain.run(ctx)
	if !workflow.IsContinueAsNewError(err) {
		chain.announce(ctx, err)
		chain.refuseLateReplies(ctx)
	}
	if temporal.IsCanceledError(err) {
		err = cancelled(chain.state)
	}
	return chain.state, err
}

// setUpChain registers the handlers, checks the input and takes the snapshot of the policy.
func setUpChain(ctx workflow.Context, input ChainInput) (*chainRun, error) {
	chain := newChainRun(ctx, input)
	err := workflow.SetQueryHandler(ctx, ChainQuery, chain.query)
	if err == nil {
		err = chain.handleGate(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := chain.checkInput(ctx); err != nil {
		chain.forgetUnchecked()
		return nil, chain.refuse(ctx, err)
	}
	chain.relayWaiting(ctx)
	if input.Carried != nil {
		return chain, nil
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
	if chain.directory, err = findRepository(chain.policy.Repositories, input.Repository); err == nil {
		err = checkStart(chain.policy, input)
	}
	if err != nil {
		return nil, chain.refuseByPolicy(ctx, err)
	}
	return chain, nil
}

// checkInput reports what is wrong with the input, before anything is known of the policy. What a run
// was handed by the one before, and cannot be read here, a worker of another release can: so the panic
// leaves the workflow task, and with it the chain, to that one.
func (c *chainRun) checkInput(ctx workflow.Context) error {
	if c.input.problem != nil && goesOn(ctx) {
		panic(fmt.Sprintf("what the run before has handed over cannot be read: %v", c.input.problem))
	}
	if err := c.input.Validate(); err != nil {
		return err
	}
	if c.input.Carried != nil && !goesOn(ctx) {
		return errors.New("carried is not for people: a chain gives it to itself when it goes on in a new run")
	}
	return nil
}

// goesOn reports whether this run goes on with an earlier run of the chain. One that cron starts, or
// that tries a failed one again, has a run before it, too, and the input that somebody else has given.
func goesOn(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.ContinuedExecutionRunID != "" && info.CronSchedule == "" && info.Attempt == 1
}

func newChainRun(ctx workflow.Context, input ChainInput) *chainRun {
	if input.Carried != nil && goesOn(ctx) {
		return input.Carried.chainRun(input)
	}
	return &chainRun{input: input, state: escalation.Chain{
		ID:        workflow.GetInfo(ctx).WorkflowExecution.ID,
		Trigger:   cmp.Or(input.Trigger, escalation.TriggerManual),
		Services:  input.Services,
		DryRun:    input.DryRun,
		MaxTier:   input.MaxTier,
		StartedAt: workflow.Now(ctx),
		Actor:     input.Actor,
	}}
}

func (c *chainRun) query() (escalation.Chain, error) { return c.state, nil }

// forgetUnchecked forgets what an input that is wrong says and search attributes would show.
func (c *chainRun) forgetUnchecked() {
	c.state.Services = nil
	if !triggerPattern.MatchString(string(c.state.Trigger)) {
		c.state.Trigger = escalation.TriggerManual
	}
}

// refuse ends the chain because of its input, before anything was recorded or run.
func (c *chainRun) refuse(ctx workflow.Context, problem error) error {
	c.state.Outcome, c.state.Reason, c.state.EndedAt = escalation.OutcomeFailed, problem.Error(), workflow.Now(ctx)
	refusal := temporal.NewNonRetryableApplicationError(problem.Error(), ErrorTypeInput, nil)
	if !refusalsAreTold(ctx) {
		return refusal
	}
	return cmp.Or(c.publish(ctx), refusal)
}

// refusalsAreTold reports whether a chain that is refused is listed with its outcome, and people may be
// told of it.
func refusalsAreTold(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, changeRefusalsAreTold, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// refuseByPolicy is refuse, where the input has become impossible because the configuration changed.
// Somebody who types it sees that, and the chain of an issue tells the one that started it. Of others,
// a schedule's among them, nobody would hear: so they are recorded, and people are told.
func (c *chainRun) refuseByPolicy(ctx workflow.Context, problem error) error {
	refusal := c.refuse(ctx, problem)
	seen := c.state.Trigger == escalation.TriggerManual || c.state.Trigger == escalation.TriggerIssue
	if seen || !refusalsAreTold(ctx) {
		return refusal
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventChainEnded, Severity: escalation.SeverityCritical,
		Message: describeOutcome(c.state) + ": " + c.state.Reason,
	})
	c.announce(ctx, nil)
	c.recordRest(ctx)
	return refusal
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
	next, going, err := c.begin(ctx)
	if err != nil {
		return c.state, err
	}
	for going {
		session, decision, err := c.runStep(ctx, &next)
		if err != nil {
			return c.state, err
		}
		switch decision.Action {
		case escalation.DecisionComplete:
			going = false
		case escalation.DecisionEscalate:
			next = next.escalate(session, decision.Tier, c.takeOrder())
		case escalation.DecisionHandoff:
			next = next.handOff(session, c.inFlight)
		case escalation.DecisionWait:
			next, going, err = c.wait(ctx, next, decision)
		case escalation.DecisionSplit:
			going, err = false, c.split(ctx, session)
		case escalation.DecisionGate:
			next, going, err = c.holdGate(ctx, next, decision)
		}
		if err != nil {
			return c.state, err
		}
	}
	if c.state.Outcome == escalation.OutcomeAborted {
		return c.state, ctx.Err() // nil unless the chain was cancelled
	}
	return c.state, nil
}

// begin returns the step to begin with: the first, or what follows the gate at which an earlier run
// of the chain was. It returns false if the chain has ended there.
func (c *chainRun) begin(ctx workflow.Context) (step, bool, error) {
	if c.input.Carried != nil {
		c.show(ctx)
		return c.attendGate(ctx, c.input.Carried.Step.step())
	}
	first, err := c.firstStep(ctx)
	if err != nil {
		return first, false, err
	}
	c.note(ctx, escalation.Event{Kind: escalation.EventChainStarted, Message: describeStart(c.state)})
	if first.tier > c.policy.MaxTier {
		return c.beginBlocked(ctx, first)
	}
	return first, true, nil
}

// narrow applies what the input asks for, which can only be less than the policy allows; a
// model is a choice among what costs money, and the budgets stay.
func narrow(policy escalation.Policy, input ChainInput) escalation.Policy {
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

// findRepository returns the one of the repositories that agents may run in which has that
// path, or that last part of it; "" for the usual directory.
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
