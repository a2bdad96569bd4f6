package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// wait holds the chain until a refused step may be taken, and returns the step to go on with: one
// that looks again, or what a person has asked for in the meantime. It returns false if the
// chain has ended instead.
func (c *chainRun) wait(ctx workflow.Context, next step, decision escalation.Decision) (step, bool, error) {
	if c.waitingSince.IsZero() {
		c.waitingSince = workflow.Now(ctx)
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventWaitStarted, Severity: decision.Severity(),
		Message: fmt.Sprintf("waiting until %s: %s", decision.Until.UTC().Format(time.RFC3339), decision.Reason),
	})
	c.detach(ctx)
	for decision.Action == escalation.DecisionWait {
		if err := c.sleep(ctx, next, decision); err != nil {
			return next, false, err
		}
		if ctx.Err() != nil {
			decision = escalation.Cancelled()
			break
		}
		if order := c.takeOrder(); order != nil {
			next = next.ordered(order)
		}
		admission, err := c.review(ctx, next)
		if err != nil {
			return next, false, err
		}
		if admission.Granted {
			c.endWait(ctx)
			return next.lookAgain(), true, nil
		}
		decision = escalation.DecideRefused(admission)
	}
	c.endWait(ctx)
	decision = escalation.Gated(c.policy, decision)
	if err := c.concludeRefusal(ctx, decision); err != nil || decision.Action != escalation.DecisionGate {
		return next, false, err
	}
	next.refused = true
	return c.holdGate(ctx, next, decision)
}

// sleep waits until the decision's time, or until a person asks for a tier. The services are free
// for other chains meanwhile.
func (c *chainRun) sleep(ctx workflow.Context, next step, decision escalation.Decision) error {
	now := workflow.Now(ctx)
	c.state.Wait = &escalation.Wait{Rule: decision.Rule, Reason: decision.Reason, Since: now, Until: decision.Until}
	if err := c.recordEvents(ctx, "record the wait", true); err != nil {
		return err
	}
	alarm, stop := workflow.WithCancel(ctx)
	defer stop()
	timer := workflow.NewTimerWithOptions(alarm, decision.Until.Sub(now), workflow.TimerOptions{
		Summary: clip(fmt.Sprintf("%s: %s", decision.Rule, decision.Reason)),
	})
	for over := false; !over && c.order == nil; {
		selector := workflow.NewSelector(ctx)
		selector.AddFuture(timer, func(workflow.Future) { over = true })
		selector.AddReceive(workflow.GetSignalChannel(ctx, EscalateSignalName), func(channel workflow.ReceiveChannel, _ bool) {
			var signal EscalateSignal
			channel.Receive(ctx, &signal)
			// What waits has not run: a person may ask for just that tier.
			c.receiveOrder(ctx, signal, next.tier-1)
		})
		selector.Select(ctx)
	}
	return nil
}

// review asks whether the step would be admitted now.
func (c *chainRun) review(ctx workflow.Context, next step) (escalation.Admission, error) {
	var records *activities.Records
	var admission escalation.Admission
	err := workflow.ExecuteActivity(withRecords(ctx, "may "+next.tier.String()+" start now?"), records.Review, activities.ReviewInput{
		Request: c.admissionRequest(ctx, next), Policy: c.policy,
	}).Get(ctx, &admission)
	if err != nil && ctx.Err() != nil &&
		workflow.GetVersion(ctx, changeReviewCancelled, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return admission, c.giveUp(ctx)
	}
	return admission, err
}

// giveUp ends a chain that was cancelled while it asked whether it may go on. A database that is away
// is not waited for.
func (c *chainRun) giveUp(ctx workflow.Context) error {
	c.state.Wait = nil
	c.abort(ctx, "the chain was cancelled before the session began")
	var records *activities.Records
	closing, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.ExecuteActivity(withOneTry(closing, "record the end"), records.RecordEvents, activities.RecordEventsInput{
		ChainID: c.state.ID, Events: c.takeEvents(), Release: true,
	}).Get(closing, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "error", err)
	}
	return cmp.Or(c.publish(ctx), ctx.Err())
}

func (c *chainRun) endWait(ctx workflow.Context) {
	c.state.Wait = nil
	c.note(ctx, escalation.Event{Kind: escalation.EventWaitEnded, Message: "the wait is over"})
}
