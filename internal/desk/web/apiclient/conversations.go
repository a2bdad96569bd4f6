package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Conversations does through the API what operations.Conversations does. The name escalation.OwnConversation stands for the
// conversation of the person to whom the token belongs.
type Conversations struct{ client *Client }

// turnAt returns the place of a turn.
func turnAt(name string, turn int, more ...string) place {
	return at(append([]string{"conversations", name, "turns", strconv.Itoa(turn)}, more...)...)
}

// Send sends a message, and returns the number of its turn. The actor is the person to whom the token belongs.
func (c Conversations) Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error) {
	document := map[string]string{"message_id": message.MessageID, "text": message.Text}
	if about != "" {
		document["about"] = about
	}
	var sent struct{ Turn int }
	err := c.client.post(ctx, at("conversations", name, "messages"), document, &sent)
	return sent.Turn, err
}

// Wait waits until a turn has ended. If the connection is lost, Wait tries for a minute to get another one.
func (c Conversations) Wait(ctx context.Context, name string, turn int) (found escalation.TalkTurn, err error) {
	asked := turnAt(name, turn)
	asked.query = url.Values{"wait": {"true"}}
	heard := time.Now()
	for {
		err = c.client.get(ctx, asked, &found)
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
	var stopped struct{ Turn int }
	err := c.client.post(ctx, at("conversations", name, "stop"), map[string]int{"turn": turn}, &stopped)
	return stopped.Turn, err
}

// End ends a conversation.
func (c Conversations) End(ctx context.Context, name string) error {
	return c.client.post(ctx, at("conversations", name, "end"), struct{}{}, &struct{}{})
}

// Get returns a conversation as it is now.
func (c Conversations) Get(ctx context.Context, name string) (now operations.LiveConversation, err error) {
	err = c.client.get(ctx, at("conversations", name), &now)
	return now, err
}

// History returns the latest turns, oldest first, at most limit.
func (c Conversations) History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error) {
	const most = 1_000
	asked := at("conversations", name, "turns")
	asked.query = url.Values{"limit": {strconv.Itoa(min(limit, most))}}
	var list struct {
		Turns []escalation.TalkTurn `json:"turns"`
	}
	err := c.client.get(ctx, asked, &list)
	return list.Turns, err
}

// Turn returns one turn.
func (c Conversations) Turn(ctx context.Context, name string, turn int) (found escalation.TalkTurn, err error) {
	err = c.client.get(ctx, turnAt(name, turn), &found)
	return found, err
}

// Confirm carries out a proposal of a turn. The actor is the person to whom the token belongs.
func (c Conversations) Confirm(ctx context.Context, name string, turn, number int, _ operations.Actor) (string, error) {
	var done struct{ Result string }
	err := c.client.post(ctx, turnAt(name, turn, "proposals", strconv.Itoa(number), "confirm"), struct{}{}, &done)
	return done.Result, err
}
