package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// CloseSession records the report of a session and its end time.
//
// Recording the same report again changes nothing, not even the end time. After a reset of the chain, a tier can run
// again under the same session id. A different report then replaces the current report, because a later report knows
// more. The replaced report is kept, because its cost was paid, too.
//
// CloseSession adds the restarts and redeployments in the verdict to the ledger, if the ledger does not have them. It
// opens or updates incidents for the faults in the verdict, and resolves incidents whose services the verdict finds
// healthy or repaired. A look without a result opens or updates an incident of the kind escalation.KindLookFailed.
// CloseSession also records the memories that the verdict proposes, as ProposeMemories does.
//
// If sessionID is unknown, the error is ErrNotFound. If the report has no final status, or if endedAt is zero, the
// error is ErrInvalid.
func (s *Store) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	_, err := s.closeSession(ctx, OpCloseSession, closing{sessionID: sessionID, report: report, endedAt: endedAt})
	return err
}

// SettleSession closes an open session in the same way as CloseSession, but opens no incident for a look without a
// result. If the session is already closed, SettleSession leaves it unchanged and returns false. Use it for a session
// that another process has left open, and may have closed in the meantime.
func (s *Store) SettleSession(
	ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time,
) (settled bool, err error) {
	if endedAt, err = s.at(ctx, endedAt); err != nil {
		s.count(OpSweep, &err)
		return false, err
	}
	return s.closeSession(ctx, OpSweep, closing{sessionID: sessionID, report: report, endedAt: endedAt, onlyOpen: true})
}

// BySessionID returns the record of the conversation with the CLI's id sessionID. If there is no record, the error is
// ErrNotFound.
func (s *Store) BySessionID(ctx context.Context, sessionID string) (escalation.Session, error) {
	session, err := bySessionID(ctx, s.db, sessionID)
	if err != nil {
		return escalation.Session{}, fmt.Errorf("read session %q: %w", sessionID, err)
	}
	return session, nil
}

// Conversation returns the session with a conversation ID, to resume that conversation. If the latest session that
// resumed it could not use it, Unusable says so. That does not count if a later session was refused without it, too:
// then something else was wrong.
func (s *Store) Conversation(ctx context.Context, sessionID string) (session escalation.Session, err error) {
	session, err = s.BySessionID(ctx, sessionID)
	if errors.Is(err, ErrNotFound) {
		return session, err // which is an answer
	}
	defer s.count(OpFindSession, &err)
	if err != nil {
		return session, err
	}
	var unusable bool
	if err := s.db.QueryRowContext(ctx, unusableQuery, session.ID).Scan(&unusable); err != nil {
		return session, fmt.Errorf("read who resumed %q: %w", sessionID, err)
	}
	if unusable {
		session = *session.Disown(escalation.Session{})
	}
	return session, nil
}

// unusableQuery reads whether a session could not use the conversation of the session $1. A lost transcript can come
// back with its host.
const unusableQuery = `
SELECT EXISTS (SELECT 1 FROM sessions WHERE parent_session_id = $1 AND continuity = 'resume'
    AND (status = 'resume_failed' OR ending = 'refused') AND NOT EXISTS (
        SELECT 1 FROM sessions AS later WHERE later.parent_session_id = $1 AND later.started_at >= sessions.ended_at
        AND (later.ending = 'wrong_request' OR later.continuity = 'resume' AND later.status = 'completed')))`

// closing is the input of closeSession.
type closing struct {
	sessionID string
	report    escalation.Report
	endedAt   time.Time
	// onlyOpen leaves a closed session unchanged.
	onlyOpen bool
}

func (s *Store) closeSession(ctx context.Context, operation Operation, end closing) (wasOpen bool, err error) {
	defer s.count(operation, &err)
	if end.report, err = canonical(s.hooks.report(end.report)); err == nil {
		err = checkClosing(end)
	}
	var ended *escalation.Session
	if err == nil {
		err = s.recovering(ctx, func() error {
			return s.write(ctx, func(tx *sql.Tx) (err error) {
				ended, err = closeOnce(ctx, tx, end)
				return err
			})
		})
	}
	if err != nil {
		return false, fmt.Errorf("close session %q: %w", end.sessionID, err)
	}
	if ended != nil && s.hooks.Ended != nil {
		s.hooks.Ended(*ended)
	}
	return ended != nil, nil
}

func checkOpening(session escalation.Session) error {
	switch {
	case session.SessionID == "":
		return fmt.Errorf("%w: it has no session id", ErrInvalid)
	case session.ChainID == "":
		return fmt.Errorf("%w: it has no chain id", ErrInvalid)
	case session.StartedAt.IsZero():
		return fmt.Errorf("%w: it has no start time", ErrInvalid)
	default:
		return nil
	}
}

func checkClosing(end closing) error {
	switch {
	case end.report.Status == "" || end.report.Status == escalation.SessionRunning:
		return fmt.Errorf("%w: status %q does not say how the session ended", ErrInvalid, end.report.Status)
	case end.endedAt.IsZero():
		return fmt.Errorf("%w: it has no end time", ErrInvalid)
	default:
		return nil
	}
}

// recorded returns the record with the SessionID of session; nil if there is no record. If the record belongs to
// another chain, the error is ErrConflict.
func recorded(ctx context.Context, tx *sql.Tx, session escalation.Session) (*escalation.Session, error) {
	existing, err := bySessionID(ctx, tx, session.SessionID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil //nolint:nilnil // no record is an answer
	case err != nil:
		return nil, err
	case existing.ChainID != session.ChainID:
		return nil, fmt.Errorf("%w: chain %q has that session as record %d", ErrConflict, existing.ChainID, existing.ID)
	default:
		return &existing, nil
	}
}

// recordSession inserts session and returns its record.
func recordSession(ctx context.Context, tx *sql.Tx, session escalation.Session) (_ escalation.Session, err error) {
	session.Status = cmp.Or(session.Status, escalation.SessionRunning)
	if session.Sequence, err = nextSequence(ctx, tx, session); err != nil {
		return session, err
	}
	return insertSession(ctx, tx, session)
}

func nextSequence(ctx context.Context, tx *sql.Tx, session escalation.Session) (next int, err error) {
	const query = "SELECT COALESCE(MAX(sequence), 0) + 1 FROM sessions WHERE chain_id = $1"
	if err := tx.QueryRowContext(ctx, query, session.ChainID).Scan(&next); err != nil {
		return 0, fmt.Errorf("number it in its chain: %w", err)
	}
	return next, nil
}

// insertSession inserts session and returns the record as it is stored.
func insertSession(ctx context.Context, tx *sql.Tx, session escalation.Session) (escalation.Session, error) {
	fields := slices.DeleteFunc(sessionFields(&session), func(f field) bool { return f.column == "id" })
	query, args := insertInto("sessions", fields)
	var id int64
	err := tx.QueryRowContext(ctx, query+" RETURNING id", args...).Scan(&id)
	switch {
	case missingReference(err):
		return session, fmt.Errorf("its parent is record %d: %w", session.ParentID, ErrNotFound)
	case err != nil:
		return session, err
	}
	return oneSession(ctx, tx, selectSessions+" WHERE id = $1", id)
}

// closeOnce records the report of a session. If this report is already recorded, closeOnce changes nothing. It returns
// the session if that was open; nil if it was not.
func closeOnce(ctx context.Context, tx *sql.Tx, end closing) (ended *escalation.Session, err error) {
	current, err := bySessionID(ctx, tx, end.sessionID)
	if err != nil {
		return nil, err
	}
	if current.EndedAt.IsZero() {
		ended = &current
	} else {
		if end.onlyOpen {
			return nil, nil
		}
		known, err := keepReport(ctx, tx, current, end.report)
		if known || err != nil {
			return nil, err
		}
	}
	current.SetReport(end.report)
	fields := append(reportFields(&current.Report), field{"ended_at", millis{&end.endedAt}},
		field{"continuity", &current.Continuity}, field{"continuity_reason", &current.ContinuityReason})
	query := fmt.Sprintf("UPDATE sessions SET %s WHERE id = $%d", assignments(fields), len(fields)+1) //nolint:gosec // our own column names
	if _, err := tx.ExecContext(ctx, query, append(values(fields), current.ID)...); err != nil {
		return nil, err
	}
	switch {
	case current.MayHaveActed():
		err = presumeActions(ctx, tx, current, end.endedAt)
	case current.Verdict != nil:
		err = recordActions(ctx, tx, current, end.endedAt)
	}
	// A session that its chain has left open says nothing about looks: somebody has terminated the chain.
	if err == nil && (current.Verdict != nil || current.LookFailed() && !end.onlyOpen) {
		err = applyFindings(ctx, tx, current, end.endedAt)
	}
	if err == nil {
		err = keepAttempt(ctx, tx, current)
	}
	if err == nil {
		err = learn(ctx, tx, current, end.endedAt)
	}
	current.EndedAt = end.endedAt
	return ended, err
}

// keepReport prepares a closed session for next, a further report. If next is already recorded, as the current or as
// a replaced report, keepReport returns true. Otherwise it adds the current report to the replaced reports and
// returns false.
func keepReport(
	ctx context.Context, tx *sql.Tx, current escalation.Session, next escalation.Report,
) (known bool, err error) {
	if reflect.DeepEqual(current.Report, next) {
		return true, nil
	}
	earlier, err := replacedReports(ctx, tx, current.SessionID)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(earlier, func(r replacedReport) bool { return reflect.DeepEqual(r.report, next) }) {
		return true, nil
	}
	return false, keepReplaced(ctx, tx, replacedReport{
		current.SessionID, current.StartedAt, current.EndedAt,
		current.Report,
	})
}
