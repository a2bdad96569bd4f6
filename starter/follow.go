package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// followInterval is how often a chain is looked at. Heartbeats come every second.
	followInterval = 250 * time.Millisecond
	// queryTimeout keeps a follower from hanging when no worker answers.
	queryTimeout = 5 * time.Second
	// notifyGrace is how long a chain whose outcome is known is followed for its notifications. A
	// service that is well takes them within that; one that is away may keep the chain open for an hour.
	notifyGrace = 5 * time.Second
)

// follower tells what a chain does, each thing once.
type follower struct {
	app    *app
	client client.Client
	id     string
	runID  string

	events int // told so far
	// session is the conversation whose tool calls were told up to number call.
	session string
	call    int
	// worker is the worker that was told last.
	worker string
	away   bool // no worker answered last time
	// concluded is when it was first seen that nothing is left but notifications; zero if it was not.
	concluded time.Time
}

// follow tells what the chain does until it has ended, but for notifications that take long, and
// returns it as it ended. When ctx ends first, the chain goes on without a spectator.
func (a *app) follow(ctx context.Context, c client.Client, run client.WorkflowRun) (escalation.Chain, error) {
	f := &follower{app: a, client: c, id: run.GetID(), runID: run.GetRunID()}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var chain escalation.Chain
	go func() { ended <- run.Get(ctx, &chain) }()
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil && ctx.Err() != nil {
				a.say("Chain %s goes on. See it with: starter chain %s", f.id, f.id)
				return chain, ctx.Err()
			}
			return f.conclude(ctx, chain, err)
		case <-ticker.C:
			seen, err := f.look(ctx)
			if err == nil && f.notifiesOnly(ctx, seen) {
				a.say("The notifications of chain %s are still on their way. What becomes of them: starter chain %s", f.id, f.id)
				return seen, nil
			}
		}
	}
}

// conclude tells the rest of a chain that has ended with err, and returns it.
func (f *follower) conclude(ctx context.Context, chain escalation.Chain, err error) (escalation.Chain, error) {
	switch {
	case temporal.IsCanceledError(err): // it has no result, but it can still be asked
		if chain, err = queryChain(ctx, f.client, f.id, f.runID); err != nil {
			return chain, fmt.Errorf("chain %s was cancelled, and does not tell more: %w", f.id, err)
		}
	case isRefusal(err):
		return chain, misuse(fmt.Errorf("chain %s: %w", f.id, rootCause(err)))
	case err != nil:
		return chain, fmt.Errorf("chain %s: %w", f.id, rootCause(err))
	}
	f.tellEvents(chain)
	return chain, nil
}

// isRefusal reports whether a chain refused its input.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && refused.Type() == workflows.ErrorTypeInput
}

// look tells what is new, and returns the chain as it is. A worker or server that is away is told
// once and waited for.
func (f *follower) look(ctx context.Context) (escalation.Chain, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	chain, err := queryChain(ctx, f.client, f.id, f.runID)
	if err != nil {
		if !f.away && ctx.Err() == nil {
			f.app.say("%s  no worker answers yet", clock(time.Now()))
		}
		f.away = true
		return chain, err
	}
	f.away = false
	f.tellEvents(chain)
	f.tellTools(ctx, chain)
	return chain, nil
}

// notifiesOnly reports whether the chain's outcome is known and recorded, and nothing has been left
// to do for a while but to tell people.
func (f *follower) notifiesOnly(ctx context.Context, chain escalation.Chain) bool {
	if chain.Outcome == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	described, err := f.client.DescribeWorkflowExecution(ctx, f.id, f.runID)
	if err != nil {
		return false
	}
	pending := described.GetPendingActivities()
	if len(pending) == 0 || slices.ContainsFunc(pending, func(activity *workflowpb.PendingActivityInfo) bool {
		return activity.GetActivityType().GetName() != activities.NotifyActivity
	}) {
		f.concluded = time.Time{}
		return false
	}
	if f.concluded.IsZero() {
		f.concluded = time.Now()
	}
	return time.Since(f.concluded) > notifyGrace
}

func (f *follower) tellEvents(chain escalation.Chain) {
	for _, event := range chain.Events[min(f.events, len(chain.Events)):] {
		f.app.say("%s  %s", clock(event.At), printable(event.Message, 300))
	}
	f.events = len(chain.Events)
}

// tellTools tells the tool calls of the tier that runs, as its heartbeat lists them.
func (f *follower) tellTools(ctx context.Context, chain escalation.Chain) {
	running := chain.Last()
	if running == nil || running.Status != escalation.SessionRunning {
		return
	}
	if f.session != running.SessionID {
		f.session, f.call = running.SessionID, 0
	}
	described, err := f.client.DescribeWorkflowExecution(ctx, f.id, f.runID)
	if err != nil {
		return
	}
	for _, pending := range described.GetPendingActivities() {
		var progress activities.TierProgress
		details := pending.GetHeartbeatDetails()
		if details == nil || converter.GetDefaultDataConverter().FromPayloads(details, &progress) != nil {
			continue
		}
		f.tellWorker(progress)
		f.tellCalls(progress.Now.Tools)
	}
}

// tellWorker tells where the tier is at work, and again when another worker has taken over.
func (f *follower) tellWorker(progress activities.TierProgress) {
	worker := fmt.Sprintf("attempt %d, by worker process %d on %s", progress.Attempt, progress.WorkerPID, printable(progress.Host, 60))
	if worker != f.worker && progress.WorkerPID != 0 {
		f.worker = worker
		f.app.say("%s    %s", clock(time.Now()), worker)
	}
}

// tellCalls tells the calls that are new. Their numbers begin again with each invocation of a session.
func (f *follower) tellCalls(calls []activities.ToolCall) {
	if len(calls) > 0 && calls[len(calls)-1].Number < f.call {
		f.call = 0
	}
	for _, call := range calls {
		if call.Number > f.call {
			f.call = call.Number
			f.app.say("%s    %s  %s", clock(time.Now()), printable(call.Name, 40), printable(call.Input, 160))
		}
	}
}

// queryChain asks the workflow for the chain.
func queryChain(ctx context.Context, c client.Client, id, runID string) (escalation.Chain, error) {
	var chain escalation.Chain
	answer, err := c.QueryWorkflow(ctx, id, runID, workflows.ChainQuery)
	if err != nil {
		return chain, err
	}
	err = answer.Get(&chain)
	return chain, err
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }
