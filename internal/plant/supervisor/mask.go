package supervisor

import (
	"context"
	"encoding/json"
	"slices"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/redact"
)

// This file masks secrets in the texts of people, who can start chains and answer gates with programs other than this
// one. It also masks the texts of agents a second time. Package claude has already masked the CLI's output, and
// package agent has already masked the files that agents leave. IDs, times and the supervisor's own texts stay
// unchanged.

// maskedVerdict returns verdict with the secrets in its texts masked. A verdict that cannot be encoded as JSON stays
// unchanged.
func maskedVerdict(mask *redact.Redactor, verdict *escalation.Verdict) *escalation.Verdict {
	if verdict == nil {
		return nil
	}
	document, err := json.Marshal(verdict)
	if err != nil {
		return verdict // the store refuses such a verdict, too
	}
	var masked escalation.Verdict
	if json.Unmarshal(mask.JSON(document), &masked) != nil {
		return verdict
	}
	return &masked
}

// MaskProposal returns proposal with the secrets in its texts masked.
func MaskProposal(mask *redact.Redactor, proposal escalation.MemoryProposal) escalation.MemoryProposal {
	proposal.Service, proposal.Subject, proposal.Text = mask.Text(proposal.Service), mask.Text(proposal.Subject), mask.Text(proposal.Text)
	return proposal
}

// maskedReport returns report with the secrets in its verdict and its error masked.
func maskedReport(mask *redact.Redactor, report escalation.Report) escalation.Report {
	report.Verdict, report.Error = maskedVerdict(mask, report.Verdict), mask.Text(report.Error)
	return report
}

// maskedEvents returns events with the secrets in their messages masked.
func maskedEvents(mask *redact.Redactor, events []escalation.Event) []escalation.Event {
	masked := make([]escalation.Event, len(events))
	for i, event := range events {
		event.Message = mask.Text(event.Message)
		masked[i] = event
	}
	return masked
}

// MaskChain returns chain with the secrets in its reports, events and reasons masked, as records have them.
func MaskChain(mask *redact.Redactor, chain escalation.Chain) escalation.Chain {
	chain.Sessions = slices.Clone(chain.Sessions)
	for i := range chain.Sessions {
		chain.Sessions[i].Report = maskedReport(mask, chain.Sessions[i].Report)
	}
	chain.Gates = slices.Clone(chain.Gates)
	for i := range chain.Gates {
		chain.Gates[i].Reason = mask.Text(chain.Gates[i].Reason)
	}
	chain.Events, chain.Reason = maskedEvents(mask, chain.Events), mask.Text(chain.Reason)
	return chain
}

// maskedDecisions returns decisions with the secrets in their texts masked. It masks the whole input of a call,
// before the store cuts it. In a cut text, a secret could lack the end by which it is recognised.
func maskedDecisions(mask *redact.Redactor, decisions []escalation.CallDecision) []escalation.CallDecision {
	masked := slices.Clone(decisions)
	for i := range masked {
		masked[i].Input = string(mask.JSON([]byte(masked[i].Input)))
		masked[i].Rule, masked[i].Reason = mask.Text(masked[i].Rule), mask.Text(masked[i].Reason)
		masked[i].Actions = maskedActions(mask, masked[i].Actions)
	}
	return masked
}

// maskedActions returns actions with the secrets in the names of services masked.
func maskedActions(mask *redact.Redactor, actions []escalation.CallAction) []escalation.CallAction {
	masked := slices.Clone(actions)
	for i := range masked {
		masked[i].Service = mask.Text(masked[i].Service)
	}
	return masked
}

// maskedTarget is a notification target whose texts and errors are masked.
type maskedTarget struct {
	activities.NotifyTarget
	mask *redact.Redactor
}

// maskTargets wraps each target in a maskedTarget.
func maskTargets(mask *redact.Redactor, targets []activities.NotifyTarget) []activities.NotifyTarget {
	masked := make([]activities.NotifyTarget, len(targets))
	for i, target := range targets {
		masked[i] = maskedTarget{target, mask}
	}
	return masked
}

// Send implements activities.NotifyTarget.
func (t maskedTarget) Send(ctx context.Context, notification escalation.Notification) error {
	notification.Title, notification.Text = t.mask.Text(notification.Title), t.mask.Text(notification.Text)
	return t.mask.Error(t.NotifyTarget.Send(ctx, notification))
}

// MaskFailures returns the failure converter of a client. It masks the secrets in errors, because histories store
// failures. If keys is not nil, it also encrypts failures.
func MaskFailures(mask *redact.Redactor, keys *encryption.Keys) converter.FailureConverter {
	return encryption.NewFailureConverter(keys, func(failure *failurepb.Failure) {
		failure.Message, failure.StackTrace = mask.Text(failure.GetMessage()), mask.Text(failure.GetStackTrace())
	})
}
