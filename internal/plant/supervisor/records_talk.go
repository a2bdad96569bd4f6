package supervisor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/redact"
)

var (
	_ activities.TalkRecorder = records{}
	_ activities.TalkKeeper   = records{}
)

var storeTalk = call{operation: telemetry.StoreTalk}

// OpenTalk implements activities.TalkRecorder.
func (r records) OpenTalk(ctx context.Context, conversationID string) (escalation.TalkOpening, error) {
	return called(ctx, r, storeTalk, func() (escalation.TalkOpening, error) { return r.Store.OpenTalk(ctx, conversationID) })
}

// AddMessage implements activities.TalkRecorder. It masks secrets in the message, so that no model sees them.
func (r records) AddMessage(
	ctx context.Context, conversationID string, message escalation.TalkMessage, after int, at time.Time,
) (escalation.TalkStored, error) {
	message.Text, message.Actor = r.mask.Text(message.Text), r.mask.Text(message.Actor)
	return called(ctx, r, storeTalk, func() (escalation.TalkStored, error) {
		return r.Store.AddMessage(ctx, conversationID, message, after, at)
	})
}

// TalkTurn implements both interfaces.
func (r records) TalkTurn(ctx context.Context, conversationID string, turn int) (escalation.TalkTurn, error) {
	return called(ctx, r, storeTalk, func() (escalation.TalkTurn, error) { return r.Store.TalkTurn(ctx, conversationID, turn) })
}

// AnswerSession implements activities.TalkRecorder.
func (r records) AnswerSession(ctx context.Context, conversationID string, turn int) (*escalation.Session, error) {
	return called(ctx, r, storeTalk, func() (*escalation.Session, error) { return r.Store.AnswerSession(ctx, conversationID, turn) })
}

// BeginTurn implements activities.TalkKeeper.
func (r records) BeginTurn(ctx context.Context, of escalation.TalkSession, text string, at time.Time) error {
	text = r.mask.Text(text)
	return done(ctx, r, storeTalk, func() error { return r.Store.BeginTurn(ctx, of, text, at) })
}

// KeepReply implements activities.TalkKeeper.
func (r records) KeepReply(ctx context.Context, of escalation.TalkSession, reply escalation.TalkReply, report escalation.Report) error {
	reply, report = maskedReply(r.mask, reply), maskedReport(r.mask, report)
	return done(ctx, r, storeTalk, func() error { return r.Store.KeepReply(ctx, of, reply, report) })
}

// KeptReport implements activities.TalkKeeper.
func (r records) KeptReport(ctx context.Context, of escalation.TalkSession) (*escalation.Report, error) {
	return called(ctx, r, storeTalk, func() (*escalation.Report, error) { return r.Store.KeptReport(ctx, of) })
}

// AllowedCalls is for activities.Talker.
func (r records) AllowedCalls(ctx context.Context, sessionID string) ([]string, error) {
	return called(ctx, r, storeTalk, func() ([]string, error) { return r.Store.AllowedCalls(ctx, sessionID) })
}

// EndTurn implements activities.TalkRecorder.
func (r records) EndTurn(ctx context.Context, conversationID string, turn int, end escalation.TalkEnd) error {
	end.Failure = r.mask.Text(end.Failure)
	return done(ctx, r, storeTalk, func() error { return r.Store.EndTurn(ctx, conversationID, turn, end) })
}

// TalkFacts implements activities.TalkKeeper.
func (r records) TalkFacts(ctx context.Context, conversationID string, at time.Time, cold bool) (escalation.TalkFacts, error) {
	return called(ctx, r, storeTalk, func() (escalation.TalkFacts, error) { return r.Store.TalkFacts(ctx, conversationID, at, cold) })
}

// maskedReply returns reply with the secrets in its texts masked. A reply that cannot be encoded as JSON stays unchanged.
func maskedReply(mask *redact.Redactor, reply escalation.TalkReply) escalation.TalkReply {
	document, err := json.Marshal(reply)
	if err != nil {
		return reply // the store refuses such a reply, too
	}
	var masked escalation.TalkReply
	if json.Unmarshal(mask.JSON(document), &masked) != nil {
		return reply
	}
	return masked
}
