package supervisor

import (
	"context"
	"encoding/json"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
)

// Secrets in the words of agents are masked where they come in: by package claude, and by package agent in the files that
// agents leave. This file masks the words of people, who may start chains and answer gates with other programs than ours,
// and masks the words of agents once more. IDs, times and our own words stay as they are.

// maskedVerdict returns a verdict with masked words.
func maskedVerdict(mask *redact.Redactor, verdict *escalation.Verdict) *escalation.Verdict {
	if verdict == nil {
		return nil
	}
	document, err := json.Marshal(verdict)
	if err != nil {
		return verdict // the store refuses it, too
	}
	var masked escalation.Verdict
	if json.Unmarshal(mask.JSON(document), &masked) != nil {
		return verdict
	}
	return &masked
}

// maskedReport returns a report with masked words.
func maskedReport(mask *redact.Redactor, report escalation.Report) escalation.Report {
	report.Verdict, report.Error = maskedVerdict(mask, report.Verdict), mask.Text(report.Error)
	return report
}

// maskedEvents returns events with masked messages.
func maskedEvents(mask *redact.Redactor, events []escalation.Event) []escalation.Event {
	masked := make([]escalation.Event, len(events))
	for i, event := range events {
		event.Message = mask.Text(event.Message)
		masked[i] = event
	}
	return masked
}

// OpenSession implements activities.Admissions.
func (r recorder) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	session.Report = maskedReport(r.mask, session.Report)
	return r.Store.OpenSession(ctx, session, request, policy)
}

// CloseSession implements activities.Recorder.
func (r recorder) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	return r.Store.CloseSession(ctx, sessionID, maskedReport(r.mask, report), endedAt)
}

// AppendEvents implements activities.Recorder.
func (r recorder) AppendEvents(ctx context.Context, events []escalation.Event) error {
	return r.Store.AppendEvents(ctx, maskedEvents(r.mask, events))
}

// maskedTarget is a place where people are notified of masked words.
type maskedTarget struct {
	activities.NotifyTarget
	mask *redact.Redactor
}

// maskTargets returns targets that are notified of masked words.
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

// failureMask converts errors to masked failures, which histories hold.
type failureMask struct {
	converter.FailureConverter
	mask *redact.Redactor
}

// MaskFailures returns the failure converter of a client whose errors hold no secret.
func MaskFailures(mask *redact.Redactor) converter.FailureConverter {
	return failureMask{temporal.GetDefaultFailureConverter(), mask}
}

// ErrorToFailure implements converter.FailureConverter.
func (f failureMask) ErrorToFailure(err error) *failurepb.Failure {
	failure := f.FailureConverter.ErrorToFailure(err)
	if failure == nil {
		return nil
	}
	masked := proto.CloneOf(failure) // an error that was a failure before gives just that one
	for part := masked; part != nil; part = part.GetCause() {
		part.Message, part.StackTrace = f.mask.Text(part.GetMessage()), f.mask.Text(part.GetStackTrace())
	}
	return masked
}
