package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// EscalateSignalName is the signal by which a person asks a running chain for a higher tier.
const EscalateSignalName = "escalate"

// maxSignalText bounds the words of a signal, in bytes as JSON: they go into prompts and records.
const maxSignalText = 10_000

// EscalateSignal is the payload of the signal.
type EscalateSignal struct {
	// ToTier is the tier to run: 2 or 3.
	ToTier escalation.Tier `json:"to_tier"`
	// Reason says why, for the record.
	Reason string `json:"reason,omitempty"`
	// Guidance is told to the tier.
	Guidance string `json:"guidance,omitempty"`
	// Force passes the cooldowns. The highest tier and a dry run hold all the same.
	Force bool `json:"force,omitempty"`

	// problem is what is wrong with the JSON that this was read from. A decoding error would
	// drop the signal without a trace.
	problem error
}

// UnmarshalJSON reads the payload strictly. It returns no error: what is wrong is told by Validate.
func (e *EscalateSignal) UnmarshalJSON(data []byte) error {
	type plain EscalateSignal // without methods, so that decoding does not come back here
	var decoded plain
	problem := decodeStrictly(data, &decoded)
	*e = EscalateSignal(decoded)
	e.problem = problem
	return nil
}

// Validate reports the first thing that is wrong with the payload, in one sentence.
func (e EscalateSignal) Validate() error {
	if e.problem != nil {
		return e.problem
	}
	if !e.ToTier.Valid() {
		return fmt.Errorf("to_tier %d is not a tier: it must be 1, 2 or 3", int(e.ToTier))
	}
	for _, text := range []struct{ name, value string }{{"reason", e.Reason}, {"guidance", e.Guidance}} {
		if encoded, err := json.Marshal(text.value); err != nil || len(encoded) > maxSignalText {
			return fmt.Errorf("%s has %d bytes as JSON, and at most %d are allowed", text.name, len(encoded), maxSignalText)
		}
	}
	return nil
}

// receiveOrders takes in the signals that have arrived. Of several, the latest that is possible
// after the tier that ran last holds; an impossible one leaves an event.
func (c *chainRun) receiveOrders(ctx workflow.Context, last escalation.Tier) {
	channel := workflow.GetSignalChannel(ctx, EscalateSignalName)
	for {
		var signal EscalateSignal
		if !channel.ReceiveAsync(&signal) {
			return
		}
		c.receiveOrder(ctx, signal, last)
	}
}

func (c *chainRun) receiveOrder(ctx workflow.Context, signal EscalateSignal, last escalation.Tier) {
	err := signal.Validate()
	if err == nil {
		err = escalation.CheckOrder(c.policy, last, signal.ToTier)
	}
	if err == nil && signal.Force && c.policy.Gate.Restricts() {
		err = errNameless
	}
	if err != nil {
		c.refuseOrder(ctx, err)
		return
	}
	c.order = &signal
	c.note(ctx, escalation.Event{Kind: escalation.EventSignal, Message: describeOrder(signal)})
}

// errNameless refuses an order where only some people may decide what it asks for.
var errNameless = errors.New("it names nobody, and not everybody may answer at the gates of this chain; send " + ResolveGate + " there")

func (c *chainRun) refuseOrder(ctx workflow.Context, why error) {
	c.note(ctx, escalation.Event{
		Kind: escalation.EventSignal, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", EscalateSignalName, why),
	})
}

// mayOrder reports whether an order counts where otherwise would follow. It does not pass a gate at
// which not everybody may answer, and is dropped there.
func (c *chainRun) mayOrder(ctx workflow.Context, otherwise escalation.Decision) bool {
	gated := escalation.Gated(c.policy, otherwise).Action == escalation.DecisionGate
	if !gated || !c.policy.Gate.Restricts() {
		return true
	}
	c.order = nil
	c.refuseOrder(ctx, errNameless)
	return false
}

// mayOrderRefused is mayOrder for a step that was not admitted.
func (c *chainRun) mayOrderRefused(ctx workflow.Context, otherwise escalation.Decision) bool {
	if workflow.GetVersion(ctx, changeRefusedOrders, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return true
	}
	return c.mayOrder(ctx, otherwise)
}

// takeOrder returns the tier that a person asks for, and forgets the order; nil if there is none.
func (c *chainRun) takeOrder() *EscalateSignal {
	order := c.order
	c.order = nil
	return order
}

func describeOrder(order EscalateSignal) string {
	text := fmt.Sprintf("a person asks for %s", order.ToTier)
	if order.Force {
		text += ", cooldowns or not"
	}
	if reason := strings.TrimSpace(order.Reason); reason != "" {
		text += ": " + reason
	}
	return text
}
