package chain

import (
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// split starts a chain for each issue that the session has found, beginning with the most severe issue. Each of these
// chains forks the conversation of that session, the observer. At most MaxParallelIssues chains work at the same time.
// A chain that waits for a long time does not count. split returns after all of the chains have ended. Issues of one
// incident are one issue, and an incident without a chain that takes care of it is an issue, too.
func (c *chainRun) split(ctx workflow.Context, observer escalation.Session) error {
	verdict := c.Incidents.Recognition.SplitIssues(*observer.Verdict)
	observer.Verdict = &verdict
	issues := verdict.Issues
	c.Log.Chain.Issues = make([]escalation.IssueChain, len(issues))
	ids := c.Incidents.OfIssues(observer)
	for i, issue := range issues {
		c.Log.Chain.Issues[i] = escalation.IssueChain{
			Services: issue.Services, Summary: parts.Clip(issue.Summary),
			IncidentID: ids[i],
		}
	}
	slots := workflow.NewSemaphore(ctx, int64(max(1, c.Policy.MaxParallelIssues)))
	running := len(issues)
	for _, i := range escalation.MostSevereFirst(issues) {
		if known := c.Incidents.Recognition.KnownIssue(i); known != nil {
			running--
			c.endIssue(ctx, i, escalation.OutcomeKnown, known.Describe(), escalation.Chain{})
			continue
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer func() { running-- }()
			if slots.Acquire(ctx, 1) == nil {
				defer c.releaseOnce(ctx, slots, c.issueChainID(i))()
				c.runIssue(ctx, observer, i)
				return
			}
			c.endIssue(ctx, i, escalation.OutcomeAborted, "the chain was cancelled before its turn", escalation.Chain{})
		})
	}
	// If this chain is cancelled, it still waits for the chains of its issues. Temporal cancels these chains, and
	// their outcomes must be recorded.
	waiting, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for running > 0 {
		// nothing cancels it
		_ = workflow.Await(waiting, func() bool { return running == 0 || c.Requests.Arrived(ctx) })
		c.Requests.RefuseAll(ctx, parts.ErrSplit)
	}
	return c.record(ctx, escalation.DecideIssues(c.Log.Chain.Issues))
}

// releaseOnce returns a function that releases the slot of a chain. If that chain waits for a long time, for example
// at a gate, releaseOnce releases the slot when the wait begins.
func (c *chainRun) releaseOnce(ctx workflow.Context, slots workflow.Semaphore, chainID string) func() {
	delete(c.parent.Waiting, chainID) // after a reset, Temporal repeats the signal of an earlier chain with this ID
	released := false
	release := func() {
		if !released {
			released = true
			slots.Release(1)
		}
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Await(ctx, func() bool { return released || c.parent.Waiting[chainID] }) == nil {
			release()
		}
	})
	return release
}

// issueChainID returns the ID of an issue's chain. It takes the index of the issue, counted from 0.
func (c *chainRun) issueChainID(at int) string {
	return fmt.Sprintf("%s-issue-%d", c.Log.Chain.ID, at+1)
}

// runIssue runs the chain of one issue.
func (c *chainRun) runIssue(ctx workflow.Context, observer escalation.Session, at int) {
	issue := observer.Verdict.Issues[at]
	blocked := c.blocked(issue.FirstTier(observer.Tier))
	var input Input
	if blocked == nil {
		input = c.issueInput(observer, at)
		blocked = c.poor(&input)
	}
	if blocked != nil {
		c.Log.Chain.Issues[at].Rule = blocked.Rule
		c.endIssue(ctx, at, blocked.Outcome, blocked.Reason, escalation.Chain{})
		return
	}
	mine := &c.Log.Chain.Issues[at]
	mine.ChainID = c.issueChainID(at)
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventIssueStarted, SessionID: observer.SessionID, Severity: issue.Severity,
		Message: fmt.Sprintf("issue %d of %d goes to chain %s: %s", at+1, len(c.Log.Chain.Issues), mine.ChainID,
			issue.Summary),
	})
	if err := c.Log.Publish(ctx); err != nil {
		c.endIssue(ctx, at, escalation.OutcomeFailed, parts.RootMessage(err), escalation.Chain{})
		return
	}
	var ended Result
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: mine.ChainID,
		// if this chain ends, Temporal cancels the repair
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, // a reset starts the same ID again
		StaticSummary:         parts.Inline(issue.Summary),
	})
	err := workflow.ExecuteChildWorkflow(child, Workflow, input).Get(ctx, &ended)
	switch {
	case err == nil:
		c.endIssue(ctx, at, ended.Outcome, ended.Reason, ended)
	case ctx.Err() != nil:
		c.endIssue(ctx, at, escalation.OutcomeAborted, "the chain was cancelled", cancelledChain(err))
	case temporal.IsCanceledError(err):
		c.endIssue(ctx, at, escalation.OutcomeAborted, "the chain of this issue was cancelled", cancelledChain(err))
	default:
		c.endIssue(ctx, at, escalation.OutcomeFailed, parts.RootMessage(err), escalation.Chain{})
	}
}

// cancelledChain returns the chain from the details of err. If err has no details, cancelledChain returns the zero
// value.
func cancelledChain(err error) (chain escalation.Chain) {
	if end, ok := errors.AsType[*temporal.CanceledError](err); ok && end.HasDetails() && end.Details(&chain) != nil {
		return escalation.Chain{}
	}
	return chain
}

// blocked returns the decision that ends an issue without a chain of its own, because its first tier exceeds the
// highest tier. If the issue gets a chain, blocked returns nil. If the policy has gates, every issue gets a chain. If
// its first tier is too high, that chain begins at a gate.
func (c *chainRun) blocked(first escalation.Tier) *escalation.Decision {
	if first <= c.Policy.MaxTier {
		return nil
	}
	decision := escalation.DecideBlockedIssue(*c.Policy, first)
	if escalation.Gated(*c.Policy, decision).Action == escalation.DecisionGate {
		return nil
	}
	return &decision
}

// beginBlocked returns the first step of an issue's chain whose first tier exceeds the highest tier. This step opens a
// gate, at which a person may choose the highest tier. If the policy has no gates, the chain ends.
func (c *chainRun) beginBlocked(ctx workflow.Context, first work) (step, error) {
	decision := escalation.Gated(*c.Policy, escalation.DecideBlockedIssue(*c.Policy, first.Tier))
	first.Tier = c.Policy.MaxTier
	return c.stop(ctx, pending{work: first}, decision)
}

// issueInput returns the input of an issue's chain. It copies the limits of this chain, and gives each issue that gets
// a chain an equal share of the remaining budget. If the fault has come back too often, the issue's chain begins with
// the highest tier, or asks a person before any repair.
func (c *chainRun) issueInput(observer escalation.Session, at int) Input {
	issue := observer.Verdict.Issues[at]
	input := Input{
		Trigger:    escalation.TriggerIssue,
		StartTier:  issue.FirstTier(observer.Tier),
		Prompt:     c.input.Prompt,
		Issue:      issue.Summary,
		Services:   issue.Services,
		Repository: c.Sessions.Directory, // the directory of the conversation to fork
		Models:     c.input.Models,
		DryRun:     c.Policy.DryRun,
		MaxTier:    c.Policy.MaxTier,
		ResumeFrom: &ResumeFrom{SessionID: observer.SessionID},
		Actor:      c.input.Actor,
		Verified:   c.input.Verified,
	}
	if id := c.Log.Chain.Issues[at].IncidentID; id != "" {
		input.Incidents = []string{id}
	}
	if returned := c.Incidents.Recognition.Returned(c.Policy.Returns, at); returned != nil &&
		input.StartTier <= c.Policy.MaxTier {
		decision := escalation.DecideReturned(*c.Policy, *returned, input.StartTier, c.Incidents.Recognition.At)
		input.StartTier = decision.Tier
		if decision.Action == escalation.DecisionComplete {
			input.Ask = &AskInput{Reason: decision.Reason, History: returned.History(parts.MaxTried)}
		}
	}
	if c.Policy.ChainBudgetUSD > 0 {
		input.BudgetUSD = (c.Policy.ChainBudgetUSD - c.Log.Chain.SpentAtMostUSD()) / float64(c.withChain(observer))
	}
	return input
}

// poor returns the decision that ends an issue whose share of the budget suffices for no session; nil if it gets a
// chain. If the policy has gates, the chain asks a person before it would do anything.
func (c *chainRun) poor(input *Input) *escalation.Decision {
	decision := escalation.DecidePoorIssue(*c.Policy, input.StartTier, input.BudgetUSD)
	if decision == nil || escalation.Gated(*c.Policy, *decision).Action != escalation.DecisionGate {
		return decision
	}
	input.BudgetUSD = noBudgetUSD
	input.Ask = &AskInput{Reason: decision.Reason}
	return nil
}

// noBudgetUSD is the budget of a chain for which nothing is left, in US dollars. No session starts on it. Zero would be
// no limit.
const noBudgetUSD = 1e-6

// withChain counts the issues that get a chain: not those that other chains take care of, and not those that nobody may
// repair.
func (c *chainRun) withChain(observer escalation.Session) int {
	count := 0
	for i, issue := range observer.Verdict.Issues {
		if c.Incidents.Recognition.KnownIssue(i) == nil && c.blocked(issue.FirstTier(observer.Tier)) == nil {
			count++
		}
	}
	return count
}

// endIssue records the end of an issue. The end of the last open issue is recorded with the end of this chain, unless
// the issue had no chain: the end of this chain says nothing about who takes care of its incident.
func (c *chainRun) endIssue(
	ctx workflow.Context, at int, outcome escalation.Outcome, reason string, ended escalation.Chain,
) {
	issue := &c.Log.Chain.Issues[at]
	issue.Outcome, issue.Reason, issue.CostUSD, issue.CostEstimated = outcome, reason, ended.CostUSD,
		ended.CostEstimated()
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventIssueEnded, Severity: escalation.Decision{Outcome: outcome}.Severity(),
		Message: fmt.Sprintf("issue %d of %d ended (%s) for %s: %s",
			at+1, len(c.Log.Chain.Issues), escalation.InWords(outcome), issue.CostText(), reason),
	})
	if err := c.Log.Publish(ctx); err != nil {
		workflow.GetLogger(ctx).Error("the search attributes do not show what the issue cost", "issue", at+1, "error",
			err)
	}
	others := slices.ContainsFunc(c.Log.Chain.Issues,
		func(other escalation.IssueChain) bool { return other.Outcome == "" })
	if issue.IncidentID == "" || !others && issue.Rule == "" || ctx.Err() != nil {
		return
	}
	progress := escalation.ProgressOfIssue(*c.Policy, *issue, workflow.Now(ctx))
	c.Log.Progress = &progress
	if err := c.Log.Store(ctx, fmt.Sprintf("record the end of issue %d", at+1), false); err != nil {
		workflow.GetLogger(ctx).Error("the records do not show how the issue ended", "issue", at+1, "error", err)
	}
}
