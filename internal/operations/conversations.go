package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
	"github.com/claudeops/claudeops/workflows"
)

// Conversations sends messages in conversations, waits for their answers, and carries out the proposals that a person
// confirms.
type Conversations struct{ *backend }

const (
	// sendTimeout limits how long Send and Stop wait for the workflow. A worker answers within a second.
	sendTimeout = 30 * time.Second
	// waitPause is the pause before the next request of Wait, if the conversation could not let the last one wait.
	waitPause = 300 * time.Millisecond
)

// Send sends a message in the conversation with this name, and returns the number of its turn. It begins the conversation if
// there is none; with a chain in about, from a copy of that chain's last session. A message that is sent again with the same
// ID keeps its turn.
func (c Conversations) Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error) {
	err := escalation.CheckConversationName(name)
	if err == nil {
		err = message.Validate()
	}
	if err == nil && about != "" {
		err = notConversation(about)
	}
	if err != nil {
		return 0, Invalid(err)
	}
	connection, cfg, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if escalation.IsAboutChain(name) {
		if err := c.checkAbout(ctx, name, about); err != nil {
			return 0, err
		}
	}
	id := workflows.ConversationWorkflowID(name)
	begin := connection.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: cfg.Worker.TaskQueue, StaticSummary: "conversation",
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflows.ConversationWorkflow, workflows.ConversationInput{About: about})
	update, err := connection.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: begin,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: workflows.SendMessage, Args: []any{message}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var sent workflows.Sent
	if err == nil {
		err = update.Get(ctx, &sent)
	}
	return sent.Turn, talkError(name, err)
}

// checkAbout returns an error if a conversation that is named as one about a chain has not begun, and about is not that chain.
func (c Conversations) checkAbout(ctx context.Context, name, about string) error {
	records, err := c.inNamespace(ctx)
	if err != nil {
		return err
	}
	turns, err := records.TalkTurns(ctx, workflows.ConversationWorkflowID(name), 1)
	if err != nil || len(turns) > 0 {
		return err
	}
	if about == "" || escalation.AboutChain(about) != name {
		return withKind(KindNotFound, fmt.Errorf("conversation %s has not begun: begin it from the chain that it is about", name))
	}
	sessions, err := records.Chain(ctx, about)
	if err == nil && len(sessions) == 0 {
		err = withKind(KindNotFound, fmt.Errorf("there is no chain %s to talk about", printableID(about)))
	}
	return err
}

// ErrBusy is wrapped by the error of a conversation that cannot take a message now. The same message can be sent again later.
var ErrBusy = errors.New("the conversation is busy")

// talkError converts an error about a conversation to an error for people.
func talkError(name string, err error) error {
	_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case cut:
		return fmt.Errorf("conversation %s did not answer within %s; is a worker running? "+
			"What was sent may still count: send it again with the same ID", name, sendTimeout)
	case unknown:
		return withKind(KindNotFound, fmt.Errorf("conversation %s is not open: send a message to begin it", name))
	case isBusy(err):
		return withKind(KindConflict, fmt.Errorf("%w: %w", ErrBusy, printable(RootCause(err))))
	case refused:
		return Invalid(printable(RootCause(err)))
	}
	return err
}

// Wait waits until a turn has ended, and returns it with its reply or with the sentence that says why there is none. If ctx
// ends first, Wait returns the error of ctx, and the turn continues.
func (c Conversations) Wait(ctx context.Context, name string, turn int) (escalation.TalkTurn, error) {
	if err := escalation.CheckConversationName(name); err != nil {
		return escalation.TalkTurn{}, Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return escalation.TalkTurn{}, err
	}
	for {
		asked := time.Now()
		found, err := waitOnce(ctx, connection, name, turn)
		_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
		_, unknown := errors.AsType[*serviceerror.NotFound](err)
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case err == nil && found.State.Final():
			return c.maskedTurn(found), nil
		case unknown: // the conversation has ended, or continues in a new run at this moment
			if recorded, err := c.Turn(ctx, name, turn); err == nil && recorded.State.Final() {
				return recorded, nil
			}
			if err := c.describe(ctx, connection, name); err != nil {
				return found, err
			}
		case err != nil && !cut && !isBusy(err):
			return found, talkError(name, err)
		}
		if time.Since(asked) < waitPause {
			select {
			case <-time.After(waitPause):
			case <-ctx.Done():
			}
		}
	}
}

// isBusy reports whether a conversation has refused to let one more client wait, or Temporal has too many updates in flight.
func isBusy(err error) bool {
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	return exhausted || isRefusedAs(err, workflows.ErrorTypeBusy)
}

func isRefusedAs(err error, kind string) bool {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && refused.Type() == kind
}

// waitOnce lets the conversation wait for a turn once.
func waitOnce(ctx context.Context, c client.Client, name string, turn int) (found escalation.TalkTurn, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	update, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflows.ConversationWorkflowID(name), UpdateName: workflows.WaitTurn,
		Args: []any{workflows.TurnRequest{Turn: turn}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, &found)
	}
	return found, err
}

// describe returns an error if the conversation is not running.
func (c Conversations) describe(ctx context.Context, connection Connection, name string) error {
	described, err := connection.DescribeWorkflowExecution(ctx, workflows.ConversationWorkflowID(name), "")
	if err != nil {
		return talkError(name, err)
	}
	if described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return withKind(KindConflict, fmt.Errorf("conversation %s was ended: send a message to begin it anew", name))
	}
	return nil
}

// Stop stops a turn that runs or waits; 0 stops the running one. It returns the number of the turn, which ends soon afterwards.
func (c Conversations) Stop(ctx context.Context, name string, turn int, actor string) (int, error) {
	err := escalation.CheckConversationName(name)
	if err == nil {
		err = escalation.CheckActor(actor)
	}
	if err != nil {
		return 0, Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	update, err := connection.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflows.ConversationWorkflowID(name), UpdateName: workflows.StopTurn,
		Args: []any{workflows.TurnRequest{Turn: turn, Actor: actor}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var stopped workflows.Sent
	if err == nil {
		err = update.Get(ctx, &stopped)
	}
	return stopped.Turn, talkError(name, err)
}

// End ends a conversation. Turns that run or wait get no answer. Whoever sends a message later begins the conversation anew, from
// its latest answer. The error is KindNotFound if the conversation is not open.
func (c Conversations) End(ctx context.Context, name string) error {
	if err := escalation.CheckConversationName(name); err != nil {
		return Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := c.describe(ctx, connection, name); err != nil {
		return notOpen(name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	id := workflows.ConversationWorkflowID(name)
	if err := connection.CancelWorkflow(ctx, id, ""); err != nil {
		return talkError(name, err)
	}
	err = connection.GetWorkflow(ctx, id, "").Get(ctx, nil)
	if ctx.Err() != nil {
		return fmt.Errorf("conversation %s has not ended within %s; is a worker running? It ends when one is", name, sendTimeout)
	}
	if temporal.IsCanceledError(err) {
		return nil
	}
	return err
}

// notOpen returns the error for a conversation that has ended before.
func notOpen(name string, err error) error {
	if KindOf(err) == KindConflict {
		return withKind(KindNotFound, fmt.Errorf("conversation %s is not open: send a message to begin it", name))
	}
	return err
}

// LiveConversation is a conversation at one moment.
type LiveConversation struct {
	workflows.ConversationState

	// Attempt is the current attempt at the running turn's session, and Progress is its last heartbeat; nil if unknown.
	Attempt  *Attempt                 `json:"attempt,omitempty"`
	Progress *activities.TierProgress `json:"progress,omitempty"`
}

// Doing says in one line what the running session does. It can contain words of the agent.
func (c LiveConversation) Doing() string { return doing(c.Attempt, c.Progress) }

// Get returns a conversation. The error is KindNotFound if it is not open.
func (c Conversations) Get(ctx context.Context, name string) (LiveConversation, error) {
	if err := escalation.CheckConversationName(name); err != nil {
		return LiveConversation{}, Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return LiveConversation{}, err
	}
	asking, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	var now LiveConversation
	id := workflows.ConversationWorkflowID(name)
	answer, err := connection.QueryWorkflow(asking, id, "", workflows.ConversationQuery)
	if err == nil {
		err = answer.Get(&now.ConversationState)
	}
	if err != nil {
		return LiveConversation{}, talkError(name, err)
	}
	for i, turn := range now.Turns {
		now.Turns[i].Head = c.mask.Text(turn.Head)
		if turn.State == escalation.TalkRunning {
			if chain, err := Query(asking, connection, id, ""); err == nil {
				now.Attempt, now.Progress = AttemptAt(asking, connection, id, chain)
			}
		}
	}
	return now, nil
}

// ConversationRow is a conversation in a list.
type ConversationRow struct {
	Name string `json:"name"`
	// Turn is the number of the latest turn, with its state, who has sent its message, and the beginning of that message.
	Turn       int                  `json:"turn"`
	State      escalation.TalkState `json:"state"`
	Actor      string               `json:"actor"`
	Head       string               `json:"head"`
	ReceivedAt time.Time            `json:"received_at"`
}

// maxConversations limits a list of conversations.
const maxConversations = 1_000

// List returns the conversations that the function may permits, from the records, the latest first.
func (c Conversations) List(ctx context.Context, may func(name string) bool) ([]ConversationRow, error) {
	records, err := c.inNamespace(ctx)
	if err != nil {
		return nil, err
	}
	nameOf := func(turn escalation.TalkTurn) string {
		return strings.TrimPrefix(turn.ConversationID, escalation.ConversationPrefix)
	}
	turns, err := records.LatestTurns(ctx, maxConversations, func(turn escalation.TalkTurn) bool { return may(nameOf(turn)) })
	rows := []ConversationRow{} // an empty list is [] in JSON
	for _, turn := range turns {
		rows = append(rows, ConversationRow{
			Name: nameOf(turn), Turn: turn.Turn, State: turn.State, Actor: line(c.mask.Text(turn.Actor), escalation.MaxActor),
			Head: escalation.TalkHead(c.mask.Text(turn.Text)), ReceivedAt: turn.ReceivedAt,
		})
	}
	return rows, err
}

// History returns the latest turns of a conversation from the records, oldest first, at most limit.
func (c Conversations) History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error) {
	records, err := c.ownRecords(ctx, name)
	if err != nil {
		return nil, err
	}
	turns, err := records.TalkTurns(ctx, workflows.ConversationWorkflowID(name), limit)
	for i := range turns {
		turns[i] = c.maskedTurn(turns[i])
	}
	return turns, err
}

// Turn returns one turn of a conversation from the records, with the context that was sent and the confirmed proposals.
func (c Conversations) Turn(ctx context.Context, name string, turn int) (escalation.TalkTurn, error) {
	records, err := c.ownRecords(ctx, name)
	if err != nil {
		return escalation.TalkTurn{}, err
	}
	return c.turnIn(ctx, records, name, turn)
}

// turnIn returns one turn of a conversation from the given records.
func (c Conversations) turnIn(ctx context.Context, records *store.Store, name string, turn int) (escalation.TalkTurn, error) {
	found, err := records.TalkTurn(ctx, workflows.ConversationWorkflowID(name), turn)
	if errors.Is(err, store.ErrNotFound) {
		return found, withKind(KindNotFound, fmt.Errorf("conversation %s has no turn %d in the records", name, turn))
	}
	return c.maskedTurn(found), err
}

// TurnsOf returns the turns of a conversation whose message IDs begin with prefix, oldest first.
func (c Conversations) TurnsOf(ctx context.Context, name, prefix string) ([]escalation.TalkTurn, error) {
	records, err := c.ownRecords(ctx, name)
	if err != nil {
		return nil, err
	}
	turns, err := records.TurnsOf(ctx, workflows.ConversationWorkflowID(name), prefix)
	for i := range turns {
		turns[i] = c.maskedTurn(turns[i])
	}
	return turns, err
}

// Tokens returns the tokens that the latest session of a turn has used.
func (c Conversations) Tokens(ctx context.Context, turn escalation.TalkTurn) (escalation.TokenUsage, error) {
	records, _, err := c.openRecords(ctx)
	if err != nil {
		return escalation.TokenUsage{}, err
	}
	session, err := records.BySessionID(ctx, turn.SessionID)
	return session.Tokens, err
}

// ownRecords returns the records of the connection's namespace, for the conversation with this name.
func (c Conversations) ownRecords(ctx context.Context, name string) (*store.Store, error) {
	if err := escalation.CheckConversationName(name); err != nil {
		return nil, Invalid(err)
	}
	return c.inNamespace(ctx)
}

// exactRecords is like ownRecords. If the namespace cannot be looked up, it returns an error: another namespace may have a conversation
// with the same name and other proposals.
func (c Conversations) exactRecords(ctx context.Context, name string) (*store.Store, error) {
	if err := escalation.CheckConversationName(name); err != nil {
		return nil, Invalid(err)
	}
	records, namespace, err := c.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	return records.In(namespace), nil
}

// inNamespace returns the records of the connection's namespace. Looking up the namespace's ID needs an additional permission. If
// the lookup fails, inNamespace returns the records of all namespaces.
func (c Conversations) inNamespace(ctx context.Context) (*store.Store, error) {
	records, namespace, err := c.lookUp(ctx)
	if records == nil {
		return nil, err
	}
	return records.In(namespace), nil
}

// lookUp returns the records, and the connection's namespace. If only the namespace is unknown, it returns the records, too.
func (c Conversations) lookUp(ctx context.Context) (*store.Store, store.Namespace, error) {
	records, _, err := c.openRecords(ctx)
	if err != nil {
		return nil, store.Namespace{}, err
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return nil, store.Namespace{}, err
	}
	namespace, err := supervisor.FindNamespace(ctx, connection, connection.Namespace)
	return records, namespace, err
}

// maskedTurn returns turn with the secrets in its texts masked. If they cannot be masked, it returns the turn without its texts.
func (b *backend) maskedTurn(turn escalation.TalkTurn) escalation.TalkTurn {
	document, err := json.Marshal(turn)
	var masked escalation.TalkTurn
	if err == nil {
		err = json.Unmarshal(b.mask.JSON(document), &masked)
	}
	if err != nil { // for example, a secret looks like a number or a time
		return escalation.TalkTurn{
			ConversationID: turn.ConversationID, Turn: turn.Turn, State: turn.State, ReceivedAt: turn.ReceivedAt, EndedAt: turn.EndedAt,
			CostUSD: turn.CostUSD, Failure: "The texts of this turn are not shown, because a secret in them cannot be masked.",
		}
	}
	return masked
}

// notConversation returns an error if the ID is that of a conversation, and so of no chain.
func notConversation(id string) error {
	if escalation.IsConversation(id) {
		return fmt.Errorf("%s is a conversation, not a chain: see `starter talk`", printableID(id))
	}
	return nil
}
