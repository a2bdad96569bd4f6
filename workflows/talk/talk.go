package talk

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// Names that clients use.
const (
	// ConversationWorkflow is the workflow type of Conversation.
	ConversationWorkflow = "Conversation"
	// ConversationQuery is the query that returns a ConversationState.
	ConversationQuery = "conversation"
	// SendMessage is the name of both the update and the signal that send a message. The payload of both is an
	// escalation.TalkMessage. The update returns a Sent at once: the records have the reply when the turn has ended.
	SendMessage = "send"
	// StopTurn is the name of both the update and the signal that stop a turn. The payload of both is a TurnRequest
	// with an actor.
	StopTurn = "stop"
)

// ConversationWorkflowID returns the workflow ID of the conversation with a name. No chain has such an ID.
func ConversationWorkflowID(name string) string { return escalation.ConversationPrefix + name }

const (
	// MaxTalkHistory is the length of the history, in events, from which a conversation continues as new. A turn takes
	// about 30 events of 10 KB together, so that a run stays below 1 MB.
	MaxTalkHistory = 1_500
	// maxTalkHistoryBytes is the size of the history from which a conversation continues as new. The queue can hold
	// long messages.
	maxTalkHistoryBytes = 512 << 10
	// settleTime is the time after which a conversation with a long history begins a workflow task of its own, in which
	// no update has completed.
	settleTime = time.Second
	// MaxTalkUpdates is the number of messages in one run from which a conversation continues as new. Twice as many are
	// refused: Temporal accepts 2,000 updates in a run, and a turn must stay stoppable.
	MaxTalkUpdates = 500
	// idleEnd is the time without messages after which a conversation ends. Chat clients begin many that nobody
	// continues. The records keep the turns, and the next message begins where the latest answer has left.
	idleEnd = 7 * 24 * time.Hour
)

// ConversationInput is the input of Conversation. Every field is optional.
type ConversationInput struct {
	// About is the workflow ID of a chain. The conversation begins with a copy of that chain's last session.
	About string `json:"about,omitempty"`
	// Carried is the state that a conversation passes to its next run. An input from a client must not contain it.
	Carried *CarriedConversation `json:"carried,omitempty"`

	// problem is the error from decoding the JSON. Temporal would retry a decoding error for ever. So UnmarshalJSON
	// stores the error here.
	problem error
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil.
func (in *ConversationInput) UnmarshalJSON(data []byte) error {
	type plain ConversationInput // has no UnmarshalJSON, which would call itself
	var decoded plain
	problem := parts.DecodeStrictly(data, &decoded)
	*in = ConversationInput(decoded)
	in.problem = problem
	return nil
}

// ConversationState is a conversation as people see it. The records have the messages and the replies.
type ConversationState struct {
	ID string `json:"id"`
	// About is the chain that the conversation is about; empty if it is about none.
	About     string    `json:"about,omitempty"`
	StartedAt time.Time `json:"started_at"`
	escalation.Cost
	// Turns lists the latest turns, oldest first: some that have ended, the running one, and those that wait.
	Turns []ConversationTurn `json:"turns"`
}

// ConversationTurn is one turn in a ConversationState.
type ConversationTurn struct {
	Turn  int                  `json:"turn"`
	State escalation.TalkState `json:"state"`
	// Head is the beginning of the message.
	Head string `json:"head"`
	// Waits says why the running turn has no session yet; empty if it has one.
	Waits string `json:"waits,omitempty"`
	escalation.Cost
}

// conversationRun is the state of a running conversation.
type conversationRun struct {
	*parts.Set

	input ConversationInput
	// limit is the length of the history, in events, from which the conversation continues as new.
	limit int
	turns *talkTurns
	// last is the session of the latest answer or, before the first answer, of the chain About; nil if there is none. A
	// turn continues its conversation, unless the message follows another answer.
	last *escalation.Session
	// before is the session whose conversation the running turn continues; nil if it begins a new one.
	before  *escalation.Session
	refused refusedConversation
	// about is the chain that the conversation is about; empty if it is about none.
	about string
	// opened reports whether the conversation knows what the records have of it. unopened is the reason why it cannot
	// begin.
	opened   bool
	unopened error
	// storing lets one message at a time get its turn, so that turns have the order in which messages arrived.
	storing workflow.Mutex
	// arriving counts the messages that are being stored, and sent those that have arrived by update in this run.
	arriving, sent int
	// handled is the length of the history at the workflow task that completed the latest update.
	handled int
	// interrupt stops the session of the running turn.
	interrupt func()
}

// Conversation answers the messages of a person or a channel, one at a time. It ends if it is cancelled, or if nobody
// writes for a week.
func Conversation(ctx workflow.Context, input ConversationInput) error {
	return NewConversation(MaxTalkHistory)(ctx, input)
}

// NewConversation returns a workflow like Conversation that continues as new from a history of the given length, in
// events.
func NewConversation(limit int) func(workflow.Context, ConversationInput) error {
	return func(ctx workflow.Context, input ConversationInput) error {
		talk, err := setUpConversation(ctx, input, limit)
		if err != nil {
			return err
		}
		return talk.run(ctx)
	}
}

// setUpConversation registers the handlers and checks the input. A new conversation reads what the records know of it.
func setUpConversation(ctx workflow.Context, input ConversationInput, limit int) (*conversationRun, error) {
	c := composeConversation(ctx, input, limit)
	if err := c.handle(ctx); err != nil {
		return nil, err
	}
	err := c.checkInput(ctx)
	if err != nil {
		err = temporal.NewNonRetryableApplicationError(err.Error(), parts.ErrorTypeInput, nil)
	} else if input.Carried == nil {
		err = c.open(ctx)
	}
	if err != nil { // those who have sent a message get the reason
		c.unopened = err
		telling, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		_ = workflow.Await(telling, func() bool { return workflow.AllHandlersFinished(ctx) })
		return nil, err
	}
	c.opened = true
	workflow.Go(ctx, c.receive)
	return c, nil
}

// composeConversation creates the parts of a conversation and connects them.
func composeConversation(ctx workflow.Context, input ConversationInput, limit int) *conversationRun {
	chain := escalation.Chain{
		ID: workflow.GetInfo(ctx).WorkflowExecution.ID, Trigger: escalation.TriggerTalk, StartedAt: workflow.Now(ctx),
		MaxTier: escalation.TierObserve,
	}
	c := &conversationRun{
		input: input, limit: limit, turns: newTalkTurns(), storing: workflow.NewMutex(ctx), about: input.About,
	}
	var firstRun string
	if carried := input.Carried; carried != nil && parts.IsContinued(ctx) {
		chain, firstRun, c.last, c.refused = carried.State, carried.FirstRunID, carried.Last, carried.Refused
		c.turns.restore(*carried)
	}
	c.Set = parts.NewSet(chain)
	c.Log.FirstRunID, c.Log.Describe, c.Sessions.StoppedBecause = firstRun, c.details, "its turn was stopped"
	return c
}

// checkInput returns the first error in the input.
func (c *conversationRun) checkInput(ctx workflow.Context) error {
	switch {
	case c.input.problem != nil && parts.IsContinued(ctx):
		panic(fmt.Sprintf("what the run before has handed over cannot be read: %v", c.input.problem))
	case c.input.problem != nil:
		return c.input.problem
	case c.input.Carried != nil && !parts.IsContinued(ctx):
		return errors.New("carried is not for people: a conversation gives it to itself when it goes on in a new run")
	case !escalation.IsConversation(c.Log.Chain.ID):
		return fmt.Errorf("the workflow ID of a conversation must begin with %s", escalation.ConversationPrefix)
	case escalation.IsConversation(c.input.About):
		return errors.New("about names a conversation, and must name a chain")
	}
	return nil
}

// open reads what the records know of the conversation: an earlier workflow with the same ID may have been terminated.
func (c *conversationRun) open(ctx workflow.Context) error {
	var records *activities.Records
	var opening escalation.TalkOpening
	input := activities.OpenTalkInput{ConversationID: c.Log.Chain.ID, About: c.input.About}
	if err := parts.ReadRecords(parts.WithRecords(ctx, "what was said before"), records.OpenTalk, input,
		&opening); err != nil {
		return err
	}
	c.last, c.about = opening.Last, opening.About
	c.turns.latest = max(c.turns.latest, opening.Turn)
	for _, pending := range opening.Unanswered {
		c.turns.add(pending, "")
	}
	return nil
}

// run answers messages until the conversation is cancelled or continues as new.
func (c *conversationRun) run(ctx workflow.Context) error {
	for ctx.Err() == nil {
		if c.isLong(ctx) && c.settle(ctx) && ctx.Err() == nil { // the next run would not know of the cancellation
			return c.continueAsNew(ctx)
		}
		if turn := c.turns.begin(); turn != nil {
			c.answer(ctx, turn)
			continue
		}
		woken, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
			Timeout: idleEnd, TimerOptions: workflow.TimerOptions{Summary: "ends if nobody writes"},
		}, func() bool { return c.turns.hasNext() || c.isLong(ctx) && c.isQuiet(ctx) })
		if err == nil && !woken && c.isQuiet(ctx) {
			return nil
		}
	}
	c.end(ctx)
	return ctx.Err()
}

// end records that the turns that wait get no answer, because the conversation was cancelled. A message that is being
// stored counts.
func (c *conversationRun) end(ctx workflow.Context) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		_ = workflow.Await(disconnected, func() bool { return c.arriving == 0 && workflow.AllHandlersFinished(ctx) })
		turn := c.turns.begin()
		if turn == nil {
			return
		}
		c.conclude(ctx, turn, escalation.DecideTalk(escalation.TalkInput{Ended: true}), escalation.Cost{})
	}
}

// details describes the conversation in the Web UI.
func (c *conversationRun) details(chain escalation.Chain) string {
	var text strings.Builder
	fmt.Fprintf(&text, "**conversation** — %s\n\nTotal: %s\n", parts.Inline(chain.ID), chain.CostText())
	for _, turn := range c.turns.states() {
		fmt.Fprintf(&text, "- %d, %s, %s: %s\n", turn.Turn, turn.State, turn.CostText(), parts.Inline(turn.Head))
	}
	return text.String()
}

// state returns the conversation as people see it.
func (c *conversationRun) state() (ConversationState, error) {
	chain := c.Log.Chain
	return ConversationState{
		ID: chain.ID, About: c.about, StartedAt: chain.StartedAt, Turns: c.turns.states(),
		Cost: escalation.Cost{CostUSD: chain.CostUSD, CostEstimated: chain.CostEstimated()},
	}, nil
}
