package parts

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// EscalationRequests receives the signals with which people request a higher tier.
type EscalationRequests struct {
	log    *EventLog
	policy *escalation.Policy
	// pending is the request that the next decision considers; nil if there is none.
	Pending *EscalateSignal
}

// Receive reads all signals that have arrived. It keeps the latest valid request as pending, and adds an event for
// each invalid request. The argument last limits the requests: a valid request names a higher tier.
func (r *EscalationRequests) Receive(ctx workflow.Context, last escalation.Tier) {
	ReceiveSignals(workflow.GetSignalChannel(ctx, EscalateSignalName),
		func(signal EscalateSignal) { r.accept(ctx, signal, last) },
		func() { r.refuse(ctx, ErrUnreadable) })
}

// ErrUnreadable is the error for a signal whose payload cannot be decoded.
var ErrUnreadable = errors.New("its payload cannot be read; send one JSON object")

// accept stores a valid request as pending. It refuses an invalid request.
func (r *EscalationRequests) accept(ctx workflow.Context, signal EscalateSignal, last escalation.Tier) {
	err := signal.Validate()
	if err == nil {
		err = escalation.CheckEscalationRequest(*r.policy, last, signal.ToTier)
	}
	if err == nil && signal.Force && r.policy.Gate.Restricts() {
		err = errNameless
	}
	if err != nil {
		r.refuse(ctx, err)
		return
	}
	r.Pending = &signal
	r.log.Add(ctx, escalation.Event{Kind: escalation.EventSignal, Message: describeRequest(signal)})
}

// errNameless is the error for a request that would need the name of a person, because the policy restricts who may
// answer at gates. A signal has no validator that could check the name before it counts.
var errNameless = errors.New("not everybody may answer at the gates of this chain; send " + ResolveGate + " there")

// refuse adds an event for a refused request.
func (r *EscalationRequests) refuse(ctx workflow.Context, why error) {
	r.log.Add(ctx, escalation.Event{
		Kind: escalation.EventSignal, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", EscalateSignalName, why),
	})
}

// RefuseAll refuses every signal that has arrived.
func (r *EscalationRequests) RefuseAll(ctx workflow.Context, why error) {
	channel := workflow.GetSignalChannel(ctx, EscalateSignalName)
	for channel.ReceiveAsync(nil) {
		r.refuse(ctx, why)
	}
}

// ErrSplit is the error for a request to a chain that has started a chain for each issue. errEnded is the error for a
// request to a chain that waits only for its notifications, and ErrNoTiers that for a request to the work on a plan.
var (
	ErrNoTiers = errors.New("the work on a plan has no tiers to escalate to; people decide at its gates")
	ErrSplit   = errors.New("the chain has split; send it to the chain of an issue")
	errEnded   = errors.New("the chain has ended")
)

// refuseLate adds an event for each request that arrived while the workflow ended.
func (r *EscalationRequests) refuseLate(ctx workflow.Context) {
	if r.Arrived(ctx) {
		r.RefuseAll(ctx, errEnded)
		r.log.RecordRest(ctx)
	}
}

// Counts reports whether the pending request replaces a decision. The argument otherwise is the decision without the
// request. If this decision opens a gate that only some people may answer, the request must not bypass the gate. In
// this case Counts refuses and drops the request, and returns false.
func (r *EscalationRequests) Counts(ctx workflow.Context, otherwise escalation.Decision) bool {
	if r.Pending == nil {
		return false
	}
	gated := escalation.Gated(*r.policy, otherwise).Action == escalation.DecisionGate
	if !gated || !r.policy.Gate.Restricts() {
		return true
	}
	r.Pending = nil
	r.refuse(ctx, errNameless)
	return false
}

// Override returns the decision on a session that has ended, or what the pending request makes of it.
func (r *EscalationRequests) Override(
	ctx workflow.Context, session escalation.Session, decision escalation.Decision,
) escalation.Decision {
	if !r.Counts(ctx, decision) {
		return decision
	}
	return escalation.Requested(*r.policy, session, r.Pending.ToTier, decision)
}

// Take returns the pending request and clears it; nil if there is none.
func (r *EscalationRequests) Take() *EscalateSignal {
	request := r.Pending
	r.Pending = nil
	return request
}

// Arrived reports whether a signal has arrived that Receive has not yet read.
func (r *EscalationRequests) Arrived(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, EscalateSignalName).Len() > 0
}
