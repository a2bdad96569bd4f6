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

func (a *API) registerConversations(r routes) {
	add(r, route{
		role: access.Talk, pattern: "GET /conversations", id: "listConversations", tag: conversationsTag,
		summary: "List the conversations that you may use, the latest first",
	}, a.listConversations)
	add(r, route{
		role: access.Talk, pattern: "GET /conversations/{name}", id: "getConversation", tag: conversationsTag,
		summary: "Get a conversation as it is now: its latest turns, and what the running one does",
	}, inOwn(func(ctx context.Context, in *ConversationPath) (*result[operations.LiveConversation], error) {
		return resultOf(a.operations.Conversations.Get(ctx, string(in.Name)))
	}))
	add(r, route{
		role: access.Talk, pattern: "GET /conversations/{name}/turns", id: "listTurns", tag: conversationsTag,
		summary: "List the latest turns of a conversation from the records, oldest first",
	}, inOwn(a.listTurns))
	add(r, route{
		role: access.Talk, pattern: "GET /conversations/{name}/turns/{turn}", id: "getTurn", tag: conversationsTag,
		summary: "Get a turn: the message, what was sent with it, and the reply",
	}, inOwn(a.getTurn))
	add(r, route{
		role: access.Talk, pattern: "POST /conversations/{name}/messages", id: "sendMessage", tag: conversationsTag, maxBody: 256 << 10,
		summary: "Send a message, which begins the conversation if there is none, and get the number of its turn",
	}, inOwn(a.sendMessage))
	add(r, route{
		role: access.Talk, pattern: "POST /conversations/{name}/stop", id: "stopTurn", tag: conversationsTag,
		summary: "Stop a turn that runs or waits",
	}, inOwn(a.stopTurn))
	add(r, route{
		role: access.Talk, pattern: "POST /conversations/{name}/end", id: "endConversation", tag: conversationsTag,
		summary: "End a conversation: turns that run or wait get no answer, and the next message begins it anew",
	}, inOwn(a.endConversation))
	add(r, route{
		role: access.Talk, pattern: "POST /conversations/{name}/turns/{turn}/proposals/{number}/confirm", id: "confirmProposal",
		tag:     conversationsTag,
		summary: "Have a proposal carried out in your name; this needs the role of the act (answer or operate), too",
	}, inOwn(a.confirmProposal))
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
}](handler func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		person := personIn(ctx)
		if err := person.CheckTalk(P(in).nameFor(person)); err != nil {
			return nil, err
		}
		return handler(ctx, in)
	}
}

// conversationList is a page of conversations.
type conversationList struct {
	Conversations []operations.ConversationRow `json:"conversations"`
	Next          string                       `json:"next,omitempty"`
}

func (a *API) listConversations(ctx context.Context, in *Page) (*result[conversationList], error) {
	shown, next, err := a.operations.Conversations.List(ctx, personIn(ctx).MayTalkIn, in.After, in.Limit)
	return resultOf(conversationList{shown, next}, err)
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

func (a *API) listTurns(ctx context.Context, in *turnsRequest) (*result[turnList], error) {
	turns, err := a.operations.Conversations.History(ctx, string(in.Name), in.Limit)
	return resultOf(turnList{append([]escalation.TalkTurn{}, turns...)}, err)
}

// turnRequest asks for a turn.
type turnRequest struct {
	TurnPath

	Wait bool `query:"wait" doc:"Wait for the end of the turn, for 30 seconds at most."`
}

func (a *API) getTurn(ctx context.Context, in *turnRequest) (*result[escalation.TalkTurn], error) {
	if in.Wait {
		person := personOf(ctx)
		if err := a.waiting.Enter(person); err != nil {
			return nil, err
		}
		defer a.waiting.Leave(person)
		waiting, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		_, err := a.operations.Conversations.Wait(waiting, string(in.Name), in.Turn)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	return resultOf(a.operations.Conversations.Turn(ctx, string(in.Name), in.Turn))
}

// sendRequest sends a message of the person who has logged in.
type sendRequest struct {
	ConversationPath

	Body struct {
		MessageID string `json:"message_id" doc:"Your ID of the message. Sent again with it, the message is answered once."`
		Text      string `json:"text" doc:"The message."`
		About     string `json:"about,omitempty" maxLength:"1000" doc:"A chain: a new conversation begins with a copy of its last session."`
	}
}

// turnNumber is the number of a turn.
type turnNumber struct {
	Turn int `json:"turn"`
}

func (a *API) sendMessage(ctx context.Context, in *sendRequest) (*result[turnNumber], error) {
	if about := temporalID(in.Body.About); !about.valid() {
		return nil, operations.ErrNoSuchChain
	}
	if err := access.MayStart(ctx); err != nil {
		return nil, err
	}
	turn, err := a.operations.Conversations.Send(ctx, string(in.Name), in.Body.About, escalation.TalkMessage{
		MessageID: in.Body.MessageID, Text: in.Body.Text, Actor: personOf(ctx),
	})
	return resultOf(turnNumber{turn}, err)
}

// stopRequest stops a turn.
type stopRequest struct {
	ConversationPath

	Body *struct {
		Turn int `json:"turn,omitempty" minimum:"0" doc:"The number of the turn; without it, the running one."`
	}
}

func (a *API) stopTurn(ctx context.Context, in *stopRequest) (*result[turnNumber], error) {
	turn := 0
	if in.Body != nil {
		turn = in.Body.Turn
	}
	stopped, err := a.operations.Conversations.Stop(ctx, string(in.Name), turn, personOf(ctx))
	return resultOf(turnNumber{stopped}, err)
}

func (a *API) endConversation(ctx context.Context, in *ConversationPath) (*result[carriedOut], error) {
	err := a.operations.Conversations.End(ctx, string(in.Name))
	return resultOf(carriedOut{"ended"}, err)
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

func (a *API) confirmProposal(ctx context.Context, in *proposalPath) (*result[carriedOut], error) {
	person := personIn(ctx)
	actor := operations.Actor{Name: person.Name, Verified: true, May: person.CheckProposal}
	done, err := a.operations.Conversations.Confirm(ctx, string(in.Name), in.Turn, in.Number, actor)
	return resultOf(carriedOut{done}, err)
}
