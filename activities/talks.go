package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TalkKeeper keeps what the sessions of conversations need and leave. Every method that writes is idempotent.
type TalkKeeper interface {
	// TalkTurn returns a turn.
	TalkTurn(ctx context.Context, conversationID string, turn int) (escalation.TalkTurn, error)
	// TalkFacts returns what a session learns about the infrastructure.
	TalkFacts(ctx context.Context, conversationID string, at time.Time, cold bool) (escalation.TalkFacts, error)
	// BeginTurn stores the session of a turn, and the context that the session gets, which was true at the time at.
	BeginTurn(ctx context.Context, of escalation.TalkSession, text string, at time.Time) error
	// KeepReply stores the reply of a session with the session's report.
	KeepReply(ctx context.Context, of escalation.TalkSession, reply escalation.TalkReply,
		report escalation.Report) error
	// KeptReport returns the report of a session that has replied; nil if the session has not.
	KeptReport(ctx context.Context, of escalation.TalkSession) (*escalation.Report, error)
	// AllowedCalls returns the IDs of the calls of a session that the guard has allowed.
	AllowedCalls(ctx context.Context, sessionID string) ([]string, error)
}

// OpenTalkInput names a conversation that begins.
type OpenTalkInput struct {
	ConversationID string `json:"conversation_id"`
	// About is the chain that the conversation is about; empty if it is about none.
	About string `json:"about,omitempty"`
}

// OpenTalk returns what the records know of a conversation. If the conversation is about a chain and has no answer yet,
// the result has the last session of that chain. A conversation that has begun stays about the chain that it began
// from.
func (r *Records) OpenTalk(ctx context.Context, input OpenTalkInput) (escalation.TalkOpening, error) {
	opening, err := r.Store.OpenTalk(ctx, input.ConversationID)
	if err == nil && opening.Turn == 0 {
		opening.About = input.About
	}
	if err != nil || opening.About == "" || opening.Last != nil {
		return opening, r.translate(err)
	}
	sessions, err := r.Store.Chain(ctx, opening.About)
	for i := range sessions {
		if sessions[i].HasConversation() {
			opening.Last = withoutTexts(&sessions[i])
		}
	}
	if err == nil && opening.Last == nil {
		err = permanent(ErrorTypeNoConversation,
			fmt.Errorf("chain %s has no session that has ended, and so no conversation to begin "+
				"from: send the message when its first session has ended", opening.About))
	}
	return opening, r.translate(err)
}

// withoutTexts returns the session without its verdict and its error, which can be long.
func withoutTexts(session *escalation.Session) *escalation.Session {
	short := *session
	short.Verdict, short.Error, short.Scope = nil, "", nil
	return &short
}

// StoreMessageInput is a message that a conversation has accepted.
type StoreMessageInput struct {
	ConversationID string                 `json:"conversation_id"`
	Message        escalation.TalkMessage `json:"message"`
	// After is the latest turn that the conversation knows.
	After int       `json:"after,omitempty"`
	At    time.Time `json:"at"`
}

// StoreMessage stores a message as the next turn.
func (r *Records) StoreMessage(ctx context.Context, input StoreMessageInput) (escalation.TalkStored, error) {
	stored, err := r.Store.AddMessage(ctx, input.ConversationID, input.Message, input.After, input.At)
	return stored, r.translate(err)
}

// TurnInput names a turn.
type TurnInput struct {
	ConversationID string `json:"conversation_id"`
	Turn           int    `json:"turn"`
}

// ReadAnswerSession returns the session that has answered a turn, without long texts; nil if there is none.
func (r *Records) ReadAnswerSession(ctx context.Context, input TurnInput) (*escalation.Session, error) {
	session, err := r.Store.AnswerSession(ctx, input.ConversationID, input.Turn)
	if err != nil || session == nil {
		return nil, r.translate(err)
	}
	return withoutTexts(session), nil
}

// EndTurnInput is the end of a turn.
type EndTurnInput struct {
	TurnInput

	End escalation.TalkEnd `json:"end"`
}

// EndTurn stores the end of a turn.
func (r *Records) EndTurn(ctx context.Context, input EndTurnInput) error {
	err := r.Store.EndTurn(ctx, input.ConversationID, input.Turn, input.End)
	if r.isUnknown(err) {
		return nil // restored records lack the turn, and nothing can bring its message back
	}
	return r.translate(err)
}

// errNoMessage is the error for a turn without a record, or with one that has ended.
var errNoMessage = errors.New("the records have no open message for the turn")
