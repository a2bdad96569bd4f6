package supervisor

import (
	"context"
	"errors"
	"slices"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/store"
)

// recorder is the store as chains need it. It writes masked words.
type recorder struct {
	*store.Store
	mask *redact.Redactor
}

var _ activities.Recorder = recorder{}

// FindSession implements activities.Recorder.
func (r recorder) FindSession(ctx context.Context, sessionID string) (escalation.Session, bool, error) {
	session, err := r.BySessionID(ctx, sessionID)
	if errors.Is(err, store.ErrNotFound) {
		return escalation.Session{}, false, nil
	}
	return session, err == nil, err
}

// AppendDecisions records what was decided on calls. What an agent calls a tool with comes from the CLI's hook, so nobody
// has masked it before.
func (r recorder) AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error {
	return r.Store.AppendDecisions(ctx, maskedDecisions(r.mask, decisions))
}

// Charge enters what a call does into the ledger. A service has the name there that a masked verdict gives it.
func (r recorder) Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error) {
	charge.Actions = maskedActions(r.mask, charge.Actions)
	return r.Store.Charge(ctx, charge)
}

// maskedDecisions returns decisions with masked words. The whole input is masked before the store cuts it, so that no
// secret loses the end by which it is known.
func maskedDecisions(mask *redact.Redactor, decisions []escalation.CallDecision) []escalation.CallDecision {
	masked := slices.Clone(decisions)
	for i := range masked {
		masked[i].Input = string(mask.JSON([]byte(masked[i].Input)))
		masked[i].Rule, masked[i].Reason = mask.Text(masked[i].Rule), mask.Text(masked[i].Reason)
		masked[i].Actions = maskedActions(mask, masked[i].Actions)
	}
	return masked
}

// maskedActions returns actions with masked names of services.
func maskedActions(mask *redact.Redactor, actions []escalation.CallAction) []escalation.CallAction {
	masked := slices.Clone(actions)
	for i := range masked {
		masked[i].Service = mask.Text(masked[i].Service)
	}
	return masked
}
