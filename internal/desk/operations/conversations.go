package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// Conversations sends messages in conversations, waits for their answers, and carries out the proposals that a person
// confirms.
type Conversations struct{ *backend }

const (
	// sendTimeout limits how long Send and Stop wait for the workflow. A worker answers within a second.
	sendTimeout = 30 * time.Second
)

// Send sends a message in the conversation with this name, and returns the number of its turn. It begins the
// conversation if there is none; with a chain in about, from a copy of that chain's last session. A message that is
// sent again with the same ID keeps its turn.
func (c Conversations) Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error) {
	message.About = about
	err := escalation.CheckConversationName(name)
	if err == nil && about != "" {
		err = notConversation(about)
	}
	if err == nil {
		err = message.Validate()
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
			WorkflowID: id, UpdateName: workflows.SendMessage, Args: []any{message},
			WaitForStage: client.WorkflowUpdateStageCompleted,
			UpdateID:     updateID(message), // a run handles a message once, however often it is sent
		},
	})
	var sent workflows.Sent
	if err == nil {
		err = update.Get(ctx, &sent)
	}
	return sent.Turn, talkError(name, err)
}

// checkAbout returns an error if a conversation that is named as one about a chain has not begun, and about is not that
// chain.
func (c Conversations) checkAbout(ctx context.Context, name, about string) error {
	records, err := c.ownRecords(ctx)
	if err != nil {
		return err
	}
	turns, err := records.TalkTurns(ctx, workflows.ConversationWorkflowID(name), 1)
	if err != nil || len(turns) > 0 {
		return err
	}
	if about == "" || escalation.AboutChain(about) != name {
		return withKind(KindNotFound, fmt.Errorf("conversation %s has not begun: begin it from the chain that it is "+
			"about", name))
	}
	sessions, err := records.Chain(ctx, about)
	switch {
	case err != nil:
		return err
	case len(sessions) == 0:
		return withKind(KindNotFound, fmt.Errorf("there is no chain %s to talk about", printableID(about)))
	case !slices.ContainsFunc(sessions, func(session escalation.Session) bool { return session.HasConversation() }):
		return withKind(KindConflict, fmt.Errorf("chain %s has no session that has ended, and so no conversation to "+
			"begin from: "+
			"send the message when its first session has ended", printableID(about)))
	}
	return nil
}

// updateID returns the ID of the update that sends a message.
func updateID(message escalation.TalkMessage) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s%s", len(message.MessageID), message.MessageID, message.Digest(),
		message.About))
	return workflows.SendMessage + "-" + hex.EncodeToString(sum[:16])
}

// ErrOtherMessage is wrapped by the error of a message whose ID belongs to another message, or that must be about
// another chain than its conversation. It cannot be sent again so.
var ErrOtherMessage = errors.New("the message does not belong here")

// ErrBusy is wrapped by the error of a conversation that cannot take a message now. The same message can be sent again
// later.
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
	case isRefusedAs(err, workflows.ErrorTypeOther):
		return withKind(KindConflict, &otherMessageError{printable(RootCause(err))})
	case refused:
		return Invalid(printable(RootCause(err)))
	}
	return err
}

// otherMessageError is an error with the sentence of the conversation that is an ErrOtherMessage.
type otherMessageError struct{ error }

func (e *otherMessageError) Is(target error) bool { return target == ErrOtherMessage }

// Wait waits until a turn has ended, and returns it with its reply or with the sentence that says why there is none. It
// reads the records from time to time. If ctx ends first, Wait returns the error of ctx, and the turn continues.
func (c Conversations) Wait(ctx context.Context, name string, turn int) (escalation.TalkTurn, error) {
	return c.Follow(ctx, name, turn, nil)
}

// isBusy reports whether a conversation has refused a message for now, or Temporal has too many updates in flight.
func isBusy(err error) bool {
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	return exhausted || isRefusedAs(err, workflows.ErrorTypeBusy)
}

func isRefusedAs(err error, kind string) bool {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && refused.Type() == kind
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

// Stop stops a turn that runs or waits; 0 stops the running one. It returns the number of the turn, which ends soon
// afterwards.
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
	if stopping, ok := errors.AsType[*temporal.ApplicationError](err); ok &&
		stopping.Type() == workflows.ErrorTypeStopping {
		err = stopping.Details(&stopped)
	}
	return stopped.Turn, talkError(name, err)
}

// End ends a conversation. Turns that run or wait get no answer. Whoever sends a message later begins the conversation
// anew, from its latest answer. The error is KindNotFound if the conversation is not open.
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
		return fmt.Errorf("conversation %s has not ended within %s; is a worker running? It ends when one is", name,
			sendTimeout)
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
func (c LiveConversation) Doing() string {
	for _, turn := range c.Turns {
		if turn.Waits != "" {
			return "waits: " + turn.Waits
		}
	}
	return doing(c.Attempt, c.Progress)
}

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
		now.Turns[i].Head, now.Turns[i].Waits = c.mask.Text(turn.Head), c.mask.Text(turn.Waits)
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
	// Turn is the number of the latest turn, with its state, who has sent its message, and the beginning of that
	// message.
	Turn       int                  `json:"turn"`
	State      escalation.TalkState `json:"state"`
	Actor      string               `json:"actor"`
	Head       string               `json:"head"`
	ReceivedAt time.Time            `json:"received_at"`
}

// List returns the conversations that the function may permits, from the records, the latest first, at most limit. The
// argument after is the next of the page before; empty for the first page. List returns the next of this one; empty if
// it is the last.
func (c Conversations) List(
	ctx context.Context, may func(name string) bool, after string, limit int,
) (rows []ConversationRow, next string, err error) {
	place, err := placeAfter(after)
	if err != nil {
		return nil, "", err
	}
	records, err := c.ownRecords(ctx)
	if err != nil {
		return nil, "", err
	}
	nameOf := func(turn escalation.TalkTurn) string {
		return strings.TrimPrefix(turn.ConversationID, escalation.ConversationPrefix)
	}
	turns, err := records.LatestTurns(ctx, place, limit+1,
		func(turn escalation.TalkTurn) bool { return may(nameOf(turn)) })
	if len(turns) > limit {
		turns = turns[:limit]
		next = fmt.Sprintf("%d-%s", turns[limit-1].ReceivedAt.UnixMilli(), nameOf(turns[limit-1]))
	}
	rows = []ConversationRow{} // an empty list is [] in JSON
	for _, turn := range turns {
		rows = append(rows, ConversationRow{
			Name: nameOf(turn), Turn: turn.Turn, State: turn.State,
			Actor: line(c.mask.Text(turn.Actor), escalation.MaxActor),
			Head:  escalation.TalkHead(c.mask.Text(turn.Text)), ReceivedAt: turn.ReceivedAt,
		})
	}
	return rows, next, err
}

// placeAfter returns the place in the list of conversations that List has called next.
func placeAfter(next string) (store.TalkPlace, error) {
	if next == "" {
		return store.TalkPlace{}, nil
	}
	digits, name, _ := strings.Cut(next, "-")
	at, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || escalation.CheckConversationName(name) != nil {
		return store.TalkPlace{}, Invalid(errors.New("after is not a key that a page before has returned"))
	}
	return store.TalkPlace{ReceivedAt: time.UnixMilli(at), ConversationID: workflows.ConversationWorkflowID(name)}, nil
}

// History returns the latest turns of a conversation from the records, oldest first, at most limit.
func (c Conversations) History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error) {
	records, err := c.recordsOf(ctx, name)
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
	records, err := c.recordsOf(ctx, name)
	if err != nil {
		return escalation.TalkTurn{}, err
	}
	return c.turnIn(ctx, records, name, turn)
}

// turnIn returns one turn of a conversation from the given records.
func (c Conversations) turnIn(
	ctx context.Context, records *store.Store, name string, turn int,
) (escalation.TalkTurn, error) {
	found, err := readTurn(ctx, records, name, turn)
	if err != nil {
		return found, err
	}
	return c.maskedTurn(found), nil
}

// readTurn is like turnIn, and masks nothing.
func readTurn(ctx context.Context, records *store.Store, name string, turn int) (escalation.TalkTurn, error) {
	found, err := records.TalkTurn(ctx, workflows.ConversationWorkflowID(name), turn)
	if errors.Is(err, store.ErrNotFound) {
		err = withKind(KindNotFound, fmt.Errorf("conversation %s has no turn %d in the records", name, turn))
	}
	return found, err
}

// MessageTurn returns the latest turn whose message has an ID, in whichever conversation. It has what is needed to send
// the message again, and to render its answer. The error is KindNotFound if there is none.
func (c Conversations) MessageTurn(ctx context.Context, messageID string) (escalation.TalkTurn, error) {
	records, err := c.ownRecords(ctx)
	if err != nil {
		return escalation.TalkTurn{}, err
	}
	turn, err := records.MessageTurn(ctx, messageID)
	if errors.Is(err, store.ErrNotFound) {
		return turn, withKind(KindNotFound, err)
	}
	return c.maskedTurn(turn), err
}

// TurnsOf calls see with each turn of a conversation whose message has a key, the latest first, until see returns
// false. The turns have what is needed to send their messages again, and to render their answers.
func (c Conversations) TurnsOf(ctx context.Context, name, key string, see func(escalation.TalkTurn) bool) error {
	records, err := c.recordsOf(ctx, name)
	if err != nil {
		return err
	}
	return records.TurnsOf(ctx, workflows.ConversationWorkflowID(name), key, func(turn escalation.TalkTurn) bool {
		return see(c.maskedTurn(turn))
	})
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

// FailsAgain reports whether a turn has failed for a reason that the same message would meet again.
func (c Conversations) FailsAgain(ctx context.Context, turn escalation.TalkTurn) (bool, error) {
	if turn.State != escalation.TalkFailed || turn.SessionID == "" {
		return false, nil
	}
	records, _, err := c.openRecords(ctx)
	if err != nil {
		return false, err
	}
	session, err := records.BySessionID(ctx, turn.SessionID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return session.Ending.Lasts(), err
}

// recordsOf returns the records, for the conversation with this name.
func (c Conversations) recordsOf(ctx context.Context, name string) (*store.Store, error) {
	if err := escalation.CheckConversationName(name); err != nil {
		return nil, Invalid(err)
	}
	return c.ownRecords(ctx)
}

// maskedTurn returns turn with the secrets in its texts masked. If they cannot be masked, it returns the turn without
// its texts.
func (b *backend) maskedTurn(turn escalation.TalkTurn) escalation.TalkTurn {
	document, err := json.Marshal(turn)
	var masked escalation.TalkTurn
	if err == nil {
		err = json.Unmarshal(b.mask.JSON(document), &masked)
	}
	if err != nil { // for example, a secret looks like a number or a time
		return escalation.TalkTurn{
			ConversationID: turn.ConversationID, Turn: turn.Turn, State: turn.State, ReceivedAt: turn.ReceivedAt,
			EndedAt: turn.EndedAt, Cost: turn.Cost,
			Failure: "The texts of this turn are not shown, because a secret in them cannot be masked.",
		}
	}
	return masked
}

// notConversation returns an error if the ID is that of a conversation, and so of no chain.
func notConversation(id string) error {
	if escalation.IsConversation(id) {
		return fmt.Errorf("%s is a conversation, not a chain: see `claudeops talk`", printableID(id))
	}
	return nil
}
