package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plant/reconcile"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
)

// records is the way of activities, agents and the sweep to the store. Its methods mask what the store writes. Each call goes through
// the function called, which counts failures and records lost chains again.
type records struct {
	*store.Store
	mask     *redact.Redactor
	metrics  *telemetry.Metrics
	recovery *recovery
}

var (
	_ activities.Recorder = records{}
	_ activities.Memories = records{}
	_ agent.Records       = records{}
	_ reconcile.Records   = records{}
)

// call describes a call of the store.
type call struct {
	operation telemetry.StoreOperation
	// chains holds the IDs of the chains whose sessions the call needs; empty for a call that needs none.
	chains []string
}

// called calls the function do, which calls the store. If the records lack a session that do needs, because they were restored from a
// backup, called records the sessions of the chains again and calls do once more. If a chain cannot be queried now, the error is
// transient. If do fails, called counts that.
func called[T any](ctx context.Context, r records, c call, do func() (T, error)) (T, error) {
	result, err := do()
	if errors.Is(err, store.ErrNotFound) && len(c.chains) > 0 && r.recovery.ready() {
		if err = r.recovery.record(ctx, c.chains); err == nil {
			result, err = do()
		}
	}
	r.metrics.StoreFailed(c.operation, err)
	return result, err
}

// done is called for a call without a result.
func done(ctx context.Context, r records, c call, do func() error) error {
	_, err := called(ctx, r, c, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// OpenSession implements activities.Admissions. If Temporal does not know the session's parent either, OpenSession records
// the session without a parent, so that the chain continues.
func (r records) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	session.Report = maskedReport(r.mask, session.Report)
	recovered := false
	c := call{telemetry.StoreOpenSession, []string{session.ChainID, request.ParentChain}}
	return called(ctx, r, c, func() (escalation.AdmissionResult, error) {
		result, err := r.Store.OpenSession(ctx, session, request, policy)
		if recovered && errors.Is(err, store.ErrNotFound) {
			session.ParentID, request.Previous, request.Parent = 0, "", ""
			return r.Store.OpenSession(ctx, session, request, policy)
		}
		recovered = true
		return result, err
	})
}

// CloseSession implements activities.Recorder. It counts a session only if its record was open before. So a session
// counts once, even if the activity is repeated.
func (r records) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	var session escalation.Session
	var lookupErr error
	if r.metrics != nil {
		session, _, lookupErr = r.FindSession(ctx, sessionID)
	}
	c := call{operation: telemetry.StoreCloseSession}
	if activity.IsActivity(ctx) {
		c.chains = []string{activity.GetInfo(ctx).WorkflowExecution.ID}
	}
	report = maskedReport(r.mask, report)
	err := done(ctx, r, c, func() error { return r.Store.CloseSession(ctx, sessionID, report, endedAt) })
	if err == nil && lookupErr == nil && session.Status == escalation.SessionRunning {
		session.SetReport(report)
		session.EndedAt = endedAt
		r.metrics.SessionEnded(session)
	}
	return err
}

// SettleSession implements reconcile.Records. It counts the session. As for the methods below, the database's time counts, and that of this
// host only for a database without a clock: the records of all hosts have one time.
func (r records) SettleSession(
	ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time,
) (bool, error) {
	settled, err := called(ctx, r, call{operation: telemetry.StoreSweep}, func() (bool, error) {
		endedAt, err := r.Now(ctx, endedAt)
		if err != nil {
			return false, err
		}
		return r.Store.SettleSession(ctx, sessionID, report, endedAt)
	})
	if settled && r.metrics != nil {
		if session, err := r.BySessionID(ctx, sessionID); err == nil {
			r.metrics.SessionEnded(session)
		}
	}
	return settled, err
}

// Charge implements agent.Records. It masks the names of services as CloseSession does, so that a charge and a verdict
// have the same names.
func (r records) Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error) {
	charge.Actions = maskedActions(r.mask, charge.Actions)
	return called(ctx, r, call{telemetry.StoreCharge, []string{charge.ChainID}}, func() (*escalation.ChargeRefusal, error) {
		return r.Store.Charge(ctx, charge)
	})
}

// ReturnCharge implements agent.Records.
func (r records) ReturnCharge(ctx context.Context, sessionID, id string) error {
	return done(ctx, r, call{operation: telemetry.StoreCharge}, func() error { return r.Store.ReturnCharge(ctx, sessionID, id) })
}

// AppendDecisions implements agent.Records. It masks the inputs of the calls, which come unmasked from the CLI's hook. It
// counts decisions only after it has recorded them, because the caller tries again if the recording fails.
func (r records) AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error {
	masked := maskedDecisions(r.mask, decisions)
	err := done(ctx, r, call{operation: telemetry.StoreDecisions}, func() error { return r.Store.AppendDecisions(ctx, masked) })
	for i := range decisions {
		if err == nil && !decisions[i].Allowed {
			r.metrics.CallRefused(decisions[i].Tier, decisions[i].Rule)
		}
	}
	return err
}

// AppendEvents implements activities.Recorder.
func (r records) AppendEvents(ctx context.Context, events []escalation.Event) error {
	return done(ctx, r, call{operation: telemetry.StoreEvents}, func() error {
		return r.Store.AppendEvents(ctx, maskedEvents(r.mask, events))
	})
}

// RecordProgress implements activities.Incidents.
func (r records) RecordProgress(ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error {
	progress.Reason = r.mask.Text(progress.Reason)
	return done(ctx, r, call{operation: telemetry.StoreIncidents}, func() error { return r.Store.RecordProgress(ctx, chain, progress) })
}

// KnownIncidents implements activities.Incidents.
func (r records) KnownIncidents(ctx context.Context, input activities.KnownIncidentsInput) ([]escalation.Incident, error) {
	return called(ctx, r, call{operation: telemetry.StoreIncidents}, func() ([]escalation.Incident, error) {
		return r.Incidents(ctx, store.IncidentFilter{
			Since: input.At.Add(-escalation.IncidentMemory), Services: input.Services, Kind: input.Kind, IDs: input.IDs,
		})
	})
}

// ChainIncidents implements activities.Incidents.
func (r records) ChainIncidents(
	ctx context.Context, chain escalation.ChainRun, sessionID string,
) (own, healed []escalation.Incident, err error) {
	err = done(ctx, r, call{operation: telemetry.StoreIncidents}, func() (err error) {
		own, healed, err = r.Store.ChainIncidents(ctx, chain, sessionID)
		return err
	})
	return own, healed, err
}

// RecallMemories implements activities.Memories.
func (r records) RecallMemories(ctx context.Context, recall memory.Recall) (memory.Brief, error) {
	return called(ctx, r, call{operation: telemetry.StoreMemories}, func() (memory.Brief, error) {
		return r.Store.RecallMemories(ctx, recall)
	})
}

// ProposeMemories masks proposals and records them, as store.Store does.
func (r records) ProposeMemories(
	ctx context.Context, source memory.Source, proposals []escalation.MemoryProposal,
) ([]memory.Memory, error) {
	masked := slices.Clone(proposals)
	for i := range masked {
		masked[i] = MaskProposal(r.mask, masked[i])
	}
	return called(ctx, r, call{operation: telemetry.StoreMemories}, func() ([]memory.Memory, error) {
		return r.Store.ProposeMemories(ctx, source, masked)
	})
}

// FindSession implements activities.Recorder.
func (r records) FindSession(ctx context.Context, sessionID string) (session escalation.Session, found bool, err error) {
	found, err = called(ctx, r, call{operation: telemetry.StoreFindSession}, func() (bool, error) {
		session, err = r.Conversation(ctx, sessionID)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	return session, found, err
}

// Review implements activities.Admissions.
func (r records) Review(
	ctx context.Context, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.Admission, error) {
	return called(ctx, r, call{operation: telemetry.StoreReview}, func() (escalation.Admission, error) {
		return r.Store.Review(ctx, request, policy)
	})
}

// ReleaseServices implements activities.Admissions.
func (r records) ReleaseServices(ctx context.Context, chainID string) error {
	return done(ctx, r, call{operation: telemetry.StoreRelease}, func() error { return r.Store.ReleaseServices(ctx, chainID) })
}

// ClaimDuty implements reconcile.Records.
func (r records) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	return called(ctx, r, call{operation: telemetry.StoreSweep}, func() (bool, error) {
		at, err := r.Now(ctx, now)
		if err != nil {
			return false, err
		}
		return r.Store.ClaimDuty(ctx, name, holder, at, at.Add(until.Sub(now)))
	})
}

// Claim implements reconcile.Records.
func (r records) Claim(ctx context.Context, own store.Namespace, now time.Time) error {
	return done(ctx, r, call{operation: telemetry.StoreSweep}, func() error {
		at, err := r.Now(ctx, now)
		if err != nil {
			return err
		}
		return r.Store.Claim(ctx, own, at)
	})
}

// RecordDelivery implements activities.DeliveryLog.
func (r records) RecordDelivery(ctx context.Context, key, target string, at time.Time) error {
	now, err := r.Now(ctx, at)
	if err != nil {
		return err
	}
	return r.Store.RecordDelivery(ctx, key, target, now)
}

// Running implements reconcile.Records.
func (r records) Running(ctx context.Context) ([]escalation.Session, error) {
	return called(ctx, r, call{operation: telemetry.StoreSweep}, func() ([]escalation.Session, error) { return r.Store.Running(ctx) })
}
