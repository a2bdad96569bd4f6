package api

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const conversationsTag = "conversations"

const (
	// waitTimeout limits how long a request for a turn waits for its end.
	waitTimeout = 30 * time.Second
	// maxWaits limits the requests of one person that wait for the end of a turn at the same time.
	maxWaits = 20
)

// ConversationPath is the conversation that a path names.
type ConversationPath struct {
	Name text `path:"name" maxLength:"100" doc:"The name of a conversation. @me is yours, which has the name of your token."`
}

// TurnPath is the turn that a path names.
type TurnPath struct {
	ConversationPath

	Turn int `path:"turn" minimum:"1" doc:"The number of a turn."`
}

var (
	getConversation = route[ConversationPath, operations.LiveConversation]{
		role: access.ReadTalk, pattern: "GET /conversations/{name}", id: "getConversation", tag: conversationsTag,
		summary: "Get a conversation as it is now: its latest turns, and what the running one does",
	}
	listTurns = route[turnsRequest, turnList]{
		role: access.ReadTalk, pattern: "GET /conversations/{name}/turns", id: "listTurns", tag: conversationsTag,
		summary: "List the latest turns of a conversation from the records, oldest first",
	}
	getTurn = route[turnRequest, escalation.TalkTurn]{
		role: access.ReadTalk, pattern: "GET /conversations/{name}/turns/{turn}", id: "getTurn", tag: conversationsTag,
		summary: "Get a turn: the message, what was sent with it, and the reply",
	}
	sendMessage = route[sendRequest, turnNumber]{
		role: access.Talk, pattern: "POST /conversations/{name}/messages", id: "sendMessage", tag: conversationsTag,
		maxBody: 256 << 10, summary: "Send a message, which begins the conversation if there is none, and get the " +
			"number of its turn",
	}
	stopTurn = route[stopRequest, turnNumber]{
		role: access.Talk, pattern: "POST /conversations/{name}/stop", id: "stopTurn", tag: conversationsTag,
		summary: "Stop a turn that runs or waits",
	}
	endConversation = route[ConversationPath, carriedOut]{
		role: access.Talk, pattern: "POST /conversations/{name}/end", id: "endConversation", tag: conversationsTag,
		summary: "End a conversation: turns that run or wait get no answer, and the next message begins it anew",
	}
	confirmProposal = route[proposalPath, carriedOut]{
		role: access.Talk, pattern: "POST /conversations/{name}/turns/{turn}/proposals/{number}/confirm",
		id: "confirmProposal", tag: conversationsTag,
		summary: "Have a proposal carried out in your name; this needs the role of the act (answer or operate), too",
	}
)

func (a *API) registerConversations(r routes) {
	conversations := a.operations.Conversations
	add(r, route[Page, conversationList]{
		role: access.ReadTalk, pattern: "GET /conversations", id: "listConversations", tag: conversationsTag,
		summary: "List the conversations that you may read, the latest first",
	}, func(ctx context.Context, in *Page) (list conversationList, err error) {
		list.Conversations, list.Next, err = conversations.List(ctx, personIn(ctx).MayRead, in.After, in.Limit)
		return list, err
	})
	type live = operations.LiveConversation
	add(r, getConversation, reading(func(ctx context.Context, in *ConversationPath) (live, error) {
		return conversations.Get(ctx, string(in.Name))
	}))
	add(r, listTurns, reading(func(ctx context.Context, in *turnsRequest) (turnList, error) {
		turns, err := conversations.History(ctx, string(in.Name), in.Limit)
		return turnList{append([]escalation.TalkTurn{}, turns...)}, err
	}))
	add(r, getTurn, reading(a.getTurn))
	add(r, sendMessage, inOwn(a.sendMessage))
	add(r, stopTurn, inOwn(func(ctx context.Context, in *stopRequest) (turnNumber, error) {
		turn := 0
		if in.Body != nil {
			turn = in.Body.Turn
		}
		stopped, err := conversations.Stop(ctx, string(in.Name), turn, personOf(ctx))
		return turnNumber{stopped}, err
	}))
	add(r, endConversation, inOwn(func(ctx context.Context, in *ConversationPath) (carriedOut, error) {
		return carriedOut{"ended"}, conversations.End(ctx, string(in.Name))
	}))
	add(r, confirmProposal, inOwn(func(ctx context.Context, in *proposalPath) (carriedOut, error) {
		person := personIn(ctx)
		actor := operations.Actor{Name: person.Name, Verified: true, May: person.CheckProposal}
		done, err := conversations.Confirm(ctx, string(in.Name), in.Turn, in.Number, actor)
		return carriedOut{done}, err
	}))
}

// named is an input whose path names a conversation.
type named interface {
	// nameFor returns the name for a person, and replaces escalation.OwnConversation by it.
	nameFor(person access.Person) string
}

func (p *ConversationPath) nameFor(person access.Person) string {
	p.Name = text(person.Named(string(p.Name)))
	return string(p.Name)
}

// inOwn returns handler for people who may use the conversation that the path names.
func inOwn[I, O any, P interface {
	*I
	named
}](handler func(context.Context, *I) (O, error)) func(context.Context, *I) (O, error) {
	return checked[I, O, P](access.Person.CheckTalk, handler)
}

// reading returns handler for people who may read the conversation that the path names.
func reading[I, O any, P interface {
	*I
	named
}](handler func(context.Context, *I) (O, error)) func(context.Context, *I) (O, error) {
	return checked[I, O, P](access.Person.CheckRead, handler)
}

func checked[I, O any, P interface {
	*I
	named
}](check func(access.Person, string) error, handler func(context.Context, *I) (O, error),
) func(context.Context, *I) (O, error) {
	return func(ctx context.Context, in *I) (out O, err error) {
		person := personIn(ctx)
		if err := check(person, P(in).nameFor(person)); err != nil {
			return out, err
		}
		return handler(ctx, in)
	}
}

// conversationList is a page of conversations.
type conversationList struct {
	Conversations []operations.ConversationRow `json:"conversations"`
	Next          string                       `json:"next,omitempty"`
}

// turnsRequest asks for turns.
type turnsRequest struct {
	ConversationPath

	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"At most this many."`
}

// turnList is a list of turns.
type turnList struct {
	Turns []escalation.TalkTurn `json:"turns"`
}

// turnRequest asks for a turn.
type turnRequest struct {
	TurnPath

	Wait bool `query:"wait" doc:"Wait for the end of the turn, for 30 seconds at most."`
}

func (a *API) getTurn(ctx context.Context, in *turnRequest) (turn escalation.TalkTurn, err error) {
	if in.Wait {
		person := personOf(ctx)
		if err := a.waiting.Enter(person); err != nil {
			return turn, err
		}
		defer a.waiting.Leave(person)
		waiting, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		_, err := a.operations.Conversations.Wait(waiting, string(in.Name), in.Turn)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return turn, err
		}
	}
	return a.operations.Conversations.Turn(ctx, string(in.Name), in.Turn)
}

// sendRequest sends a message of the person who has logged in.
type sendRequest struct {
	ConversationPath

	Body sendRequestBody
}

type sendRequestBody struct {
	MessageID string `json:"message_id" doc:"Your ID of the message. Sent again with it, the message is answered once."`
	Text      string `json:"text" doc:"The message."`
	About     string `json:"about,omitempty" maxLength:"1000" doc:"A chain: a new conversation begins with a copy of its last session."`
}

// turnNumber is the number of a turn.
type turnNumber struct {
	Turn int `json:"turn"`
}

func (a *API) sendMessage(ctx context.Context, in *sendRequest) (turnNumber, error) {
	if about := temporalID(in.Body.About); !about.valid() {
		return turnNumber{}, operations.ErrNoSuchChain
	}
	if err := access.MayStart(ctx); err != nil {
		return turnNumber{}, err
	}
	turn, err := a.operations.Conversations.Send(ctx, string(in.Name), in.Body.About, escalation.TalkMessage{
		MessageID: in.Body.MessageID, Text: in.Body.Text, Actor: personOf(ctx),
	})
	return turnNumber{turn}, err
}

// stopRequest stops a turn.
type stopRequest struct {
	ConversationPath

	Body *stopRequestBody
}

type stopRequestBody struct {
	Turn int `json:"turn,omitempty" minimum:"0" doc:"The number of the turn; without it, the running one."`
}

// proposalPath is the proposal that a path names.
type proposalPath struct {
	TurnPath

	Number int `path:"number" minimum:"1" doc:"The number of a proposal in its turn, from 1."`
}

// carriedOut says what was done.
type carriedOut struct {
	Result string `json:"result"`
}

// turnIn returns the path of a turn.
func turnIn(name string, turn int) TurnPath { return TurnPath{ConversationPath{text(name)}, turn} }

// Conversations does through the API what operations.Conversations does. The name escalation.OwnConversation stands for
// the conversation of the person to whom the token belongs.
type Conversations struct{ client *Client }

// Send sends a message, and returns the number of its turn. The actor is the person to whom the token belongs.
func (c Conversations) Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error) {
	body := sendRequestBody{message.MessageID, message.Text, about}
	sent, err := sendMessage.call(ctx, c.client, sendRequest{ConversationPath{text(name)}, body})
	return sent.Turn, err
}

// Wait waits until a turn has ended. If the connection is lost, Wait tries for a minute to get another one.
func (c Conversations) Wait(ctx context.Context, name string, turn int) (found escalation.TalkTurn, err error) {
	heard := time.Now()
	for {
		found, err = getTurn.call(ctx, c.client, turnRequest{turnIn(name, turn), true})
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case err == nil && found.State.Final():
			found.Text, found.Context = "", "" // the caller knows the one, and asks for the other
			return found, nil
		case err == nil:
			heard = time.Now()
			continue
		case operations.KindOf(err) != operations.KindFailure, time.Since(heard) > retryFor:
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

// Stop stops a turn; 0 stops the running one. The actor is the person to whom the token belongs.
func (c Conversations) Stop(ctx context.Context, name string, turn int, _ string) (int, error) {
	stopped, err := stopTurn.call(ctx, c.client, stopRequest{ConversationPath{text(name)}, &stopRequestBody{turn}})
	return stopped.Turn, err
}

// End ends a conversation.
func (c Conversations) End(ctx context.Context, name string) error {
	_, err := endConversation.call(ctx, c.client, ConversationPath{text(name)})
	return err
}

// Get returns a conversation as it is now.
func (c Conversations) Get(ctx context.Context, name string) (operations.LiveConversation, error) {
	return getConversation.call(ctx, c.client, ConversationPath{text(name)})
}

// History returns the latest turns, oldest first, at most limit.
func (c Conversations) History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error) {
	list, err := listTurns.call(ctx, c.client, turnsRequest{ConversationPath{text(name)}, min(limit, maxList)})
	return list.Turns, err
}

// Turn returns one turn.
func (c Conversations) Turn(ctx context.Context, name string, turn int) (escalation.TalkTurn, error) {
	return getTurn.call(ctx, c.client, turnRequest{TurnPath: turnIn(name, turn)})
}

// Confirm carries out a proposal of a turn. The actor is the person to whom the token belongs.
func (c Conversations) Confirm(ctx context.Context, name string, turn, number int, _ operations.Actor) (string, error) {
	done, err := confirmProposal.call(ctx, c.client, proposalPath{turnIn(name, turn), number})
	return done.Result, err
}
