package talk

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// MaxArriving limits the messages that are being stored at the same time. Temporal holds ten updates in flight, and the
// others are for requests to stop a turn.
const MaxArriving = 8

// The types of the application errors of updates.
const (
	// ErrorTypeBusy means that the conversation cannot handle the update now.
	ErrorTypeBusy = "Busy"
	// ErrorTypeOther means that the message does not belong here: its ID is that of another message, or it must be
	// about another chain.
	ErrorTypeOther = "Other"
	// ErrorTypeStopping means that the turn is being stopped already.
	ErrorTypeStopping = "Stopping"
)

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
	m.problem = parts.DecodeStrictly(data, &m.TalkMessage)
	return nil
}

// TurnRequest names a turn that a person stops.
type TurnRequest struct {
	// Turn is the number of the turn; 0 means the running turn.
	Turn int `json:"turn"`
	// Actor names the person who stops the turn.
	Actor string `json:"actor,omitempty"`
}

// handle registers the queries and the updates of the conversation. The query for chains lets workers record its
// sessions again if the records were restored from a backup.
func (c *conversationRun) handle(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, ConversationQuery, c.state),
		workflow.SetQueryHandler(ctx, parts.ChainQuery, c.Log.Query),
		workflow.SetUpdateHandlerWithOptions(ctx, SendMessage, c.send, workflow.UpdateHandlerOptions{
			Validator: func(_ workflow.Context, message MessageInput) error {
				if err := c.checkMessage(message); err != nil {
					return err
				}
				return c.checkRoom()
			},
			Description: "stores a message, and returns the number of its turn",
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
	if len(c.turns.waiting)+c.arriving >= MaxWaitingTurns && c.turns.find(message.MessageID) == nil {
		return temporal.NewApplicationError(
			fmt.Sprintf("%d messages wait for an answer already: send it again when some of them have one",
				MaxWaitingTurns), ErrorTypeBusy)
	}
	return nil
}

// checkRoom returns the reason why no further message is taken by update now, as one sentence. A refused update leaves
// nothing in the history.
func (c *conversationRun) checkRoom() error {
	switch {
	case c.arriving >= MaxArriving:
		return temporal.NewApplicationError(
			fmt.Sprintf("%d messages are being stored already: send it again in a second", c.arriving), ErrorTypeBusy)
	case c.sent >= 2*MaxTalkUpdates:
		return temporal.NewApplicationError(
			fmt.Sprintf("%d messages were sent, also again, while turns run: send it again when the running turn has "+
				"ended", c.sent),
			ErrorTypeBusy)
	}
	return nil
}

// send handles the update: it stores the message as the next turn. A message that is known keeps its turn.
func (c *conversationRun) send(ctx workflow.Context, message MessageInput) (Sent, error) {
	defer c.completed(ctx)
	c.sent++
	c.arriving++
	turn, err := c.store(ctx, message.TalkMessage)
	return Sent{turn}, err
}

// store stores a message, and returns its turn. The caller counts it as arriving. If store returns an error, nothing is
// stored.
func (c *conversationRun) store(ctx workflow.Context, message escalation.TalkMessage) (int, error) {
	defer func() { c.arriving-- }()
	if err := workflow.Await(ctx, func() bool { return c.opened || c.unopened != nil }); err != nil {
		return 0, err
	}
	if c.unopened != nil {
		return 0, c.unopened
	}
	if err := c.storing.Lock(ctx); err != nil {
		return 0, err
	}
	defer c.storing.Unlock()
	if err := c.checkAbout(message); err != nil {
		return 0, err
	}
	message.About = c.about
	digest := message.Digest()
	if known := c.turns.find(message.MessageID); known != nil && known.Digest == digest {
		return known.Turn, nil
	}
	stored, err := c.storeOnce(ctx, message)
	if err != nil {
		return 0, err
	}
	for _, missed := range stored.Missed {
		c.turns.add(missed, "")
	}
	if stored.Other {
		return 0, temporal.NewNonRetryableApplicationError(fmt.Sprintf("message_id %s belongs to turn %d, which has "+
			"another text or "+
			"sender: give each message an ID of its own", message.MessageID, stored.Turn), ErrorTypeOther, nil)
	}
	pending := escalation.TalkPending{
		Turn: stored.Turn, MessageID: message.MessageID, Head: escalation.TalkHead(message.Text), Actor: message.Actor,
		After: message.After,
	}
	if stored.Ended {
		c.turns.remember(pending, digest)
	} else {
		c.turns.add(pending, digest)
	}
	return stored.Turn, nil
}

// storeOnce stores a message that the conversation does not know. The records may know it: if the workflow task is lost
// after the local activity, the message is stored once, because its ID is known. If its sender gives up before it
// arrives again, the next message tells the conversation of it (Missed). If ctx ends, an attempt that has begun is
// awaited, because it may store the message.
func (c *conversationRun) storeOnce(
	ctx workflow.Context, message escalation.TalkMessage,
) (stored escalation.TalkStored, err error) {
	var records *activities.Records
	input := activities.StoreMessageInput{
		ConversationID: c.Log.Chain.ID, Message: message, After: c.turns.latest, At: workflow.Now(ctx),
	}
	ctx = parts.WithOpening(ctx, "store a message")
	local, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err = workflow.ExecuteLocalActivity(local, records.StoreMessage, input).Get(local, &stored); err == nil ||
		parts.Permanent(err) {
		return stored, err
	}
	stored = escalation.TalkStored{}
	err = workflow.ExecuteActivity(ctx, records.StoreMessage, input).Get(ctx, &stored)
	return stored, err
}

// checkAbout returns an error if a message must be about another chain than the conversation.
func (c *conversationRun) checkAbout(message escalation.TalkMessage) error {
	switch {
	case message.About == "" || message.About == c.about:
		return nil
	case c.about == "":
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("this conversation has begun, and not from chain %s: use another name for one about it",
				message.About),
			ErrorTypeOther, nil)
	default:
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("this conversation is about chain %s, and not "+
			"about %s: use "+
			"another name", c.about, message.About), ErrorTypeOther, nil)
	}
}

// completed notes that an update is about to complete.
func (c *conversationRun) completed(ctx workflow.Context) {
	c.handled = workflow.GetInfo(ctx).GetCurrentHistoryLength()
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
	if turn := c.turnToStop(request); turn.StoppedBy != "" { // a refused update leaves nothing in the history
		return temporal.NewApplicationError(fmt.Sprintf("turn %d is being stopped already", turn.Turn),
			ErrorTypeStopping, Sent{turn.Turn})
	}
	return nil
}

// turnToStop returns the turn that a request names.
func (c *conversationRun) turnToStop(request TurnRequest) *talkTurn {
	if request.Turn == 0 {
		return c.turns.running
	}
	return c.turns.open(request.Turn)
}

// stopTurn handles the update: it stops a turn that runs or waits. The turn ends soon afterwards.
func (c *conversationRun) stopTurn(ctx workflow.Context, request TurnRequest) (Sent, error) {
	defer c.completed(ctx)
	if err := c.checkStop(request); err != nil {
		return Sent{}, err
	}
	turn := c.turnToStop(request)
	turn.StoppedBy = plaintext.Line(request.Actor)
	if turn == c.turns.running {
		c.interrupt()
	}
	return Sent{turn.Turn}, nil
}

// receive stores messages and stops turns for clients that send signals, until ctx ends. Such a client gets no answer,
// so a refusal is an event.
func (c *conversationRun) receive(ctx workflow.Context) {
	for workflow.Await(ctx, func() bool { return c.signalled(ctx) }) == nil {
		parts.ReceiveSignals(workflow.GetSignalChannel(ctx, StopTurn), func(request TurnRequest) {
			if err := c.checkStop(request); err != nil {
				c.refuse(ctx, StopTurn, err)
				return
			}
			_, _ = c.stopTurn(ctx, request) // it was checked
		}, func() { c.refuse(ctx, StopTurn, parts.ErrUnreadable) })
		parts.ReceiveSignals(workflow.GetSignalChannel(ctx, SendMessage), func(message MessageInput) {
			if err := c.checkMessage(message); err != nil {
				c.refuse(ctx, SendMessage, err)
				return
			}
			c.arriving++
			workflow.Go(ctx, func(ctx workflow.Context) { // a request to stop does not wait for the records
				if _, err := c.store(ctx, message.TalkMessage); err != nil {
					c.refuse(ctx, SendMessage, err)
				}
			})
		}, func() { c.refuse(ctx, SendMessage, parts.ErrUnreadable) })
	}
}

// signalled reports whether a signal has arrived that nobody has read.
func (c *conversationRun) signalled(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, SendMessage).Len() > 0 || workflow.GetSignalChannel(ctx, StopTurn).Len() > 0
}

// refuse adds an event for a refused signal.
func (c *conversationRun) refuse(ctx workflow.Context, name string, why error) {
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventSignal, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", name, parts.RootMessage(why)),
	})
}
