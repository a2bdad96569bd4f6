package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// auditBacklog limits how many refused answers wait to be recorded. If refused answers arrive faster than the
	// database can store them, some are not recorded.
	auditBacklog = 1_000
	// auditPause is the time between two attempts to write to a database that is unavailable.
	auditPause = time.Second
	// auditDrain limits how long a stopping worker tries to record the remaining events.
	auditDrain = 5 * time.Second
)

// audit records gate answers that chains have refused. Temporal does not store an update that its validator refuses,
// and a validator must not have side effects. Therefore the worker records the refused answer outside of the workflow.
type audit struct {
	append func(ctx context.Context, events []escalation.Event) error
	logger *slog.Logger
	queue  chan escalation.Event
}

func newAudit(write func(context.Context, []escalation.Event) error, logger *slog.Logger) *audit {
	return &audit{append: write, logger: logger, queue: make(chan escalation.Event, auditBacklog)}
}

// add queues an event without waiting. If the queue is full, add only logs the event.
func (a *audit) add(event escalation.Event) {
	select {
	case a.queue <- event:
	default:
		a.logger.Error("a refused answer is not recorded: too many wait for the database",
			"chain_id", event.ChainID, "event", event.Message)
	}
}

// run records queued events until ctx ends. Then it tries to record the remaining events, for at most auditDrain.
func (a *audit) run(ctx context.Context) {
	for {
		select {
		case event := <-a.queue:
			a.write(ctx, event)
		case <-ctx.Done():
			a.drain(context.WithoutCancel(ctx))
			return
		}
	}
}

func (a *audit) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, auditDrain)
	defer cancel()
	for {
		select {
		case event := <-a.queue:
			a.write(ctx, event)
		default:
			return
		}
	}
}

// write records an event, and retries as long as the error is temporary. If ctx ends before a retry, write puts the
// event back into the queue. During the final drain, write gives up the event instead. It logs each event that it
// gives up.
func (a *audit) write(ctx context.Context, event escalation.Event) {
	for {
		err := a.append(context.WithoutCancel(ctx), []escalation.Event{event})
		if err == nil {
			return
		}
		if isPermanent(err) {
			a.logger.Error("a refused answer is not recorded", "chain_id", event.ChainID, "event", event.Message,
				"error", err)
			return
		}
		select {
		case <-time.After(auditPause):
		case <-ctx.Done():
			if _, draining := ctx.Deadline(); draining {
				a.logger.Error("a refused answer is not recorded", "chain_id", event.ChainID, "event", event.Message,
					"error", err)
			} else {
				a.add(event)
			}
			return
		}
	}
}

// auditing is an interceptor for a worker. It records gate answers that chains of this worker have refused.
type auditing struct {
	interceptor.WorkerInterceptorBase
	audit *audit
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (a *auditing) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &auditedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, a.audit}
}

type auditedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	audit *audit
}

// ValidateUpdate implements interceptor.WorkflowInboundInterceptor. The SDK does not call ValidateUpdate during a
// replay.
func (w *auditedWorkflow) ValidateUpdate(ctx workflow.Context, in *interceptor.UpdateInput) error {
	refusal := w.Next.ValidateUpdate(ctx, in)
	if refusal == nil || in.Name != workflows.ResolveGate || len(in.Args) != 1 {
		return refusal
	}
	reply, ok := in.Args[0].(workflows.GateReply)
	if !ok {
		return refusal
	}
	chain, message := workflow.GetInfo(ctx).WorkflowExecution, "update "+workflows.DescribeRefusedReply(reply, refusal)
	// If Temporal repeats a workflow task, the chain refuses the same update again. Both events must then have the
	// same key, so that the answer is recorded only once.
	digest := sha256.Sum256([]byte(workflow.GetCurrentUpdateInfo(ctx).ID + "\x00" + message))
	w.audit.add(escalation.Event{
		Key: fmt.Sprintf("%s/refused/%s", chain.RunID, hex.EncodeToString(digest[:12])), ChainID: chain.ID,
		FirstRunID: workflow.GetInfo(ctx).OriginalRunID,
		Kind:       escalation.EventGateRefused, Severity: escalation.SeverityWarning, Message: message,
		At: workflow.Now(ctx),
	})
	return refusal
}
