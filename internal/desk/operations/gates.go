package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/workflows"
)

// Gates lists and answers the gates at which chains wait for a person.
type Gates struct{ *backend }

// ErrNoGate is the error for a chain that waits at no gate.
var ErrNoGate = withKind(KindConflict, errors.New("it does not wait at a gate; `claudeops gate` lists the chains "+
	"that do"))

// GateRow is one waiting chain in the list.
type GateRow struct {
	ChainID  string   `json:"chain_id"`
	Services []string `json:"services,omitempty"`
	escalation.Cost

	StartedAt time.Time `json:"started_at"`
	// Gate is nil if the chain did not answer the query. Problem then gives the reason.
	Gate       *escalation.Gate `json:"gate,omitempty"`
	AgeSeconds int64            `json:"age_seconds,omitempty"`
	Problem    string           `json:"problem,omitempty"`
}

// since returns the time at which the row's gate was opened. If the chain did not answer, since returns the time at
// which the chain started.
func (r GateRow) since() time.Time {
	if r.Gate != nil {
		return r.Gate.OpenedAt
	}
	return r.StartedAt
}

// severity returns the severity of what the gate is about. A chain that does not answer may be about anything.
func (r GateRow) severity() escalation.Severity {
	if r.Gate == nil {
		return escalation.SeverityCritical
	}
	return r.Gate.Severity()
}

// GateList is a list of open gates.
type GateList struct {
	// Gates are the open gates, the most severe first, then the oldest.
	Gates []GateRow `json:"gates"`
	// Waiting counts the chains that wait at a gate. If there are more than Asked, older gates can be missing.
	Waiting int `json:"waiting"`
	// Asked counts the chains that were asked for their gates.
	Asked int `json:"asked"`
}

const (
	// maxAsked limits how many chains are queried for their gates.
	maxAsked = 2_000
	// listTimeout limits the time for all queries together. Without a worker, each query would wait for the whole time
	// Patience.
	listTimeout = time.Minute
)

// List returns the open gates, the most severe first, then the oldest. Only the workflow of a chain knows when its gate
// was opened. So List queries all waiting chains, and sorts their gates. It leaves out chains whose gate was closed
// meanwhile.
func (g Gates) List(ctx context.Context) (GateList, error) {
	connection, _, err := g.connect(ctx)
	if err != nil {
		return GateList{}, err
	}
	waiting, err := List(ctx, connection, openGates(), math.MaxInt)
	if err != nil {
		return GateList{}, err
	}
	slices.SortStableFunc(waiting, func(x, y Row) int { return x.StartedAt.Compare(y.StartedAt) })
	asked := waiting[:min(maxAsked, len(waiting))]
	return GateList{Gates: g.ask(ctx, connection, asked), Waiting: len(waiting), Asked: len(asked)}, nil
}

// openGates returns Temporal's list filter for chains that wait at a gate.
func openGates() string {
	return strings.Join([]string{
		chainTypes(),
		workflows.GateAttribute.GetName() + " = " + Quote(OpenGate),
		"ExecutionStatus = 'Running'",
	}, " AND ")
}

// ask queries the chains for their gates, a few chains at a time.
func (g Gates) ask(ctx context.Context, c Connection, chains []Row) []GateRow {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rows := make([]GateRow, len(chains))
	var asking errgroup.Group
	asking.SetLimit(MaxQueries)
	for i, chain := range chains {
		asking.Go(func() error {
			rows[i] = g.askOne(ctx, c, chain)
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	rows = slices.DeleteFunc(rows, func(row GateRow) bool { return row.Gate == nil && row.Problem == "" })
	slices.SortStableFunc(rows, func(x, y GateRow) int {
		return cmp.Or(escalation.CompareSeverity(x.severity(), y.severity()), x.since().Compare(y.since()),
			strings.Compare(x.ChainID, y.ChainID))
	})
	return rows
}

func (g Gates) askOne(ctx context.Context, c Connection, chain Row) GateRow {
	row := GateRow{
		ChainID: chain.ID, Services: chain.Services, Cost: chain.Cost, StartedAt: chain.StartedAt,
	}
	gate, err := queryGate(ctx, c, g.Patience, chain.ID)
	switch {
	case err == nil:
		row.Cost = gate.Cost
		row.Gate, row.AgeSeconds = gate, int64(g.Clock().Sub(gate.OpenedAt).Seconds())
	case IsUnanswered(err):
		row.Problem = "no worker answered for it"
	case !errors.Is(err, ErrNoGate) && !errors.Is(err, ErrNoSuchChain):
		row.Problem = err.Error()
	}
	return row
}

// Get returns the open gate of a chain. The error is ErrNoGate if the chain waits at none.
func (g Gates) Get(ctx context.Context, chainID string) (*escalation.Gate, error) {
	connection, _, err := g.connect(ctx)
	if err != nil {
		return nil, err
	}
	gate, err := queryGate(ctx, connection, g.Patience, chainID)
	if err != nil {
		return nil, chainError(chainID, ExplainQueryError(ctx, connection, g.Patience, chainID, err))
	}
	return gate, nil
}

// queryGate asks a chain for its open gate.
func queryGate(ctx context.Context, c client.Client, patience time.Duration, id string) (*escalation.Gate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, id, "", workflows.GateQuery)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, ErrNoSuchChain
	}
	if err != nil {
		return nil, err
	}
	var gate *escalation.Gate
	if err := answer.Get(&gate); err != nil {
		return nil, err
	}
	if gate == nil {
		return nil, ErrNoGate
	}
	return gate, nil
}

// answerTimeout limits how long Answer waits for the workflow. Workers confirm an answer within a second.
const answerTimeout = 30 * time.Second

// Answer answers the open gate of a chain. What it returns says whether the session that the answer asks for must wait,
// until when, and why. If the chain refuses the answer, the error is KindInvalid and gives the reason, which can
// contain words of agents. An answer that nobody confirmed in time may still count: look before you repeat it.
func (g Gates) Answer(
	ctx context.Context, chainID string, answer escalation.GateAnswer,
) (escalation.GateResolution, error) {
	var resolution escalation.GateResolution
	if err := answer.Validate(); err != nil {
		return resolution, Invalid(err)
	}
	connection, _, err := g.connect(ctx)
	if err != nil {
		return resolution, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	update, err := connection.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: chainID, UpdateName: workflows.ResolveGate, Args: []any{answer},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, &resolution)
	}
	if err != nil {
		return resolution, refusal(ctx, connection, chainID, err)
	}
	switch answer.Action {
	case escalation.GateContinue, escalation.GateFix, escalation.GateRecheck:
		resolution.Next += g.whatFollowed(ctx, connection, chainID, resolution.GateID)
	case escalation.GateOverride, escalation.GateAbort:
	}
	return resolution, nil
}

const (
	// followLimit limits how long Answer looks what follows. A chain normally knows within a second whether a session
	// may start.
	followLimit = 5 * time.Second
	// followPoll is the time between two looks.
	followPoll = 200 * time.Millisecond
)

// whatFollowed says what an answer has led to: the chain can wait for hours, because a limit is reached. It is empty if
// the chain does not know in time.
func (g Gates) whatFollowed(ctx context.Context, c client.Client, chainID, gateID string) string {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	for {
		chain, err := Query(ctx, c, chainID, "")
		if err != nil {
			return ""
		}
		if text, known := afterGate(chain, gateID, g.Clock()); known {
			return text
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(followPoll):
		}
	}
}

// afterGate says what a chain does after the gate with this ID. It returns false if the chain does not know yet. Times
// are shown in the zone of now.
func afterGate(chain escalation.Chain, gateID string, now time.Time) (text string, known bool) {
	at := slices.IndexFunc(chain.Gates, func(gate escalation.Gate) bool { return gate.ID == gateID })
	if at < 0 || chain.Outcome != "" { // a gate of long ago, or the answer has said that the chain ends
		return "", true
	}
	answer, last, open := chain.Gates[at].Answer, chain.Last(), chain.OpenGate()
	if answer == nil {
		return "", false
	}
	// A session that starts at once starts at the time of the answer, and the records keep milliseconds.
	started := last != nil && !last.StartedAt.Before(answer.At.Truncate(time.Millisecond))
	switch {
	case chain.Wait != nil:
		return "; " + WaitText(*chain.Wait, now), true
	case open != nil && !open.OpenedAt.Before(answer.At) && !started:
		return fmt.Sprintf("; it is refused, and %s asks again: %s", open.ID, open.Reason), true
	case started:
		return "; it has begun", true
	}
	return "", false
}

// WaitText says until when a chain waits, and why. Times are shown in the zone of now.
func WaitText(wait escalation.Wait, now time.Time) string {
	return fmt.Sprintf("it waits until %s: %s", calendar.Clock(wait.Until, now), line(wait.Reason, 300))
}

// AfterRequest says what a chain does after a person has asked for a tier. It returns false if the chain does not know
// yet. Times are shown in the zone of now.
func AfterRequest(chain escalation.Chain, tier escalation.Tier, now time.Time) (text string, known bool) {
	last := chain.Last()
	switch {
	case chain.Outcome != "":
		return "the chain has ended: " + line(chain.Reason, 300), true
	case chain.Wait != nil:
		return WaitText(*chain.Wait, now), true
	case last != nil && last.EndedAt.IsZero() && last.Tier >= tier:
		return fmt.Sprintf("%s has begun", last.Tier), true
	case last != nil && last.EndedAt.IsZero():
		return fmt.Sprintf("%s still works; %s begins when it has ended", last.Tier, tier), true
	}
	return "", false
}

// refusal converts the error of an answer to an error for people.
func refusal(ctx context.Context, c client.Client, chainID string, err error) error {
	_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case cut:
		return fmt.Errorf("nobody confirmed the answer within %s; look again before you repeat it", answerTimeout)
	case unknown:
		if _, err := Describe(ctx, c, chainID); err != nil {
			return chainError(chainID, err)
		}
		return withKind(KindConflict, errors.New("it has ended, and needs no answer any more"))
	case refused:
		return Invalid(printable(RootCause(err)))
	}
	return err
}
