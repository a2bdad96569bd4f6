package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/store"
)

// recorder adapts the store to the interfaces of the activities. It masks secrets before the store writes. If the records
// lack a session that Temporal knows, it records the session again.
type recorder struct {
	*store.Store
	mask     *redact.Redactor
	recovery *recovery
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

// KnownIncidents implements activities.Incidents.
func (r recorder) KnownIncidents(ctx context.Context, input activities.KnownIncidentsInput) ([]escalation.Incident, error) {
	return r.Incidents(ctx, store.IncidentFilter{
		Since: input.At.Add(-escalation.IncidentMemory), Services: input.Services, Kind: input.Kind, IDs: input.IDs,
	})
}

// RecordProgress implements activities.Incidents.
func (r recorder) RecordProgress(ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error {
	progress.Reason = r.mask.Text(progress.Reason)
	return r.Store.RecordProgress(ctx, chain, progress)
}

// AppendDecisions records the guard's decisions on calls. It masks the inputs of the calls, which come unmasked from
// the CLI's hook.
func (r recorder) AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error {
	return r.Store.AppendDecisions(ctx, maskedDecisions(r.mask, decisions))
}

// Charge adds the actions of a call to the ledger. It masks the names of services as CloseSession does, so that a
// charge and a verdict have the same names.
func (r recorder) Charge(ctx context.Context, charge escalation.Charge) (refusal *escalation.ChargeRefusal, err error) {
	charge.Actions = maskedActions(r.mask, charge.Actions)
	err = r.recovery.retry(ctx, []string{charge.ChainID}, func() error {
		refusal, err = r.Store.Charge(ctx, charge)
		return err
	})
	return refusal, err
}

// CloseSession implements activities.Recorder.
func (r recorder) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	var chains []string
	if activity.IsActivity(ctx) {
		chains = []string{activity.GetInfo(ctx).WorkflowExecution.ID}
	}
	report = maskedReport(r.mask, report)
	return r.recovery.retry(ctx, chains, func() error {
		return r.Store.CloseSession(ctx, sessionID, report, endedAt)
	})
}

// OpenSession implements activities.Admissions. If Temporal does not know the session's parent either, OpenSession records
// the session without a parent, so that the chain continues.
func (r recorder) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (result escalation.AdmissionResult, err error) {
	session.Report = maskedReport(r.mask, session.Report)
	open := func() error {
		result, err = r.Store.OpenSession(ctx, session, request, policy)
		return err
	}
	err = r.recovery.retry(ctx, []string{session.ChainID, request.ParentChain}, open)
	if errors.Is(err, store.ErrNotFound) && r.recovery.ready() {
		session.ParentID, request.Previous, request.Parent = 0, "", ""
		err = open()
	}
	return result, err
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
