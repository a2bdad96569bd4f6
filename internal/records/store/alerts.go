package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// episodeFields lists the columns of the table alerts.
func episodeFields(e *alert.Episode) []field {
	return []field{
		{"id", &e.Number},
		{"source", &e.Source},
		{"identity", &e.Identity},
		{"starts_at", millis{&e.StartsAt}},
		{"name", &e.Name},
		{"status", &e.Status},
		{"severity", &e.Severity},
		{"labels", jsonText[map[string]string]{&e.Labels}},
		{"annotations", jsonText[map[string]string]{&e.Annotations}},
		{"service_key", serviceKey{&e.Service}},
		{"service", &e.Service},
		{"max_tier", &e.MaxTier},
		{"outcome", &e.Outcome},
		{"reason", &e.Reason},
		{"chain_id", &e.ChainID},
		{"first_at", millis{&e.FirstAt}},
		{"last_at", millis{&e.LastAt}},
		{"received", &e.Received},
		{"due_at", millis{&e.DueAt}},
		{"looked_at", millis{&e.LookedAt}},
		{"resolved_at", millis{&e.ResolvedAt}},
		{"check_due", &e.CheckDue},
	}
}

var selectEpisodes = "SELECT " + columns(episodeFields(new(alert.Episode))) + " FROM alerts"

// RecordAlerts records the alerts of a delivery, all or none. For each alert it calls receive with the latest episode
// of the alert, or nil, and records the episodes that receive returns. RecordAlerts returns the latest episode of each
// alert.
func (s *Store) RecordAlerts(
	ctx context.Context, alerts []alert.Alert, receive func(*alert.Episode, alert.Alert) []alert.Episode,
) (recorded []alert.Episode, err error) {
	defer s.count(OpAlerts, &err)
	err = s.write(ctx, func(tx *sql.Tx) error {
		recorded = nil
		for _, a := range alerts {
			latest, err := latestEpisode(ctx, tx, a)
			if err != nil {
				return err
			}
			var last alert.Episode
			for _, episode := range receive(latest, a) {
				if last, err = saveEpisode(ctx, tx, episode); err != nil {
					return err
				}
			}
			recorded = append(recorded, last)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record %d alerts: %w", len(alerts), err)
	}
	return recorded, nil
}

// latestEpisode returns the latest episode of an alert; nil if there is none.
func latestEpisode(ctx context.Context, q querier, a alert.Alert) (*alert.Episode, error) {
	found, err := collect(ctx, q, episodeFields,
		selectEpisodes+" WHERE source = $1 AND identity = $2 ORDER BY starts_at DESC LIMIT 1", a.Source, a.Identity)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// saveEpisode inserts an episode that has no number, and updates another one.
func saveEpisode(ctx context.Context, tx *sql.Tx, e alert.Episode) (alert.Episode, error) {
	fields := episodeFields(&e)[1:]
	query, args := insertInto("alerts", fields)
	if e.Number == 0 {
		return e, tx.QueryRowContext(ctx, query+" RETURNING id", args...).Scan(&e.Number)
	}
	query = fmt.Sprintf("UPDATE alerts SET %s WHERE id = $%d", assignments(fields), len(fields)+1)
	_, err := tx.ExecContext(ctx, query, append(args, e.Number)...)
	return e, err
}

// AlertFilter selects episodes. Its zero value selects the latest of all.
type AlertFilter struct {
	Outcome alert.Outcome
	// Before selects episodes with a lower number; 0 selects all.
	Before int64
	// Limit is the maximum number of episodes; 0 means 100.
	Limit int
}

// Alerts returns episodes, the one that began last first.
func (s *Store) Alerts(ctx context.Context, filter AlertFilter) ([]alert.Episode, error) {
	if filter.Limit == 0 {
		filter.Limit = 100
	}
	episodes, err := collect(ctx, s.db, episodeFields, selectEpisodes+
		" WHERE ($1 = '' OR outcome = $1) AND ($2 = 0 OR id < $2) ORDER BY id DESC LIMIT $3",
		string(filter.Outcome), filter.Before, filter.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	return episodes, nil
}

// Alert returns the episode with a number. The error is ErrNotFound if there is none.
func (s *Store) Alert(ctx context.Context, number int64) (alert.Episode, error) {
	found, err := collect(ctx, s.db, episodeFields, selectEpisodes+" WHERE id = $1", number)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return alert.Episode{}, fmt.Errorf("read alert %d: %w", number, err)
	}
	return found[0], nil
}

// AlertCount counts the episodes with an outcome, and their deliveries.
type AlertCount struct {
	Outcome    alert.Outcome `json:"outcome"`
	Alerts     int           `json:"alerts"`
	Deliveries int           `json:"deliveries"`
}

// AlertCounts counts the alerts by their outcome.
func (s *Store) AlertCounts(ctx context.Context) ([]AlertCount, error) {
	fields := func(c *AlertCount) []field {
		return []field{{"outcome", &c.Outcome}, {"COUNT(*)", &c.Alerts}, {"SUM(received)", &c.Deliveries}}
	}
	counts, err := collect(ctx, s.db, fields,
		"SELECT "+columns(fields(new(AlertCount)))+" FROM alerts GROUP BY outcome ORDER BY outcome")
	if err != nil {
		return nil, fmt.Errorf("count the alerts: %w", err)
	}
	return counts, nil
}

// RemoveAlerts removes alerts that were last received before a time and wait for nothing, and returns their number.
func (s *Store) RemoveAlerts(ctx context.Context, before time.Time) (removed int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM alerts WHERE last_at < $1 AND due_at IS NULL", before.UnixMilli())
		if err != nil {
			return err
		}
		if removed, err = result.RowsAffected(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM alert_chains WHERE ended_at < $1", before.UnixMilli())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old alerts: %w", err)
	}
	return removed, nil
}
