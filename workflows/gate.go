package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// GateQuery answers with the open gate as JSON; null if the chain is at none.
	GateQuery = "gate"
	// ResolveGate is the update, and the signal, by which a person answers: an escalation.GateAnswer.
	// The update returns an escalation.GateResolution.
	ResolveGate = "resolve-gate"

	// gateOpen and gateClosed are the values of GateAttribute.
	gateOpen   = "open"
	gateClosed = "closed"
)

// holdGate opens a gate for the step at, which ended or was refused by decision. It returns the step
// that was chosen there, or false if the chain has ended.
func (c *chainRun) holdGate(ctx workflow.Context, at step, decision escalation.Decision) (step, bool, error) {
	gate := c.openGate(ctx, at, decision)
	if gate == nil {
		return at, false, c.concludeRefusal(ctx, escalation.Cancelled())
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventGateOpened, SessionID: gate.SessionID, Severity: decision.Severity(), Message: describeGate(*gate),
	})
	// It can be answered from here on, also while the records are away.
	if err := c.publish(ctx); err != nil {
		return at, false, err
	}
	kind, blocked := blockedBy(decision.Rule)
	if !blocked {
		kind = c.needsHuman()
	}
	c.notify(ctx, kind, decision.Reason)
	if err := c.storeEvents(ctx, "record "+gate.ID, false); err != nil {
		return at, false, err
	}
	c.detach(ctx)
	return c.attendGate(ctx, at)
}

// openGate adds a gate to the state. An answer counts only if it arrives after that, so the signals that are
// there by then are refused. It returns nil if the chain was cancelled before the gate opened.
func (c *chainRun) openGate(ctx workflow.Context, at step, decision escalation.Decision) *escalation.Gate {
	opening := escalation.GateOpening{
		Number: c.state.Earlier.Gates + len(c.state.Gates) + 1, Before: c.state.Gates,
		Decision: decision, Tier: at.tier, Refused: at.refused,
		Last: c.state.Last(), Transcript: escalation.TranscriptReachable,
		SpentUSD: c.state.CostUSD, SpentAtMostUSD: c.spentAtMost(ctx), Tried: c.tried(),
	}
	if possible, _ := escalation.ContinuationOf(c.policy, opening); possible != nil {
		opening.Transcript = c.lookForTranscript(ctx, possible.SessionID)
	}
	if ctx.Err() != nil {
		return nil
	}
	c.receiveReplies(ctx)
	opening.At = workflow.Now(ctx)
	shortenGates(c.state.Gates)
	c.state.Gates = append(c.state.Gates, escalation.NewGate(c.policy, opening))
	c.reminded = 0
	return c.gate()
}

// spentAtMost is what counts for the budget of the chain at a gate, in US dollars.
func (c *chainRun) spentAtMost(ctx workflow.Context) float64 {
	most := c.state.SpentAtMostUSD()
	if most > c.state.CostUSD &&
		workflow.GetVersion(ctx, changeUnknownCostAtGates, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return c.state.CostUSD
	}
	return most
}

// gate returns the gate that was opened last.
func (c *chainRun) gate() *escalation.Gate { return &c.state.Gates[len(c.state.Gates)-1] }

// lookForTranscript asks the agents' workers whether one of them can go on with a conversation.
func (c *chainRun) lookForTranscript(ctx workflow.Context, sessionID string) escalation.TranscriptState {
	var tiers *activities.Tiers
	var found activities.FindTranscriptResult
	err := workflow.ExecuteActivity(withTranscript(ctx, "is the conversation still there?"), tiers.FindTranscript,
		activities.FindTranscriptInput{SessionID: sessionID, Directory: c.directory}).Get(ctx, &found)
	switch {
	case err != nil:
		workflow.GetLogger(ctx).Warn("nobody can tell whether a transcript is there", "session_id", sessionID, "error", err)
		return escalation.TranscriptUnknown
	case found.Reachable:
		return escalation.TranscriptReachable
	default:
		return escalation.TranscriptGone
	}
}

// attendGate waits at the open gate until it is closed: by an answer, by the order of a tier, by its
// expiry, or because the chain is cancelled. It returns what holdGate does.
func (c *chainRun) attendGate(ctx workflow.Context, at step) (step, bool, error) {
	gate := c.gate()
	bell := c.setAlarm(ctx, gate)
	defer func() { bell.stop() }()
	for {
		c.receiveAtGate(ctx, at, gate)
		// An answer may come faster than the wait begins, every time: so a gate that is answered is taken
		// along into a new run, too, unless the chain ends.
		anew := ctx.Err() == nil && c.mayGoOnAnew(ctx) && !gate.Ends()
		if anew {
			c.settleNotifications(ctx, errGivenUp)
		}
		if len(c.unrecorded) > 0 && (anew || gate.Answer == nil) {
			if err := c.storeEvents(ctx, "record what came to "+gate.ID, false); err != nil {
				return at, false, err
			}
			continue // something may have come meanwhile
		}
		if anew {
			return at, false, c.goOnAnew(ctx, at)
		}
		if gate.Answer != nil {
			return c.leaveGate(ctx, at, gate)
		}
		err := workflow.Await(ctx, func() bool {
			return gate.Answer != nil || bell.timer.IsReady() || c.hasSignals(ctx) || c.mayGoOnAnew(ctx)
		})
		switch {
		case gate.Answer != nil:
		case err != nil || ctx.Err() != nil: // the alarm of a cancelled chain goes off, too
			gate.Answer = &escalation.GateClosing{Action: escalation.GateAbort, Cancelled: true, At: workflow.Now(ctx)}
		case c.hasSignals(ctx): // an answer in the moment of the expiry counts
		case bell.timer.IsReady():
			c.ring(ctx, gate)
			bell = c.setAlarm(ctx, gate)
		}
	}
}

// alarm is the next moment at which something is due at a gate.
type alarm struct {
	timer workflow.Future
	stop  func()
}

// setAlarm sets the alarm for the next reminder, or for the expiry.
func (c *chainRun) setAlarm(ctx workflow.Context, gate *escalation.Gate) alarm {
	due, what := gate.ExpiresAt, fmt.Sprintf("%s expires: %s", gate.ID, gate.OnTimeout)
	if reminders := c.policy.Gate.Remind; c.reminded < len(reminders) {
		if at := gate.OpenedAt.Add(reminders[c.reminded].Std()); at.Before(due) {
			due, what = at, fmt.Sprintf("%s: reminder %d of %d", gate.ID, c.reminded+1, len(reminders))
		}
	}
	waiting, stop := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(waiting, due.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: what})
	return alarm{timer: timer, stop: stop}
}

// ring does what is due: it reminds people, once however many reminders have been missed while no
// worker was there, or closes a gate that nobody has answered.
func (c *chainRun) ring(ctx workflow.Context, gate *escalation.Gate) {
	now := workflow.Now(ctx)
	age := now.Sub(gate.OpenedAt).Round(time.Second)
	if !now.Before(gate.ExpiresAt) {
		gate.Answer = &escalation.GateClosing{Action: gate.OnTimeout, At: now}
		c.notify(ctx, escalation.NotifyNeedsHuman, fmt.Sprintf("nobody has answered %s in %s: %s",
			gate.ID, escalation.ShortDuration(age), gate.Next(*gate.Answer)))
		return
	}
	for c.reminded < len(c.policy.Gate.Remind) && !now.Before(gate.OpenedAt.Add(c.policy.Gate.Remind[c.reminded].Std())) {
		c.reminded++
	}
	text := fmt.Sprintf("%s has been open for %s: %s", gate.ID, escalation.ShortDuration(age), gate.Reason)
	c.note(ctx, escalation.Event{
		Kind: escalation.EventGateReminder, SessionID: gate.SessionID, Severity: escalation.SeverityWarning, Message: text,
	})
	c.notify(ctx, escalation.NotifyNeedsHuman, text)
}

// leaveGate goes on as the gate was answered. Whether the next session may start is asked anew.
func (c *chainRun) leaveGate(ctx workflow.Context, at step, gate *escalation.Gate) (step, bool, error) {
	closing := *gate.Answer
	c.waitingSince = time.Time{} // a person's decision is worth the patience of a new chain
	c.note(ctx, escalation.Event{
		Kind: escalation.EventGateClosed, SessionID: gate.SessionID, Message: describeClosing(*gate),
	})
	if decision, ends := gate.Ending(closing); ends {
		return at, false, c.concludeRefusal(ctx, decision)
	}
	return c.stepFrom(at, gate, closing), true, c.publish(ctx)
}

// stepFrom is the step that follows when the gate of the step at is closed so.
func (c *chainRun) stepFrom(at step, gate *escalation.Gate, closing escalation.GateClosing) step {
	if at.hasRun(c.state.Last()) {
		at.passesCooldown, at.passesLimit = false, false
		if closing.ToTier != 0 {
			return at.escalate(*c.state.Last(), closing.ToTier, c.takeOrder())
		}
	}
	at.refused = false
	if closing.ToTier != 0 {
		return at.ordered(c.takeOrder())
	}
	at.continues, at.order = nil, nil
	if gate.Fresh {
		at.parent = nil
	}
	if closing.Actor != "" {
		at.order = &EscalateSignal{ToTier: at.tier, Guidance: closing.Guidance}
		// That person has read what refused the step, and passes just that.
		at.passesCooldown = at.passesCooldown || gate.Rule == escalation.RuleCooldown
		at.passesLimit = at.passesLimit || gate.Rule == escalation.RuleEscalationLimit
	}
	if closing.Action == escalation.GateContinue {
		last := *c.state.Last()
		at.continues = &last
	}
	return at
}

// maxTried is how many sessions a gate tells about: more than a chain without gates can have.
const maxTried = 10

// tried tells what the agents did, oldest first.
func (c *chainRun) tried() []string {
	latest := c.state.Sessions[max(0, len(c.state.Sessions)-maxTried):]
	tried := make([]string, 0, len(latest))
	for i := range latest {
		tried = append(tried, describeTry(latest[i]))
	}
	return tried
}
