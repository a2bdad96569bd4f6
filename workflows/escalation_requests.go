package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// escalationRequests receives the signals with which people request a higher tier.
type escalationRequests struct {
	log    *eventLog
	policy *escalation.Policy
	// pending is the request that the next decision considers; nil if there is none.
	pending *EscalateSignal
}

// receive reads all signals that have arrived. It keeps the latest valid request as pending, and adds an event for
// each invalid request. The argument last limits the requests: a valid request names a higher tier.
func (r *escalationRequests) receive(ctx workflow.Context, last escalation.Tier) {
	receiveSignals(workflow.GetSignalChannel(ctx, EscalateSignalName),
		func(signal EscalateSignal) { r.accept(ctx, signal, last) },
		func() { r.refuse(ctx, errUnreadable) })
}

// errUnreadable is the error for a signal whose payload cannot be decoded.
var errUnreadable = errors.New("its payload cannot be read; send one JSON object")

// accept stores a valid request as pending. It refuses an invalid request.
func (r *escalationRequests) accept(ctx workflow.Context, signal EscalateSignal, last escalation.Tier) {
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
	r.pending = &signal
	r.log.add(ctx, escalation.Event{Kind: escalation.EventSignal, Message: describeRequest(signal)})
}

// errNameless is the error for a request that would need the name of a person, because the policy restricts who may
// answer at gates. A signal has no validator that could check the name before it counts.
var errNameless = errors.New("not everybody may answer at the gates of this chain; send " + ResolveGate + " there")

// refuse adds an event for a refused request.
func (r *escalationRequests) refuse(ctx workflow.Context, why error) {
	r.log.add(ctx, escalation.Event{
		Kind: escalation.EventSignal, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", EscalateSignalName, why),
	})
}

// refuseAll refuses every signal that has arrived.
func (r *escalationRequests) refuseAll(ctx workflow.Context, why error) {
	channel := workflow.GetSignalChannel(ctx, EscalateSignalName)
	for channel.ReceiveAsync(nil) {
		r.refuse(ctx, why)
	}
}

// errSplit is the error for a request to a chain that has started a chain for each issue. errEnded is the error for a
// request to a chain that waits only for its notifications, and errNoTiers that for a request to the work on a plan.
var (
	errNoTiers = errors.New("the work on a plan has no tiers to escalate to; people decide at its gates")
	errSplit   = errors.New("the chain has split; send it to the chain of an issue")
	errEnded   = errors.New("the chain has ended")
)

// refuseLate adds an event for each request that arrived while the workflow ended.
func (r *escalationRequests) refuseLate(ctx workflow.Context) {
	if r.arrived(ctx) {
		r.refuseAll(ctx, errEnded)
		r.log.recordRest(ctx)
	}
}

// counts reports whether the pending request replaces a decision. The argument otherwise is the decision without the
// request. If this decision opens a gate that only some people may answer, the request must not bypass the gate. In
// this case counts refuses and drops the request, and returns false.
func (r *escalationRequests) counts(ctx workflow.Context, otherwise escalation.Decision) bool {
	if r.pending == nil {
		return false
	}
	gated := escalation.Gated(*r.policy, otherwise).Action == escalation.DecisionGate
	if !gated || !r.policy.Gate.Restricts() {
		return true
	}
	r.pending = nil
	r.refuse(ctx, errNameless)
	return false
}

// override returns the decision on a session that has ended, or what the pending request makes of it.
func (r *escalationRequests) override(ctx workflow.Context, session escalation.Session, decision escalation.Decision) escalation.Decision {
	if !r.counts(ctx, decision) {
		return decision
	}
	return escalation.Requested(*r.policy, session, r.pending.ToTier, decision)
}

// take returns the pending request and clears it; nil if there is none.
func (r *escalationRequests) take() *EscalateSignal {
	request := r.pending
	r.pending = nil
	return request
}

// arrived reports whether a signal has arrived that receive has not yet read.
func (r *escalationRequests) arrived(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, EscalateSignalName).Len() > 0
}
