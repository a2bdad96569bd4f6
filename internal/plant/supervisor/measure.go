package supervisor

import (
	"context"
	"log/slog"
	"slices"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/workflows"
)

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
	isChain := slices.Contains(workflows.ChainWorkflows(), workflow.GetInfo(ctx).WorkflowType.Name)
	if workflow.IsReplaying(ctx) || !isChain {
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
				traced.Call(call.Number, call.Name, call.State == activities.ToolRunning,
					call.State == activities.ToolFailed)
			}
			watch(progress)
		}
	}
	report, err := a.Agent.Run(ctx, run, observe)
	traced.End(telemetry.SessionEnd{
		Status: string(report.Status), CostUSD: report.CostUSD, Turns: report.Turns,
		Err: err,
	})
	a.logger.InfoContext(ctx, "an agent has ended", "model", run.Policy.Model, "status", report.Status, "cost_usd",
		report.CostUSD,
		"turns", report.Turns)
	return report, err
}
