package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// GateReply is an escalation.GateAnswer as it comes in.
type GateReply struct {
	escalation.GateAnswer

	// problem is what is wrong with the JSON that this was read from. A decoding error would drop
	// the reply without a trace.
	problem error
}

// UnmarshalJSON reads the payload strictly. It returns no error: what is wrong is told by the check.
func (r *GateReply) UnmarshalJSON(data []byte) error {
	*r = GateReply{}
	r.problem = decodeStrictly(data, &r.GateAnswer)
	return nil
}

// handleGate registers the handlers by which people see and answer gates.
func (c *chainRun) handleGate(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, GateQuery, func() (*escalation.Gate, error) { return c.state.OpenGate(), nil })
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, ResolveGate, c.resolve, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, reply GateReply) error { return c.check(reply) },
		Description: "answers the open gate: continue_session, fix, override or abort",
	})
}

// check reports in one sentence why a reply does not count; nil if it closes the open gate.
func (c *chainRun) check(reply GateReply) error {
	if reply.problem != nil {
		return reply.problem
	}
	if err := reply.Validate(); err != nil {
		return err
	}
	gate := c.state.OpenGate()
	for i := range c.state.Gates {
		if c.state.Gates[i].ID == reply.GateID {
			gate = &c.state.Gates[i]
		}
	}
	if gate == nil {
		return errors.New("the chain is at no gate")
	}
	if err := gate.Check(reply.GateAnswer); err != nil {
		return err
	}
	return c.policy.Gate.CheckMayAnswer(reply.Actor, c.state.Actor)
}

// resolve is the handler of the update. The first of several that were let in closes the gate.
func (c *chainRun) resolve(ctx workflow.Context, reply GateReply) (escalation.GateResolution, error) {
	if err := c.check(reply); err != nil {
		return escalation.GateResolution{}, err
	}
	return c.accept(ctx, reply), nil
}

// accept closes the open gate.
func (c *chainRun) accept(ctx workflow.Context, reply GateReply) escalation.GateResolution {
	gate := c.gate()
	gate.Answer = &escalation.GateClosing{
		Action: reply.Action, Guidance: strings.TrimSpace(reply.Guidance), Actor: strings.TrimSpace(reply.Actor),
		At: workflow.Now(ctx),
	}
	return escalation.GateResolution{GateID: gate.ID, Action: reply.Action, Next: gate.Next(*gate.Answer)}
}

// receiveAtGate takes in the signals that have arrived at a gate, in whatever order they came: the
// answers, then the orders of a tier. Those that do not count leave an event.
func (c *chainRun) receiveAtGate(ctx workflow.Context, at step, gate *escalation.Gate) {
	c.receiveReplies(ctx)
	last := at.tier
	if !at.hasRun(c.state.Last()) {
		last-- // what was refused has not run: a person may ask for just that tier
	}
	if gate.Answer != nil {
		return
	}
	if c.policy.Gate.Restricts() {
		c.refuseOrders(ctx)
	}
	c.receiveOrders(ctx, last)
	if c.order != nil {
		gate.Answer = &escalation.GateClosing{ToTier: c.order.ToTier, Guidance: c.order.Guidance, At: workflow.Now(ctx)}
	}
}

// refuseOrders leaves an event for each order of a tier that comes to a gate at which not everybody
// may answer: it names nobody.
func (c *chainRun) refuseOrders(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, EscalateSignalName)
	for channel.ReceiveAsync(nil) {
		c.refuseOrder(ctx, errNameless)
	}
}

// receiveReplies takes in the answers that came as signals. Nobody replies to the sender of a signal, so
// each that does not count leaves an event.
//
// A signal waits in its channel until this is called. openGate calls it just before a gate opens, so what is
// taken in at the open gate has arrived while it was open. Updates need no such care: they are checked before
// the chain goes on in the workflow task that brings them.
func (c *chainRun) receiveReplies(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, ResolveGate)
	for {
		var reply GateReply
		if !channel.ReceiveAsync(&reply) {
			return
		}
		if err := c.check(reply); err != nil {
			c.note(ctx, escalation.Event{
				Kind: escalation.EventGateRefused, Severity: escalation.SeverityWarning,
				Message: "signal " + DescribeRefusedReply(reply, err),
			})
			continue
		}
		c.accept(ctx, reply)
	}
}

// refuseLateReplies leaves an event for each answer that came as a signal while the chain ended.
func (c *chainRun) refuseLateReplies(ctx workflow.Context) {
	if workflow.GetSignalChannel(ctx, ResolveGate).Len() == 0 {
		return
	}
	c.receiveReplies(ctx)
	recording, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	c.recordRest(recording)
}

// hasSignals reports whether a signal is there that a gate takes in.
func (c *chainRun) hasSignals(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, ResolveGate).Len()+workflow.GetSignalChannel(ctx, EscalateSignalName).Len() > 0
}

// DescribeRefusedReply tells who answered what, and why it did not count.
func DescribeRefusedReply(reply GateReply, why error) string {
	const most = 60 // characters of what somebody has typed
	short := func(text string) string { return clipTo(text, most) }
	return clip(fmt.Sprintf("%s of %q by %q at %q is refused: %s",
		ResolveGate, short(string(reply.Action)), short(reply.Actor), short(reply.GateID), why))
}
