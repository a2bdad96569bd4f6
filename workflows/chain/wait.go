package chain

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// do waits until refused work may run or its next check is due. It returns one of these steps: a recheck by Tier
// 1, work that a person has requested during the wait, another wait, a gate, or the end of the chain.
func (s waitStep) do(ctx workflow.Context, c *chainRun) (step, error) {
	if c.Log.Chain.Wait == nil {
		c.beginWait(ctx, s.decision)
	}
	if err := c.sleep(ctx, s); err != nil {
		return nil, err
	}
	if ctx.Err() == nil && c.Requests.Pending == nil && c.healed(s.work) {
		c.endWait(ctx)
		return sessionStep{c.checkHealed(s.work, nil)}, nil
	}
	decision, next := escalation.Cancelled(), s.work
	if ctx.Err() == nil {
		if request := c.Requests.Take(); request != nil {
			next = s.requested(request)
		}
		admission, err := c.Sessions.Review(ctx, c.request(next))
		if err != nil {
			return nil, c.abortIfCancelled(ctx, err)
		}
		if admission.Granted {
			c.endWait(ctx)
			return sessionStep{next.lookAgain()}, nil
		}
		decision = c.decideRefused(next, admission)
		if decision.Action == escalation.DecisionWait {
			return waitStep{next, decision}, nil
		}
	}
	c.endWait(ctx)
	return c.stop(ctx, pending{next, true}, escalation.Gated(*c.Policy, decision))
}

func (c *chainRun) beginWait(ctx workflow.Context, decision escalation.Decision) {
	if c.waitingSince.IsZero() {
		c.waitingSince = workflow.Now(ctx)
	}
	c.People.NotifyOfLimit(ctx, decision)
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventWaitStarted, Severity: decision.Severity(),
		Message: fmt.Sprintf("waiting until %s: %s", calendar.Clock(decision.Until, workflow.Now(ctx).UTC()),
			decision.Reason),
	})
}

// sleep releases the services of the chain, so that other chains can repair them. Then it waits until the time in the
// decision of s. A chain that waits for the day's budget or the account's limit does not detach, so the next cycle
// waits for this chain. Otherwise each cycle would begin and add another waiting chain. A wait can begin for one rule
// and continue for another. Either of two events ends the wait earlier: a person requests a tier, or other chains have
// found all incidents healed.
func (c *chainRun) sleep(ctx workflow.Context, s waitStep) error {
	decision := s.decision
	if decision.Rule != escalation.RuleDayBudget && decision.Rule != escalation.RuleAccountLimit {
		c.parent.Detach(ctx)
	}
	c.Log.Chain.Wait = &escalation.Wait{
		Rule: decision.Rule, Reason: decision.Reason, Since: workflow.Now(ctx), Until: decision.Until,
		News: c.Incidents.Receive(ctx),
	}
	c.Log.Progress = c.Incidents.Progress(ctx, decision)
	if err := c.Log.StoreUnlessCancelled(ctx, "record the wait", true); err != nil {
		return err
	}
	if err := c.Log.Publish(ctx); err != nil {
		return err
	}
	sleeping, stop := workflow.WithCancel(ctx)
	defer stop()
	timer := workflow.NewTimerWithOptions(sleeping, decision.Until.Sub(workflow.Now(ctx)), workflow.TimerOptions{
		Summary: parts.Clip(plaintext.Compact(escalation.InWords(decision.Rule) + ": " + decision.Reason)),
	})
	wait := c.Log.Chain.Wait
	for ctx.Err() == nil && !timer.IsReady() && c.Requests.Pending == nil && !c.healed(s.work) {
		_ = workflow.Await(ctx, func() bool { // an error means that ctx has ended
			return timer.IsReady() || c.Requests.Arrived(ctx) || c.Incidents.Arrived(ctx)
		})
		c.Requests.Receive(ctx, s.Tier-1) // the tier has not run, so a request may name it
		wait.News = c.Incidents.Receive(ctx)
	}
	return nil
}

// healed reports whether s need not wait any longer, because other chains have found all incidents healed. If s is
// already a recheck of such a finding, healed returns false.
func (c *chainRun) healed(s work) bool { return !s.Healed && c.Incidents.Healed() }

func (c *chainRun) endWait(ctx workflow.Context) {
	c.Log.Chain.Wait = nil
	c.Log.Add(ctx, escalation.Event{Kind: escalation.EventWaitEnded, Message: "the wait is over"})
}
