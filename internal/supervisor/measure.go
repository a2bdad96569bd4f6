package supervisor

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/reconcile"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/telemetry"
	"github.com/claudeops/claudeops/workflows"
)

// allRecords combines the methods of the records for activities and for agents.
type allRecords interface {
	activities.Recorder
	agent.Records
}

// measured returns records that also update the metrics. If metrics is nil, measured returns records unchanged.
func measured(records recorder, metrics *telemetry.Metrics) allRecords {
	if metrics == nil {
		return records
	}
	return measuredRecords{records, metrics}
}

// measuredRecords counts ended sessions, refused calls, and errors of the database.
type measuredRecords struct {
	recorder

	metrics *telemetry.Metrics
}

// CloseSession implements activities.Recorder. It counts a session only if its record was open before. So a session
// counts once, even if the activity is repeated.
func (r measuredRecords) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	session, _, lookupErr := r.FindSession(ctx, sessionID)
	err := r.recorder.CloseSession(ctx, sessionID, report, endedAt)
	r.metrics.StoreFailed(telemetry.StoreCloseSession, err)
	if err == nil && lookupErr == nil && session.Status == escalation.SessionRunning {
		session.SetReport(report)
		session.EndedAt = endedAt
		r.metrics.SessionEnded(session)
	}
	return err
}

// AppendDecisions implements agent.Records. It counts decisions only after it has recorded them, because the caller
// tries again if the recording fails.
func (r measuredRecords) AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error {
	err := r.recorder.AppendDecisions(ctx, decisions)
	r.metrics.StoreFailed(telemetry.StoreDecisions, err)
	if err != nil {
		return err
	}
	for i := range decisions {
		if !decisions[i].Allowed {
			r.metrics.CallRefused(decisions[i].Tier, decisions[i].Rule)
		}
	}
	return nil
}

// OpenSession implements activities.Admissions.
func (r measuredRecords) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	opened, err := r.recorder.OpenSession(ctx, session, request, policy)
	r.metrics.StoreFailed(telemetry.StoreOpenSession, err)
	return opened, err
}

// Review implements activities.Admissions.
func (r measuredRecords) Review(
	ctx context.Context, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.Admission, error) {
	admission, err := r.recorder.Review(ctx, request, policy)
	r.metrics.StoreFailed(telemetry.StoreReview, err)
	return admission, err
}

// ReleaseServices implements activities.Admissions.
func (r measuredRecords) ReleaseServices(ctx context.Context, chainID string) error {
	err := r.recorder.ReleaseServices(ctx, chainID)
	r.metrics.StoreFailed(telemetry.StoreRelease, err)
	return err
}

// KnownIncidents implements activities.Incidents.
func (r measuredRecords) KnownIncidents(ctx context.Context, input activities.KnownIncidentsInput) ([]escalation.Incident, error) {
	incidents, err := r.recorder.KnownIncidents(ctx, input)
	r.metrics.StoreFailed(telemetry.StoreIncidents, err)
	return incidents, err
}

// ChainIncidents implements activities.Incidents.
func (r measuredRecords) ChainIncidents(
	ctx context.Context, chain escalation.ChainRun, sessionID string,
) (own, healed []escalation.Incident, err error) {
	own, healed, err = r.recorder.ChainIncidents(ctx, chain, sessionID)
	r.metrics.StoreFailed(telemetry.StoreIncidents, err)
	return own, healed, err
}

// RecordProgress implements activities.Incidents.
func (r measuredRecords) RecordProgress(ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error {
	err := r.recorder.RecordProgress(ctx, chain, progress)
	r.metrics.StoreFailed(telemetry.StoreIncidents, err)
	return err
}

// FindSession implements activities.Recorder.
func (r measuredRecords) FindSession(ctx context.Context, sessionID string) (escalation.Session, bool, error) {
	session, found, err := r.recorder.FindSession(ctx, sessionID)
	r.metrics.StoreFailed(telemetry.StoreFindSession, err)
	return session, found, err
}

// AppendEvents implements activities.Recorder.
func (r measuredRecords) AppendEvents(ctx context.Context, events []escalation.Event) error {
	err := r.recorder.AppendEvents(ctx, events)
	r.metrics.StoreFailed(telemetry.StoreEvents, err)
	return err
}

// Charge implements agent.Records.
func (r measuredRecords) Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error) {
	refusal, err := r.recorder.Charge(ctx, charge)
	r.metrics.StoreFailed(telemetry.StoreCharge, err)
	return refusal, err
}

// ReturnCharge implements agent.Records.
func (r measuredRecords) ReturnCharge(ctx context.Context, sessionID, call string) error {
	err := r.recorder.ReturnCharge(ctx, sessionID, call)
	r.metrics.StoreFailed(telemetry.StoreCharge, err)
	return err
}

// sweptRecords counts the sessions that a sweep closes, and the errors of the database during sweeps.
type sweptRecords struct {
	*store.Store

	metrics *telemetry.Metrics
}

var _ reconcile.Records = sweptRecords{}

// ClaimDuty implements reconcile.Records.
func (r sweptRecords) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	claimed, err := r.Store.ClaimDuty(ctx, name, holder, now, until)
	r.metrics.StoreFailed(telemetry.StoreSweep, err)
	return claimed, err
}

// Running implements reconcile.Records.
func (r sweptRecords) Running(ctx context.Context) ([]escalation.Session, error) {
	sessions, err := r.Store.Running(ctx)
	r.metrics.StoreFailed(telemetry.StoreSweep, err)
	return sessions, err
}

// SettleSession implements reconcile.Records.
func (r sweptRecords) SettleSession(
	ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time,
) (bool, error) {
	settled, err := r.Store.SettleSession(ctx, sessionID, report, endedAt)
	r.metrics.StoreFailed(telemetry.StoreSweep, err)
	if settled && r.metrics != nil {
		if session, err := r.BySessionID(ctx, sessionID); err == nil {
			r.metrics.SessionEnded(session)
		}
	}
	return settled, err
}

// chainCounter is an interceptor for a worker. It counts the chains that end on this worker.
type chainCounter struct {
	interceptor.WorkerInterceptorBase

	metrics *telemetry.Metrics
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (c *chainCounter) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &countedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, c.metrics}
}

type countedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase

	metrics *telemetry.Metrics
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. If Temporal repeats the last workflow task of a
// chain, the metric counts the chain twice. That is rare, and the records contain the chain only once.
func (w *countedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := w.Next.ExecuteWorkflow(ctx, in)
	if workflow.IsReplaying(ctx) || workflow.GetInfo(ctx).WorkflowType.Name != workflows.ChainWorkflow {
		return result, err
	}
	if outcome := outcomeOf(result, err); outcome != "" {
		w.metrics.ChainEnded(outcome)
	}
	return result, err
}

// outcomeOf returns the outcome of a chain whose workflow returns result and err; "" if the chain continues as new.
func outcomeOf(result any, err error) escalation.Outcome {
	switch chain, ok := result.(workflows.ChainResult); {
	case workflow.IsContinueAsNewError(err):
		return ""
	case temporal.IsCanceledError(err):
		return escalation.OutcomeAborted
	case err != nil || !ok:
		return escalation.OutcomeFailed
	default:
		return chain.Outcome
	}
}

// watchedAgent reports the session and the activity of an agent to the log, the metrics and the traces.
type watchedAgent struct {
	activities.Agent

	telemetry *telemetry.Telemetry
	logger    *slog.Logger
}

// Run implements activities.Agent.
func (a watchedAgent) Run(
	ctx context.Context, run activities.AgentRun, watch func(activities.AgentProgress),
) (activities.AgentReport, error) {
	session := telemetry.Session{ChainID: run.ChainID, SessionID: run.SessionID, Tier: run.Tier}
	ctx = telemetry.WithSession(ctx, session)
	ended := a.telemetry.Metrics().AgentStarted()
	defer ended()
	ctx, traced := a.telemetry.TraceSession(ctx, session, run.Policy.Model)
	observe := watch
	if traced != nil {
		observe = func(progress activities.AgentProgress) {
			for _, call := range progress.Tools {
				traced.Call(call.Number, call.Name, call.State == activities.ToolRunning, call.State == activities.ToolFailed)
			}
			watch(progress)
		}
	}
	report, err := a.Agent.Run(ctx, run, observe)
	traced.End(telemetry.SessionEnd{Status: string(report.Status), CostUSD: report.CostUSD, Turns: report.Turns, Err: err})
	a.logger.InfoContext(ctx, "an agent has ended", "model", run.Policy.Model, "status", report.Status, "cost_usd", report.CostUSD,
		"turns", report.Turns)
	return report, err
}
