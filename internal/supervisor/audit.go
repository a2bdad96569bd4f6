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
	// auditBacklog is how many refused answers may wait to be recorded. Whoever sends more of them than
	// a database takes gets each of them refused all the same; only the record is then incomplete.
	auditBacklog = 1_000
	// auditPause is the time between two tries at a database that is away.
	auditPause = time.Second
	// auditDrain is how long a worker that stops tries to record what is left.
	auditDrain = 5 * time.Second
)

// audit records the answers at gates that were refused. Temporal keeps nothing of an update that its
// validator refuses, and a validator may do nothing itself, so a worker records it beside the chain.
type audit struct {
	append func(ctx context.Context, events []escalation.Event) error
	logger *slog.Logger
	queue  chan escalation.Event
}

func newAudit(write func(context.Context, []escalation.Event) error, logger *slog.Logger) *audit {
	return &audit{append: write, logger: logger, queue: make(chan escalation.Event, auditBacklog)}
}

// add hands over an event. It does not wait.
func (a *audit) add(event escalation.Event) {
	select {
	case a.queue <- event:
	default:
		a.logger.Error("a refused answer is not recorded: too many wait for the database",
			"chain_id", event.ChainID, "event", event.Message)
	}
}

// run records what is handed over until ctx ends, and then, for a limited time, what is left.
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

// write records an event, and tries again for as long as the database may come back. An event whose
// turn the end of ctx has cut short goes back to the queue.
func (a *audit) write(ctx context.Context, event escalation.Event) {
	for {
		err := a.append(context.WithoutCancel(ctx), []escalation.Event{event})
		if err == nil {
			return
		}
		if isPermanent(err) {
			a.logger.Error("a refused answer is not recorded", "chain_id", event.ChainID, "event", event.Message, "error", err)
			return
		}
		select {
		case <-time.After(auditPause):
		case <-ctx.Done():
			if _, draining := ctx.Deadline(); draining {
				a.logger.Error("a refused answer is not recorded", "chain_id", event.ChainID, "event", event.Message, "error", err)
			} else {
				a.add(event)
			}
			return
		}
	}
}

// auditing has a worker record the answers that its chains refuse.
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

// ValidateUpdate implements interceptor.WorkflowInboundInterceptor. Nothing is validated in a replay.
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
	// A step that Temporal repeats refuses the same update again, under the same key.
	digest := sha256.Sum256([]byte(workflow.GetCurrentUpdateInfo(ctx).ID + "\x00" + message))
	w.audit.add(escalation.Event{
		Key: fmt.Sprintf("%s/refused/%s", chain.RunID, hex.EncodeToString(digest[:12])), ChainID: chain.ID,
		Kind: escalation.EventGateRefused, Severity: escalation.SeverityWarning, Message: message, At: workflow.Now(ctx),
	})
	return refusal
}
