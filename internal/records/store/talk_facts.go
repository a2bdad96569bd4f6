package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// gatesQuery selects the chains that have opened a gate since $1, and have done nothing afterwards that
// closes it. The latest come first.
const gatesQuery = `
SELECT opened.chain_id, opened.message, opened.occurred_at FROM events AS opened
WHERE opened.kind = 'gate_opened' AND opened.occurred_at >= $1
    AND NOT EXISTS (
        SELECT 1 FROM events AS later WHERE later.chain_id = opened.chain_id AND later.id > opened.id
            AND later.kind IN ('gate_opened', 'gate_closed', 'session_created', 'session_reused', 'chain_ended')
    )
ORDER BY opened.occurred_at DESC LIMIT $2`

// longestGate is longer than any gate stays open with the default settings. Older gates are not looked for.
const longestGate = 30 * 24 * time.Hour

func gateFields(g *escalation.WaitingGate) []field {
	return []field{{"chain_id", &g.ChainID}, {"message", &g.Message}, {"occurred_at", millis{&g.At}}}
}

var (
	workingSessionsQuery = selectSessions + " WHERE status = $1 AND purpose <> $2 ORDER BY id DESC LIMIT $3"
	recentSessionsQuery  = selectSessions + `
WHERE started_at >= $1 AND ended_at IS NOT NULL AND purpose <> $2 ORDER BY started_at DESC LIMIT $3`
)

// maxRecentSessions limits the sessions among which the last session of each recent chain is looked for.
const maxRecentSessions = 200

// TalkFacts returns what a session of a conversation learns about the infrastructure. If cold is true, it includes what
// only a new conversation learns.
func (s *Store) TalkFacts(
	ctx context.Context, conversationID string, at time.Time, cold bool,
) (facts escalation.TalkFacts, err error) {
	defer s.count(OpTalk, &err)
	const talk = string(escalation.PurposeTalk)
	err = s.read(ctx, func(tx *sql.Tx) (err error) {
		if facts.Incidents, err = mostImportant(ctx, tx, nil); err != nil {
			return err
		}
		since := at.Add(-longestGate).UnixMilli()
		if facts.Gates, err = collect(ctx, tx, gateFields, gatesQuery, since, escalation.MaxTalkFacts); err != nil {
			return err
		}
		facts.Working, err = collect(ctx, tx, sessionFields, workingSessionsQuery,
			string(escalation.SessionRunning), talk, escalation.MaxTalkFacts)
		if err != nil || !cold {
			return err
		}
		recent, err := collect(ctx, tx, sessionFields, recentSessionsQuery,
			at.Add(-escalation.RecentChains).UnixMilli(), talk, maxRecentSessions)
		if err != nil {
			return err
		}
		facts.Recent = lastOfChains(recent)
		facts.Recalled, err = collect(ctx, tx, talkFields, recalledTurnsQuery, conversationID,
			escalation.MaxRecalledTurns)
		slices.Reverse(facts.Recalled)
		return err
	})
	if err != nil {
		return escalation.TalkFacts{}, fmt.Errorf("read what is going on: %w", err)
	}
	return facts, nil
}

// lastOfChains returns the first of the given sessions of each chain, at most escalation.MaxTalkFacts.
func lastOfChains(sessions []escalation.Session) []escalation.Session {
	var last []escalation.Session
	for _, session := range sessions {
		known := slices.ContainsFunc(last, func(other escalation.Session) bool {
			return other.ChainID == session.ChainID
		})
		if !known && len(last) < escalation.MaxTalkFacts {
			last = append(last, session)
		}
	}
	return last
}

// talksOfQuery counts the running sessions of conversations other than $1 that answer the person $2. A conversation
// answers one message at a time: the earliest that is open.
const talksOfQuery = `
SELECT COUNT(*) FROM sessions
WHERE status = 'running' AND purpose = 'talk' AND chain_id <> $1 AND $2 = (
    SELECT actor FROM talk_turns WHERE conversation_id = sessions.chain_id AND talk_turns.ended_at IS NULL ORDER BY turn LIMIT 1)`

// talksOf counts the running sessions of other conversations that answer the person who has sent the message of a
// request.
func talksOf(ctx context.Context, q querier, request escalation.AdmissionRequest) (count int, err error) {
	err = q.QueryRowContext(ctx, talksOfQuery, request.ChainID, storable(request.Actor)).Scan(&count)
	return count, err
}
