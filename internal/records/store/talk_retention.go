package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// OldTalkSession is an old session of a conversation. The first two fields are its place in a list.
type OldTalkSession struct {
	StartedAt time.Time
	ID        int64
	SessionID string
}

// OldTalkSessions returns the sessions of conversations that ended before a time, by their start, at most 100. To read
// the next 100 sessions, pass the last one of the previous result as the argument after. Sessions that ended without a
// turn are included.
func (s *Store) OldTalkSessions(ctx context.Context, before time.Time, after OldTalkSession) ([]OldTalkSession, error) {
	fields := func(o *OldTalkSession) []field {
		return []field{{"started_at", millis{&o.StartedAt}}, {"id", &o.ID}, {"session_id", &o.SessionID}}
	}
	from := int64(0)
	if !after.StartedAt.IsZero() {
		from = after.StartedAt.UnixMilli()
	}
	old, err := collect(ctx, s.db, fields, oldTalkSessionsQuery,
		before.UnixMilli(), string(escalation.PurposeTalk), from, after.ID)
	if err != nil {
		return nil, fmt.Errorf("find old sessions of conversations: %w", err)
	}
	return old, nil
}

const oldTalkSessionsQuery = `
SELECT started_at, id, session_id FROM sessions
WHERE started_at >= $3 AND started_at < $1 AND ended_at < $1 AND purpose = $2
    AND (started_at > $3 OR id > $4) ORDER BY started_at, id LIMIT 100`

const orphanQuery = `
UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IN (SELECT id FROM sessions WHERE session_id = $1)`

// RemoveTalkSession removes the record of an ended session of a conversation. What it has cost stays in the sums of all
// sessions.
func (s *Store) RemoveTalkSession(ctx context.Context, sessionID string) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, orphanQuery, sessionID); err != nil {
			return err
		}
		return removeSession(ctx, tx, sessionID)
	})
	if err != nil {
		return fmt.Errorf("remove session %q of a conversation: %w", sessionID, err)
	}
	return nil
}

const (
	removeConfirmationsQuery = `
DELETE FROM talk_confirmations WHERE EXISTS (
    SELECT 1 FROM talk_turns WHERE talk_turns.conversation_id = talk_confirmations.conversation_id
        AND talk_turns.turn = talk_confirmations.turn AND talk_turns.received_at < $1 AND talk_turns.ended_at < $1)`
	removeTalkEventsQuery = "DELETE FROM events WHERE occurred_at < $1 AND chain_id >= $2 AND chain_id < $3"
	removeTurnsQuery      = "DELETE FROM talk_turns WHERE received_at < $1 AND ended_at < $1"
)

// RemoveTurns removes the turns that ended before a time, and what belongs to them. It returns the
// number of removed turns.
func (s *Store) RemoveTurns(ctx context.Context, before time.Time) (turns int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		args := []any{before.UnixMilli()}
		if _, err := tx.ExecContext(ctx, removeConfirmationsQuery, args...); err != nil {
			return err
		}
		// The range holds the IDs that begin with the prefix.
		const prefix = escalation.ConversationPrefix
		after := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
		if _, err := tx.ExecContext(ctx, removeTalkEventsQuery, append(args, prefix, after)...); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, removeTurnsQuery, args...)
		if err == nil {
			turns, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old turns of conversations: %w", err)
	}
	return turns, nil
}
