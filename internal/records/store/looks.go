package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// maxLooks limits the looks that HealthyLooks measures. A change of the model shows after half as many.
const maxLooks = 30

const looksQuery = `SELECT cost_usd, started_at FROM sessions
WHERE started_at >= $1 AND tier = $2 AND status = $3 AND purpose = $4 AND has_request = $5 AND cost_estimated = $6
AND verdict LIKE $7 ORDER BY id DESC LIMIT $8`

// Looks says what some looks have cost.
type Looks struct {
	Count int
	// MedianUSD is in US dollars.
	MedianUSD float64
	// First and Last are the starts of the oldest and of the newest one.
	First, Last time.Time
}

// HealthyLooks measures the latest 30 looks of Tier 1 since a time that found nothing wrong. It counts looks at all
// services, whose cost is known.
func (s *Store) HealthyLooks(ctx context.Context, since time.Time) (looks Looks, err error) {
	rows, err := s.db.QueryContext(ctx, looksQuery, since.UnixMilli(), int(escalation.TierObserve),
		string(escalation.SessionCompleted), string(escalation.PurposeTier), false, false,
		`{"status":"`+string(escalation.VerdictHealthy)+`"%`, maxLooks)
	if err != nil {
		return Looks{}, fmt.Errorf("read what looks have cost: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var costs []float64
	for rows.Next() {
		var usd float64
		var started int64
		if err := rows.Scan(&usd, &started); err != nil {
			return Looks{}, fmt.Errorf("read what a look has cost: %w", err)
		}
		looks.First = time.UnixMilli(started)
		if len(costs) == 0 {
			looks.Last = looks.First
		}
		costs = append(costs, usd)
	}
	if err := rows.Err(); err != nil {
		return Looks{}, fmt.Errorf("read what looks have cost: %w", err)
	}
	if looks.Count = len(costs); looks.Count > 0 {
		slices.Sort(costs)
		looks.MedianUSD = (costs[(looks.Count-1)/2] + costs[looks.Count/2]) / 2
	}
	return looks, nil
}

// Look is the verdict of a session that looked at services.
type Look struct {
	Session int64
	At      time.Time
	Verdict *escalation.Verdict
}

func lookFields(l *Look) []field {
	return []field{{"id", &l.Session}, {"ended_at", millis{&l.At}}, {"verdict", jsonText[*escalation.Verdict]{&l.Verdict}}}
}

var latestLooksQuery = "SELECT " + columns(lookFields(new(Look))) + ` FROM sessions
WHERE started_at >= $1 AND tier = $2 AND purpose IN ($3, $4) AND verdict IS NOT NULL AND ended_at IS NOT NULL
ORDER BY id DESC LIMIT $5`

// LatestLooks returns the latest sessions of Tier 1 since a time that looked at services and left a verdict, the latest
// first, at most limit.
func (s *Store) LatestLooks(ctx context.Context, since time.Time, limit int) ([]Look, error) {
	looks, err := collect(ctx, s.db, lookFields, latestLooksQuery, since.UnixMilli(), int(escalation.TierObserve),
		string(escalation.PurposeTier), string(escalation.PurposeRecheck), limit)
	if err != nil {
		return nil, fmt.Errorf("read the latest looks: %w", err)
	}
	return looks, nil
}
