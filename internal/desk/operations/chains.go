package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// Chains starts, lists, shows, escalates and cancels chains.
type Chains struct{ *backend }

// Get returns a chain. It asks the chain's workflow. If Temporal no longer knows the chain, Get reads the records. The
// error is KindNotFound if neither knows it.
func (c Chains) Get(ctx context.Context, id string) (Snapshot, error) {
	if err := notConversation(id); err != nil {
		return Snapshot{}, Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	asking, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	now := Snapshot{}
	now.Chain, err = Query(asking, connection, id, "")
	now.Live = err == nil
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		now.Chain, err = c.recorded(ctx, id)
	} else if err == nil && now.Chain.Outcome == "" && brokenOff(ctx, connection, id) {
		now.Chain, now.Live = c.settled(ctx, now.Chain), false
	}
	if err != nil {
		return now, chainError(id, ExplainQueryError(ctx, connection, c.Patience, id, err))
	}
	now.Calls = c.recordedCalls(ctx, id)
	now.Attempt, now.Progress = AttemptAt(ctx, connection, id, now.Chain)
	if now.Live {
		now.Waits = waits(ctx, connection, now, false)
	}
	return now, nil
}

// chainError names the chain in an error.
func chainError(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("chain %s: %w", printableID(id), err)
}

// brokenOff reports whether a chain was terminated or timed out in Temporal. The workflow of such a chain does not know
// how the chain ended.
func brokenOff(ctx context.Context, c Connection, id string) bool {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	status := described.GetWorkflowExecutionInfo().GetStatus()
	return err == nil && (status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED ||
		status == enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}

// Session returns the session with this number, its ancestors and its descendants.
func (c Chains) Session(ctx context.Context, number int64) (Lineage, error) {
	records, _, err := c.openRecords(ctx)
	if err != nil {
		return Lineage{}, err
	}
	found, err := lineageOf(ctx, records, number)
	return found, unknownSession(number, err)
}

// unknownSession converts an error of the store about a session to an error for people.
func unknownSession(number int64, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return withKind(KindNotFound, fmt.Errorf("there is no session #%d", number))
	}
	return err
}

// Escalate asks a running chain for a higher tier. If the chain refuses the request at once, the error says why. In
// other cases its events say what became of the request.
func (c Chains) Escalate(ctx context.Context, id string, signal workflows.EscalateSignal) error {
	if signal.ToTier == 0 {
		return Invalid(errors.New("to_tier is missing: say which tier is to run, 2 or 3"))
	}
	if err := cmp.Or(signal.Validate(), notConversation(id)); err != nil {
		return Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	chain, err := Describe(ctx, connection, id)
	switch {
	case err != nil:
	case isPlan(chain.GetType().GetName()):
		err = errPlanTier
	case chain.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		err = withKind(KindConflict, errors.New("it has ended, and there is nothing to escalate"))
	default:
		err = c.escalate(ctx, connection, id, signal)
	}
	return chainError(id, err)
}

// escalate sends a request to a running chain. Without a worker that answers, it is only sent.
func (c Chains) escalate(
	ctx context.Context, connection Connection, id string, signal workflows.EscalateSignal,
) error {
	ask := func() (escalation.Chain, error) {
		asking, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		return Query(asking, connection, id, "")
	}
	before, unanswered := ask()
	if unanswered == nil {
		running := escalation.Tier(0)
		if last := before.Last(); last != nil && last.EndedAt.IsZero() {
			running = last.Tier
		}
		policy := escalation.Policy{MaxTier: before.MaxTier, DryRun: before.DryRun}
		if err := escalation.CheckEscalationRequest(policy, running, signal.ToTier); err != nil {
			return Invalid(err)
		}
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Patience) // the caller may be gone meanwhile
	defer cancel()
	err := connection.SignalWorkflow(sending, id, "", workflows.EscalateSignalName, signal)
	if err != nil || unanswered != nil {
		return err
	}
	after, err := ask()
	if err != nil {
		return nil // it was sent
	}
	fresh := after.Earlier.Events + len(after.Events) - before.Earlier.Events - len(before.Events)
	for _, event := range after.Events[len(after.Events)-min(max(0, fresh), len(after.Events)):] {
		if event.Kind == escalation.EventSignal && event.Severity == escalation.SeverityWarning {
			return withKind(KindConflict, printable(errors.New(event.Message)))
		}
	}
	return nil
}

// Cancel asks a running chain to end. It does not wait for the end.
func (c Chains) Cancel(ctx context.Context, id string) error {
	connection, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	chain, err := Describe(ctx, connection, id)
	if err == nil && chain.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		// Temporal would report no error
		err = withKind(KindConflict, errors.New("it has ended, and there is nothing to cancel"))
	}
	if err == nil {
		err = connection.CancelWorkflow(ctx, id, "")
	}
	return chainError(id, err)
}

// Follow reports snapshots of a chain to observer until the chain has ended, and returns the chain. It does not wait
// for slow notifications. If ctx ends first, Follow returns ctx's error, and the chain continues.
func (c Chains) Follow(ctx context.Context, id string, observer Observer) (escalation.Chain, error) {
	connection, _, err := c.connect(ctx)
	if err != nil {
		return escalation.Chain{}, err
	}
	described, err := Describe(ctx, connection, id)
	if err != nil {
		return escalation.Chain{}, chainError(id, err)
	}
	run := connection.GetWorkflow(ctx, id, described.GetExecution().GetRunId())
	follower := Follower{
		Client: connection, Converter: connection.Converter, Local: connection.Local, Run: run, Patience: c.Patience,
	}
	return follower.Follow(ctx, observer)
}
