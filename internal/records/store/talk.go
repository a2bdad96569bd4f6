package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// talkFields lists the columns of the table talk_turns, without the row number and the report.
func talkFields(t *escalation.TalkTurn) []field {
	return []field{
		{"conversation_id", &t.ConversationID},
		{"turn", &t.Turn},
		{"message_id", &t.MessageID},
		{"message_key", &t.Key},
		{"actor", &t.Actor},
		{"message", &t.Text},
		{"after_turn", &t.After},
		{"received_at", millis{&t.ReceivedAt}},
		{"about", &t.About},
		{"state", &t.State},
		{"session_id", &t.SessionID},
		{"context", &t.Context},
		{"seen_at", millis{&t.SeenAt}},
		{"reply", &t.Reply},
		{"proposals", jsonText[[]escalation.Proposal]{&t.Proposals}},
		{"memories", jsonText[[]escalation.MemoryProposal]{&t.Memories}},
		{"note", &t.Note},
		{"failure", &t.Failure},
		{"cost_usd", &t.CostUSD},
		{"cost_estimated", &t.CostEstimated},
		{"ended_at", millis{&t.EndedAt}},
	}
}

// answeredFields lists the columns of a turn with which its message can be sent again, and its answer rendered.
func answeredFields(t *escalation.TalkTurn) []field {
	return []field{
		{"conversation_id", &t.ConversationID},
		{"turn", &t.Turn},
		{"message_id", &t.MessageID},
		{"message_key", &t.Key},
		{"actor", &t.Actor},
		{"message", &t.Text},
		{"after_turn", &t.After},
		{"about", &t.About},
		{"state", &t.State},
		{"reply", &t.Reply},
		{"proposals", jsonText[[]escalation.Proposal]{&t.Proposals}},
		{"note", &t.Note},
		{"ended_at", millis{&t.EndedAt}},
	}
}

// latestTurnFields lists the columns of a turn in a list of conversations.
func latestTurnFields(t *escalation.TalkTurn) []field {
	return []field{
		{"conversation_id", &t.ConversationID},
		{"turn", &t.Turn},
		{"state", &t.State},
		{"actor", &t.Actor},
		{"message", &t.Text},
		{"received_at", millis{&t.ReceivedAt}},
	}
}

const (
	// ofConversation selects the rows of the conversation $1.
	ofConversation = " WHERE conversation_id = $1"
	// ofTurn selects the row of the turn $2 of the conversation $1.
	ofTurn = ofConversation + " AND turn = $2"
)

var (
	selectTurns      = "SELECT " + columns(talkFields(new(escalation.TalkTurn))) + " FROM talk_turns"
	turnsQuery       = selectTurns + ofConversation + " ORDER BY turn DESC LIMIT $2"
	latestTurnsQuery = "SELECT " + columns(latestTurnFields(new(escalation.TalkTurn))) + " FROM talk_turns" +
		" WHERE received_at <= $1 AND (received_at < $1 OR conversation_id > $2)" +
		" AND NOT EXISTS (SELECT 1 FROM talk_turns AS later WHERE later.conversation_id = talk_turns.conversation_id" +
		" AND later.turn > talk_turns.turn)" +
		" ORDER BY received_at DESC, conversation_id"
	turnQuery    = selectTurns + ofTurn
	messageQuery = "SELECT turn, actor, message, ended_at IS NOT NULL FROM talk_turns" + ofConversation +
		" AND message_id = $2"
	latestTurnQuery   = "SELECT turn, about FROM talk_turns" + ofConversation + " ORDER BY turn DESC LIMIT 1"
	missedQuery       = selectTurns + ofConversation + " AND ended_at IS NULL AND turn > $2 AND turn < $3 ORDER BY turn"
	unansweredQuery   = selectTurns + ofConversation + " AND ended_at IS NULL ORDER BY turn"
	latestAnswerQuery = selectTurns + ofConversation + " AND state = $2 ORDER BY turn DESC LIMIT 1"
	answerQuery       = turnQuery + " AND state = $3"
	byMessageQuery    = "SELECT " + columns(answeredFields(new(escalation.TalkTurn))) + " FROM talk_turns" +
		" WHERE message_id = $1 ORDER BY id DESC LIMIT 1"
	repeatsQuery = "SELECT " + columns(answeredFields(new(escalation.TalkTurn))) + " FROM talk_turns" +
		ofConversation + " AND message_key = $2 ORDER BY turn DESC"
	recalledTurnsQuery = selectTurns + ofConversation + " AND ended_at IS NOT NULL ORDER BY turn DESC LIMIT $2"
)

// AddMessage stores a message as the next turn of a conversation. The number of the turn is higher than after, the
// latest turn that the conversation knows. If a message with this ID is already stored, AddMessage changes nothing, and
// returns the turn of that message; Other says that it has another text or another sender.
func (s *Store) AddMessage(
	ctx context.Context, conversationID string, message escalation.TalkMessage, after int, at time.Time,
) (stored escalation.TalkStored, err error) {
	defer s.count(OpTalk, &err)
	message.Text, message.Actor = s.hooks.text(message.Text), s.hooks.text(message.Actor)
	record := escalation.TalkTurn{
		ConversationID: conversationID, TalkMessage: message, ReceivedAt: at, State: escalation.TalkWaiting,
	}
	record.Text, record.Actor = storable(message.Text), storable(message.Actor)
	if err = message.Validate(); err != nil {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err == nil {
		err = s.write(ctx, func(tx *sql.Tx) (err error) {
			if stored, err = addMessage(ctx, tx, record, after); err == nil {
				stored.Missed, err = pendingTurns(ctx, tx, missedQuery, conversationID, after, stored.Turn)
			}
			return err
		})
	}
	if err != nil {
		return escalation.TalkStored{}, fmt.Errorf("record a message in %q: %w", conversationID, err)
	}
	return stored, nil
}

func addMessage(
	ctx context.Context, tx *sql.Tx, record escalation.TalkTurn, after int,
) (stored escalation.TalkStored, err error) {
	id := record.ConversationID
	var actor, text string
	err = tx.QueryRowContext(ctx, messageQuery, id, record.MessageID).Scan(&stored.Turn, &actor, &text, &stored.Ended)
	if !errors.Is(err, sql.ErrNoRows) {
		stored.Other = actor != record.Actor || text != record.Text
		return stored, err
	}
	latest, _, err := latestTurn(ctx, tx, id)
	if err != nil {
		return stored, fmt.Errorf("number it in its conversation: %w", err)
	}
	record.Turn = max(latest, after) + 1
	query, args := insertInto("talk_turns", talkFields(&record))
	_, err = tx.ExecContext(ctx, query, args...)
	return escalation.TalkStored{Turn: record.Turn}, err
}

// latestTurn returns the number of the latest turn of a conversation, and the chain that the conversation is about; 0
// if there is no turn.
func latestTurn(ctx context.Context, tx *sql.Tx, conversationID string) (turn int, about string, err error) {
	err = tx.QueryRowContext(ctx, latestTurnQuery, conversationID).Scan(&turn, &about)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return turn, about, err
}

// pendingTurns returns the turns that a query selects, without their texts.
func pendingTurns(
	ctx context.Context, tx *sql.Tx, query string, args ...any,
) (pending []escalation.TalkPending, err error) {
	turns, err := collect(ctx, tx, talkFields, query, args...)
	for _, turn := range turns {
		pending = append(pending, escalation.TalkPending{
			Turn: turn.Turn, MessageID: turn.MessageID, Head: escalation.TalkHead(turn.Text), Actor: turn.Actor,
			After: turn.After,
		})
	}
	return pending, err
}

// TalkTurn returns a turn of a conversation, with the proposals that people have confirmed. If the turn is unknown, the
// error is ErrNotFound.
func (s *Store) TalkTurn(ctx context.Context, conversationID string, turn int) (found escalation.TalkTurn, err error) {
	defer s.count(OpTalk, &err)
	err = s.read(ctx, func(tx *sql.Tx) error {
		turns, err := collect(ctx, tx, talkFields, turnQuery, conversationID, turn)
		if err == nil && len(turns) == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		found = turns[0]
		found.Confirmed, err = confirmations(ctx, tx, conversationID, turn)
		return err
	})
	if err != nil {
		return escalation.TalkTurn{}, fmt.Errorf("read turn %d of %q: %w", turn, conversationID, err)
	}
	return found, nil
}

// TalkTurns returns the latest turns of a conversation, oldest first, at most limit, with the proposals that people
// have confirmed.
func (s *Store) TalkTurns(
	ctx context.Context, conversationID string, limit int,
) (turns []escalation.TalkTurn, err error) {
	err = s.read(ctx, func(tx *sql.Tx) (err error) {
		turns, err = collect(ctx, tx, talkFields, turnsQuery, conversationID, limit)
		for i := range turns {
			if err == nil && len(turns[i].Proposals) > 0 {
				turns[i].Confirmed, err = confirmations(ctx, tx, conversationID, turns[i].Turn)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the turns of %q: %w", conversationID, err)
	}
	slices.Reverse(turns)
	return turns, nil
}

// MessageTurn returns the latest turn whose message has an ID, in whichever conversation. It has what is needed to send
// the message again, and to render its answer. If there is none, the error is ErrNotFound.
func (s *Store) MessageTurn(ctx context.Context, messageID string) (escalation.TalkTurn, error) {
	turns, err := collect(ctx, s.db, answeredFields, byMessageQuery, messageID)
	if err == nil && len(turns) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return escalation.TalkTurn{}, fmt.Errorf("look for the message %q: %w", messageID, err)
	}
	return turns[0], nil
}

// TurnsOf calls see with each turn of a conversation whose message has a key, the latest first, until see returns
// false. The turns have what is needed to send their messages again, and to render their answers.
func (s *Store) TurnsOf(ctx context.Context, conversationID, key string, see func(escalation.TalkTurn) bool) error {
	err := each(ctx, s.db, func(row *sql.Rows) (bool, error) {
		turn, err := scan(row, answeredFields)
		return err == nil && see(turn), err
	}, repeatsQuery, conversationID, key)
	if err != nil {
		return fmt.Errorf("look for messages of %q: %w", conversationID, err)
	}
	return nil
}

// TalkPlace is a place in the list of conversations: after the conversation whose latest message was received at that
// time. The zero value is the beginning of the list.
type TalkPlace struct {
	ReceivedAt     time.Time
	ConversationID string
}

// LatestTurns returns the beginnings of the latest turns of those conversations after a place for which the function
// keep returns true, the latest conversation first, at most limit.
func (s *Store) LatestTurns(
	ctx context.Context, after TalkPlace, limit int, keep func(escalation.TalkTurn) bool,
) ([]escalation.TalkTurn, error) {
	before := int64(math.MaxInt64)
	if !after.ReceivedAt.IsZero() {
		before = after.ReceivedAt.UnixMilli()
	}
	turns := []escalation.TalkTurn{}
	err := each(ctx, s.db, func(row *sql.Rows) (bool, error) {
		turn, err := scan(row, latestTurnFields)
		if err == nil && keep(turn) {
			turns = append(turns, turn)
		}
		return len(turns) < limit, err
	}, latestTurnsQuery, before, after.ConversationID)
	if err != nil {
		return nil, fmt.Errorf("read the latest turns: %w", err)
	}
	return turns, nil
}

// OpenTalk returns what the records know of a conversation: its latest turn, the session of its latest answer, and the
// turns that have not ended.
func (s *Store) OpenTalk(ctx context.Context, conversationID string) (opening escalation.TalkOpening, err error) {
	defer s.count(OpTalk, &err)
	err = s.read(ctx, func(tx *sql.Tx) error {
		var err error
		if opening.Turn, opening.About, err = latestTurn(ctx, tx, conversationID); err != nil {
			return err
		}
		opening.Unanswered, err = pendingTurns(ctx, tx, unansweredQuery, conversationID)
		if err != nil {
			return err
		}
		opening.Last, err = s.latestAnswer(ctx, tx, conversationID)
		return err
	})
	if err != nil {
		return escalation.TalkOpening{}, fmt.Errorf("read conversation %q: %w", conversationID, err)
	}
	return opening, nil
}

// latestAnswer returns the session of the latest answered turn; nil if there is none.
func (s *Store) latestAnswer(ctx context.Context, tx *sql.Tx, conversationID string) (*escalation.Session, error) {
	return sessionOfAnswer(ctx, tx, latestAnswerQuery, conversationID, string(escalation.TalkAnswered))
}

// AnswerSession returns the session that has answered a turn; nil if the turn has no answer, or its records are gone.
func (s *Store) AnswerSession(
	ctx context.Context, conversationID string, turn int,
) (session *escalation.Session, err error) {
	defer s.count(OpTalk, &err)
	err = s.read(ctx, func(tx *sql.Tx) (err error) {
		session, err = sessionOfAnswer(ctx, tx, answerQuery, conversationID, turn, string(escalation.TalkAnswered))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the session of turn %d of %q: %w", turn, conversationID, err)
	}
	return session, nil
}

// sessionOfAnswer returns the session of the turn that a query selects; nil if it selects none.
func sessionOfAnswer(ctx context.Context, tx *sql.Tx, query string, args ...any) (*escalation.Session, error) {
	answered, err := collect(ctx, tx, talkFields, query, args...)
	if err != nil || len(answered) == 0 {
		return nil, err
	}
	session, err := bySessionID(ctx, tx, answered[0].SessionID)
	if errors.Is(err, ErrNotFound) { // the records are a backup, or the session was removed as old
		return nil, nil //nolint:nilnil // no session is an answer
	}
	return &session, err
}

// BeginTurn records the session of a turn, and the context that the session gets, which was true at the time at. If the
// turn has ended, the error is ErrNotFound.
func (s *Store) BeginTurn(ctx context.Context, of escalation.TalkSession, text string, at time.Time) error {
	record := escalation.TalkTurn{
		SessionID: of.SessionID, Context: storable(s.hooks.text(text)), SeenAt: at,
		State: escalation.TalkRunning,
	}
	return s.updateTurn(ctx, of.ConversationID, of.Turn, andOpen, []field{
		{"session_id", &record.SessionID},
		{"context", &record.Context},
		{"seen_at", millis{&record.SeenAt}},
		{"state", &record.State},
	})
}

// KeepReply stores the reply of a session to the message of a turn, with the session's report. If the turn has ended,
// the error is ErrNotFound: the reply is late, and must not replace what the turn has ended with.
func (s *Store) KeepReply(
	ctx context.Context, of escalation.TalkSession, reply escalation.TalkReply, report escalation.Report,
) error {
	reply, err := canonical(maskedJSON(s.hooks, reply))
	if err == nil {
		report, err = canonical(s.hooks.report(report))
	}
	if err != nil {
		return fmt.Errorf("keep the reply of turn %d of %q: %w", of.Turn, of.ConversationID, err)
	}
	kept := &report
	return s.updateTurn(ctx, of.ConversationID, of.Turn, andOpen, []field{
		{"session_id", &of.SessionID},
		{"reply", &reply.Reply},
		{"proposals", jsonText[[]escalation.Proposal]{&reply.Proposals}},
		{"memories", jsonText[[]escalation.MemoryProposal]{&reply.Memories}},
		{"report", jsonText[*escalation.Report]{&kept}},
	})
}

// keptQuery selects the report of the session $3 that has replied in the turn $2.
const keptQuery = "SELECT report FROM talk_turns" + ofTurn + " AND session_id = $3 AND report IS NOT NULL"

// KeptReport returns the report of a session that has already replied in a turn; nil if the session has not.
func (s *Store) KeptReport(ctx context.Context, of escalation.TalkSession) (_ *escalation.Report, err error) {
	defer s.count(OpTalk, &err)
	fields := func(report **escalation.Report) []field {
		return []field{{"report", jsonText[*escalation.Report]{report}}}
	}
	found, err := collect(ctx, s.db, fields, keptQuery, of.ConversationID, of.Turn, of.SessionID)
	if err != nil {
		return nil, fmt.Errorf("look for the reply of turn %d of %q: %w", of.Turn, of.ConversationID, err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // no reply is an answer
	}
	return found[0], nil
}

const allowedCallsQuery = "SELECT call_id FROM calls WHERE session_id = $1 AND allowed"

// AllowedCalls returns the IDs of the calls of a session that the guard has allowed.
func (s *Store) AllowedCalls(ctx context.Context, sessionID string) (_ []string, err error) {
	defer s.count(OpTalk, &err)
	found, err := collect(ctx, s.db, func(id *string) []field { return []field{{"call_id", id}} }, allowedCallsQuery,
		sessionID)
	if err != nil {
		return nil, fmt.Errorf("read the allowed calls of session %q: %w", sessionID, err)
	}
	return found, nil
}

// EndTurn records the end of a turn. A turn that ends without an answer loses a reply that its session has kept late.
func (s *Store) EndTurn(ctx context.Context, conversationID string, turn int, end escalation.TalkEnd) error {
	end.Failure = s.hooks.text(end.Failure)
	fields := []field{
		{"state", &end.State},
		{"note", &end.Note},
		{"failure", &end.Failure},
		{"cost_usd", &end.CostUSD},
		{"cost_estimated", &end.CostEstimated},
		{"ended_at", millis{&end.EndedAt}},
	}
	if end.State != escalation.TalkAnswered {
		var none escalation.TalkReply
		fields = append(fields, field{"reply", &none.Reply},
			field{"proposals", jsonText[[]escalation.Proposal]{&none.Proposals}},
			field{"memories", jsonText[[]escalation.MemoryProposal]{&none.Memories}})
	}
	return s.updateTurn(ctx, conversationID, turn, "", fields)
}

// andOpen selects turns that have not ended.
const andOpen = " AND ended_at IS NULL"

// updateTurn changes a turn to which the condition applies. If there is none, the error is ErrNotFound.
func (s *Store) updateTurn(
	ctx context.Context, conversationID string, turn int, condition string, fields []field,
) (err error) {
	defer s.count(OpTalk, &err)
	next := len(fields) + 1
	const update = "UPDATE talk_turns SET %s WHERE conversation_id = $%d AND turn = $%d"
	query := fmt.Sprintf(update, assignments(fields), next, next+1) + condition //nolint:gosec // our own column names
	args := append(values(fields), conversationID, turn)
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record turn %d of %q: %w", turn, conversationID, err)
	}
	return nil
}
