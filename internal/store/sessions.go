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

// OpenSession records session before its process starts, and returns the record.
//
// The store gives out ID and Sequence; what session holds there is ignored. An empty
// Status is SessionRunning. If SessionID is recorded already, that record is returned
// as it is and nothing changes; if it belongs to another chain, the error is ErrConflict.
// A ParentID that no record has is ErrNotFound. ChainID, SessionID and StartedAt
// are required.
func (s *Store) OpenSession(ctx context.Context, session escalation.Session) (escalation.Session, error) {
	recorded, err := s.openSession(ctx, session)
	if err != nil {
		return escalation.Session{}, fmt.Errorf("record session %q: %w", session.SessionID, err)
	}
	return recorded, nil
}

// CloseSession records what a session came to and when it ended.
//
// A report that was recorded before changes nothing, not even the time of the end. A new
// one for a session that is closed already takes over, because whoever reports
// later knows more, and the one before is kept: see ReplacedReports. An unknown session is
// ErrNotFound; a report without a final status, or no endedAt, is ErrInvalid.
func (s *Store) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	if err := s.closeSession(ctx, sessionID, report, endedAt); err != nil {
		return fmt.Errorf("close session %q: %w", sessionID, err)
	}
	return nil
}

// Session returns the record with the number id, or ErrNotFound.
func (s *Store) Session(ctx context.Context, id int64) (escalation.Session, error) {
	session, err := oneSession(ctx, s.db, selectSessions+" WHERE id = $1", id)
	if err != nil {
		return escalation.Session{}, fmt.Errorf("read session record %d: %w", id, err)
	}
	return session, nil
}

// BySessionID returns the record of the CLI's conversation sessionID, or ErrNotFound.
func (s *Store) BySessionID(ctx context.Context, sessionID string) (escalation.Session, error) {
	session, err := bySessionID(ctx, s.db, sessionID)
	if err != nil {
		return escalation.Session{}, fmt.Errorf("read session %q: %w", sessionID, err)
	}
	return session, nil
}

func (s *Store) openSession(ctx context.Context, session escalation.Session) (recorded escalation.Session, err error) {
	if session, err = canonical(session); err != nil {
		return recorded, err
	}
	if err := checkOpening(session); err != nil {
		return recorded, err
	}
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		recorded, err = recordOnce(ctx, tx, session)
		return err
	})
	return recorded, err
}

func (s *Store) closeSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	report, err := canonical(report)
	if err != nil {
		return err
	}
	if err := checkClosing(report, endedAt); err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error { return closeOnce(ctx, tx, sessionID, report, endedAt) })
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

func checkClosing(report escalation.Report, endedAt time.Time) error {
	switch {
	case report.Status == "" || report.Status == escalation.SessionRunning:
		return fmt.Errorf("%w: status %q does not say how the session ended", ErrInvalid, report.Status)
	case endedAt.IsZero():
		return fmt.Errorf("%w: it has no end time", ErrInvalid)
	default:
		return nil
	}
}

// recordOnce inserts session unless its SessionID is recorded, and returns the record.
func recordOnce(ctx context.Context, tx *sql.Tx, session escalation.Session) (escalation.Session, error) {
	existing, err := bySessionID(ctx, tx, session.SessionID)
	switch {
	case err == nil && existing.ChainID != session.ChainID:
		return existing, fmt.Errorf("%w: chain %q has that session as record %d", ErrConflict, existing.ChainID, existing.ID)
	case err == nil:
		return existing, nil
	case !errors.Is(err, ErrNotFound):
		return existing, err
	}
	session.Status = cmp.Or(session.Status, escalation.SessionRunning)
	if session.Sequence, err = nextSequence(ctx, tx, session.ChainID); err != nil {
		return session, err
	}
	return insertSession(ctx, tx, session)
}

func nextSequence(ctx context.Context, tx *sql.Tx, chainID string) (next int, err error) {
	const query = "SELECT COALESCE(MAX(sequence), 0) + 1 FROM sessions WHERE chain_id = $1"
	if err := tx.QueryRowContext(ctx, query, chainID).Scan(&next); err != nil {
		return 0, fmt.Errorf("number it in its chain: %w", err)
	}
	return next, nil
}

// insertSession returns the record as it can be read from now on.
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

// closeOnce fills in what a session came to, unless that report was recorded before.
func closeOnce(ctx context.Context, tx *sql.Tx, sessionID string, report escalation.Report, endedAt time.Time) error {
	current, err := bySessionID(ctx, tx, sessionID)
	if err != nil {
		return err
	}
	if !current.EndedAt.IsZero() {
		known, err := keepReport(ctx, tx, current, report)
		if known || err != nil {
			return err
		}
	}
	fields := append(reportFields(&report), field{"ended_at", millis{&endedAt}})
	query := fmt.Sprintf("UPDATE sessions SET %s WHERE id = $%d", assignments(fields), len(fields)+1) //nolint:gosec // our own column names
	_, err = tx.ExecContext(ctx, query, append(values(fields), current.ID)...)
	return err
}

// keepReport prepares a closed session for another report. It reports whether that one is known,
// as the present report or an earlier one that arrives again; if not, it keeps
// the present one with those that were replaced.
func keepReport(ctx context.Context, tx *sql.Tx, current escalation.Session, next escalation.Report) (known bool, err error) {
	if reflect.DeepEqual(current.Report, next) {
		return true, nil
	}
	earlier, err := replacedReports(ctx, tx, current.SessionID)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(earlier, func(r ReplacedReport) bool { return reflect.DeepEqual(r.Report, next) }) {
		return true, nil
	}
	return false, keepReplaced(ctx, tx, ReplacedReport{SessionID: current.SessionID, EndedAt: current.EndedAt, Report: current.Report})
}
