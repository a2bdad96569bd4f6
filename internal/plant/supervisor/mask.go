package supervisor

import (
	"context"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/redact"
)

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
