package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Acknowledge records that a person knows of an open incident, in place of what was recorded before, and returns the
// incident. If known is nil, it withdraws that. If the incident is resolved, Acknowledge returns it unchanged with
// ErrConflict. If id is unknown, the error is ErrNotFound.
func (s *Store) Acknowledge(
	ctx context.Context, id string, known *escalation.Acknowledgement,
) (incident escalation.Incident, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		row, err := oneIncident(ctx, tx, id)
		if err == nil && !row.ResolvedAt.IsZero() {
			err = fmt.Errorf("%w: it is resolved already", ErrConflict)
		}
		if err == nil {
			row.Acknowledged = known
			err = updateIncident(ctx, tx, row)
		}
		incident = row.Incident
		incident.Shorten()
		return err
	})
	if err != nil {
		return incident, fmt.Errorf("acknowledge incident %q: %w", id, err)
	}
	return incident, nil
}

var snoozedQuery = selectIncidents + " WHERE resolved_at IS NULL AND acknowledged IS NOT NULL ORDER BY id"

// EndedSnoozes returns the open incidents whose snooze has ended, with their chains.
func (s *Store) EndedSnoozes(ctx context.Context, now time.Time) (ended []escalation.Incident, err error) {
	defer s.count(OpSweep, &err)
	if now, err = s.at(ctx, now); err != nil {
		return nil, err
	}
	rows, err := completeIncidents(ctx, s.db, snoozedQuery)
	if err != nil {
		return nil, fmt.Errorf("read which incidents are snoozed: %w", err)
	}
	for _, row := range rows {
		if until := row.Acknowledged.Until; !until.IsZero() && !now.Before(until) {
			ended = append(ended, row.Incident)
		}
	}
	return ended, nil
}

// EndSnooze withdraws the acknowledgement of an incident that EndedSnoozes has returned. If a person has acknowledged
// or snoozed it again meanwhile, EndSnooze changes nothing.
func (s *Store) EndSnooze(ctx context.Context, ended escalation.Incident) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		row, err := oneIncident(ctx, tx, ended.ID)
		if err != nil || row.Acknowledged == nil || !row.Acknowledged.Until.Equal(ended.Acknowledged.Until) {
			return err
		}
		row.Acknowledged = nil
		return updateIncident(ctx, tx, row)
	})
	if err != nil {
		return fmt.Errorf("end the snooze of %s: %w", ended.ID, err)
	}
	return nil
}

const acknowledgedQuery = `
SELECT COUNT(*), COUNT(acknowledged) FROM incidents WHERE resolved_at IS NULL AND id IN (
    SELECT incident_id FROM incident_chains WHERE chain_id = $1 AND status <> 'ended'
)`

// Acknowledged reports whether a chain works on incidents, and people have acknowledged all of them.
func (s *Store) Acknowledged(ctx context.Context, chainID string) (bool, error) {
	var incidents, known int
	if err := s.db.QueryRowContext(ctx, acknowledgedQuery, chainID).Scan(&incidents, &known); err != nil {
		return false, fmt.Errorf("read whether the incidents of chain %q are acknowledged: %w", chainID, err)
	}
	return incidents > 0 && known == incidents, nil
}
