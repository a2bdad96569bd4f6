package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// maxTurnWait limits how long the update wait waits. A client that wants to wait longer repeats the update.
	maxTurnWait = 15 * time.Second
	// maxWaiters limits the updates that wait at the same time. Temporal holds only ten updates in flight, and the others are
	// for messages.
	maxWaiters = 5
)

// ErrorTypeBusy is the type of the application error for an update that the conversation cannot handle now.
const ErrorTypeBusy = "Busy"

// Sent is the result of the update send.
type Sent struct {
	// Turn is the number of the message's turn.
	Turn int `json:"turn"`
}

// MessageInput is a message that arrived by update or signal.
type MessageInput struct {
	escalation.TalkMessage

	// problem is the error from decoding the JSON. The SDK would drop an undecodable signal silently.
	problem error
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil.
func (m *MessageInput) UnmarshalJSON(data []byte) error {
	*m = MessageInput{}
	m.problem = decodeStrictly(data, &m.TalkMessage)
	return nil
}

// TurnRequest names a turn that a person waits for or stops.
type TurnRequest struct {
	// Turn is the number of the turn. For the request to stop, 0 means the running turn.
	Turn int `json:"turn"`
	// Actor names the person who stops the turn.
	Actor string `json:"actor,omitempty"`
}

// handle registers the queries and the updates of the conversation. The query for chains lets workers record its sessions
// again if the records were restored from a backup.
func (c *conversationRun) handle(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, ConversationQuery, c.state),
		workflow.SetQueryHandler(ctx, ChainQuery, c.log.query),
		workflow.SetUpdateHandlerWithOptions(ctx, SendMessage, c.send, workflow.UpdateHandlerOptions{
			Validator:   func(_ workflow.Context, message MessageInput) error { return c.checkMessage(message) },
			Description: "stores a message, and returns the number of its turn",
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, WaitTurn, c.wait, workflow.UpdateHandlerOptions{
			Validator:   func(_ workflow.Context, request TurnRequest) error { return c.checkWait(request) },
			Description: "waits for the end of a turn, for some seconds at most",
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, StopTurn, c.stopTurn, workflow.UpdateHandlerOptions{
			Validator:   func(_ workflow.Context, request TurnRequest) error { return c.checkStop(request) },
			Description: "stops a turn; 0 stops the running one",
		}),
	)
}

// checkMessage returns the reason why a message is refused, as one sentence.
func (c *conversationRun) checkMessage(message MessageInput) error {
	if message.problem != nil {
		return message.problem
	}
	if err := message.Validate(); err != nil {
		return err
	}
	if len(c.turns.waiting)+c.arriving >= maxWaitingTurns && c.turns.find(message.MessageID) == 0 {
		return temporal.NewApplicationError(
			fmt.Sprintf("%d messages wait for an answer already: send it again when some of them have one", maxWaitingTurns), ErrorTypeBusy)
	}
	return nil
}

// send handles the update: it stores the message as the next turn. A message that is known keeps its turn.
func (c *conversationRun) send(ctx workflow.Context, message MessageInput) (Sent, error) {
	defer c.completed(ctx)
	turn, err := c.store(ctx, message.TalkMessage)
	return Sent{turn}, err
}

// store stores a message, and returns its turn.
func (c *conversationRun) store(ctx workflow.Context, message escalation.TalkMessage) (int, error) {
	c.arriving++
	defer func() { c.arriving-- }()
	if err := c.storing.Lock(ctx); err != nil {
		return 0, err
	}
	defer c.storing.Unlock()
	if turn := c.turns.find(message.MessageID); turn != 0 {
		return turn, nil
	}
	// If the workflow task is lost after the local activity has stored the message, the message is stored once, because its ID is
	// known. If its sender gives up before it arrives again, the next message tells the conversation of it (Missed).
	var talks *activities.Talks
	var stored escalation.TalkStored
	err := localFirst(withRecords(ctx, "store a message"), talks.StoreMessage, activities.StoreMessageInput{
		ConversationID: c.log.chain.ID, Message: message, After: c.turns.latest, At: workflow.Now(ctx),
	}, &stored)
	if err != nil {
		return 0, err
	}
	// Only the opened conversation knows whether an earlier turn has answered the message.
	if err := workflow.Await(ctx, func() bool { return c.opened }); err != nil {
		return 0, err
	}
	for _, missed := range stored.Missed {
		c.turns.add(missed)
	}
	pending := escalation.TalkPending{
		Turn: stored.Turn, MessageID: message.MessageID, Head: escalation.TalkHead(message.Text), After: message.After,
	}
	if !stored.Ended {
		c.turns.add(pending)
	} else if c.turns.find(message.MessageID) == 0 {
		c.turns.remember(pending)
	}
	return stored.Turn, nil
}

// completed notes that an update is about to complete.
func (c *conversationRun) completed(ctx workflow.Context) {
	c.handled = workflow.GetInfo(ctx).GetCurrentHistoryLength()
}

// checkWait returns the reason why nobody can wait for a turn, as one sentence.
func (c *conversationRun) checkWait(request TurnRequest) error {
	if request.Turn < 1 || request.Turn > c.turns.latest {
		return fmt.Errorf("there is no turn %d: the latest one is %d", request.Turn, c.turns.latest)
	}
	if c.waiters >= maxWaiters {
		return temporal.NewApplicationError("too many clients wait already: ask again in a second", ErrorTypeBusy)
	}
	return nil
}

// wait handles the update: it returns a turn when the turn has ended, or its state if that takes too long. It returns early
// if the conversation wants to continue as new.
func (c *conversationRun) wait(ctx workflow.Context, request TurnRequest) (escalation.TalkTurn, error) {
	defer c.completed(ctx)
	c.waiters++
	defer func() { c.waiters-- }()
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: maxTurnWait, TimerOptions: workflow.TimerOptions{Summary: fmt.Sprintf("a client waits for turn %d", request.Turn)},
	}, func() bool { return c.turns.stateOf(request.Turn) == "" || c.isLong(ctx) })
	if state := c.turns.stateOf(request.Turn); state != "" || err != nil {
		return escalation.TalkTurn{ConversationID: c.log.chain.ID, Turn: request.Turn, State: state}, err
	}
	var talks *activities.Talks
	var turn escalation.TalkTurn
	err = readRecords(withRecords(ctx, fmt.Sprintf("read turn %d", request.Turn)), talks.ReadTurn,
		activities.TurnInput{ConversationID: c.log.chain.ID, Turn: request.Turn}, &turn)
	if err == nil && turn.Turn == 0 {
		err = fmt.Errorf("turn %d is no longer in the records", request.Turn)
	}
	turn.Text = "" // the history has it once already
	return turn, err
}

// checkStop returns the reason why a turn cannot be stopped, as one sentence.
func (c *conversationRun) checkStop(request TurnRequest) error {
	if err := escalation.CheckActor(request.Actor); err != nil {
		return err
	}
	switch {
	case request.Turn == 0 && c.turns.running == nil:
		return errors.New("no turn is running")
	case request.Turn != 0 && c.turns.open(request.Turn) == nil:
		return fmt.Errorf("turn %d has ended, or has not begun", request.Turn)
	}
	return nil
}

// stopTurn handles the update: it stops a turn that runs or waits. The turn ends soon afterwards.
func (c *conversationRun) stopTurn(ctx workflow.Context, request TurnRequest) (Sent, error) {
	defer c.completed(ctx)
	if err := c.checkStop(request); err != nil {
		return Sent{}, err
	}
	turn := c.turns.running
	if request.Turn != 0 {
		turn = c.turns.open(request.Turn)
	}
	if turn.StoppedBy == "" {
		turn.StoppedBy = plaintext.Line(request.Actor)
	}
	if turn == c.turns.running {
		c.interrupt()
	}
	return Sent{turn.Turn}, nil
}

// receive stores messages and stops turns for clients that send signals, until ctx ends. Such a client gets no answer, so a
// refusal is an event.
func (c *conversationRun) receive(ctx workflow.Context) {
	for workflow.Await(ctx, func() bool { return c.signalled(ctx) }) == nil {
		receiveSignals(workflow.GetSignalChannel(ctx, StopTurn), func(request TurnRequest) {
			if err := c.checkStop(request); err != nil {
				c.refuse(ctx, StopTurn, err)
				return
			}
			_, _ = c.stopTurn(ctx, request) // it was checked
		}, func() { c.refuse(ctx, StopTurn, errUnreadable) })
		receiveSignals(workflow.GetSignalChannel(ctx, SendMessage), func(message MessageInput) {
			err := c.checkMessage(message)
			if err == nil {
				_, err = c.store(ctx, message.TalkMessage)
			}
			if err != nil {
				c.refuse(ctx, SendMessage, err)
			}
		}, func() { c.refuse(ctx, SendMessage, errUnreadable) })
	}
}

// signalled reports whether a signal has arrived that nobody has read.
func (c *conversationRun) signalled(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, SendMessage).Len() > 0 || workflow.GetSignalChannel(ctx, StopTurn).Len() > 0
}

// refuse adds an event for a refused signal.
func (c *conversationRun) refuse(ctx workflow.Context, name string, why error) {
	c.log.add(ctx, escalation.Event{
		Kind: escalation.EventSignal, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", name, rootMessage(why)),
	})
}
