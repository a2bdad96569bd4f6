package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// SessionDetail is the record of a session, with its closest relatives and with what else is recorded of it.
type SessionDetail struct {
	Session escalation.Session
	// Parent is the session whose context this one continues; nil if there is none.
	Parent *escalation.Session
	// Children lists the sessions that continue this one, in the order in which they were opened, at most 1,000.
	Children []escalation.Session
	// Events lists the events of the session in the order in which they were recorded.
	Events []escalation.Event
	// Replaced lists the reports that the session's report has replaced, oldest first.
	Replaced []ReplacedReport
}

// ReplacedReport is a report of a session that a later report has replaced, because the chain was reset.
type ReplacedReport struct {
	EndedAt time.Time
	Report  escalation.Report
}

var (
	sessionQuery       = selectSessions + " WHERE id = $1"
	childrenQuery      = selectSessions + " WHERE parent_session_id = $1 ORDER BY id LIMIT " + mostSessions
	sessionEventsQuery = "SELECT " + columns(eventFields(new(escalation.Event))) +
		" FROM events WHERE chain_id = $1 AND session_id = $2 ORDER BY id LIMIT " + strconv.Itoa(maxEventsRead)
)

// SessionDetail returns the session with the number id. If there is none, the error is ErrNotFound.
func (s *Store) SessionDetail(ctx context.Context, id int64) (detail SessionDetail, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		detail, err = readDetail(ctx, tx, id)
		return err
	})
	if err != nil {
		return SessionDetail{}, fmt.Errorf("read session record %d: %w", id, err)
	}
	return detail, nil
}

func readDetail(ctx context.Context, q querier, id int64) (detail SessionDetail, err error) {
	if detail.Session, err = oneSession(ctx, q, sessionQuery, id); err != nil {
		return detail, err
	}
	own := &detail.Session
	if own.ParentID != 0 {
		parent, err := oneSession(ctx, q, sessionQuery, own.ParentID)
		if err != nil {
			return detail, fmt.Errorf("its parent is record %d: %w", own.ParentID, err)
		}
		detail.Parent = &parent
	}
	if detail.Children, err = collect(ctx, q, sessionFields, childrenQuery, id); err != nil {
		return detail, err
	}
	detail.Events, err = collect(ctx, q, eventFields, sessionEventsQuery, own.ChainID, own.SessionID)
	if err != nil {
		return detail, err
	}
	replaced, err := replacedReports(ctx, q, own.SessionID)
	for _, one := range replaced {
		detail.Replaced = append(detail.Replaced, ReplacedReport{one.endedAt, one.report})
	}
	return detail, err
}

var (
	sessionCallsQuery = "SELECT " + columns(callFields(new(escalation.CallDecision))) +
		" FROM calls WHERE session_id = $1 ORDER BY allowed, id LIMIT $2"
	countCallsQuery = "SELECT COALESCE(SUM(CASE WHEN allowed THEN 1 ELSE 0 END), 0), COUNT(*) FROM calls WHERE " +
		"session_id = $1"
)

// SessionCalls are the decisions on the calls of one session.
type SessionCalls struct {
	// Decisions lists the denied calls, then the allowed ones, each in the order in which they were recorded.
	Decisions []escalation.CallDecision
	// Allowed and Denied count all decisions, also those that are not in the list.
	Allowed, Denied int
}

// SessionCalls returns the decisions on the calls of a session. The list has at most limit of them.
func (s *Store) SessionCalls(ctx context.Context, sessionID string, limit int) (calls SessionCalls, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		if calls.Decisions, err = collect(ctx, tx, callFields, sessionCallsQuery, sessionID, limit); err != nil {
			return err
		}
		var all int
		err = tx.QueryRowContext(ctx, countCallsQuery, sessionID).Scan(&calls.Allowed, &all)
		calls.Denied = all - calls.Allowed
		return err
	})
	if err != nil {
		return SessionCalls{}, fmt.Errorf("read the decisions on the calls of session %q: %w", sessionID, err)
	}
	return calls, nil
}

// GateNotes returns the calls of a session that were denied, and how much of the limits of the services is used.
func (s *Store) GateNotes(
	ctx context.Context, of escalation.NotesRequest,
) (notes escalation.GateNotes, err error) {
	if of, err = canonical(of); err != nil {
		return notes, err
	}
	err = s.read(ctx, func(tx *sql.Tx) error {
		denied, err := collect(ctx, tx, callFields, deniedOfQuery, of.SessionID)
		if err != nil {
			return err
		}
		notes.Denied = len(denied)
		for _, call := range denied[:min(len(denied), escalation.MaxDeniedCalls)] {
			notes.DeniedCalls = append(notes.DeniedCalls, call.Describe())
		}
		entries, err := ledger(ctx, tx, of.At.Add(-of.Limits.Window()))
		for _, state := range of.Limits.States(entries, of.Services, of.At) {
			if escalation.HasService(of.Services, state.Service) {
				notes.Cooldowns = append(notes.Cooldowns, state)
			}
		}
		return err
	})
	if err != nil {
		return notes, fmt.Errorf("read what session %q was denied: %w", of.SessionID, err)
	}
	return notes, nil
}

// deniedOfQuery selects the denied calls of a session, the latest first, as many as a person can read.
var deniedOfQuery = "SELECT " + columns(callFields(new(escalation.CallDecision))) +
	" FROM calls WHERE session_id = $1 AND NOT allowed ORDER BY id DESC LIMIT 100"
