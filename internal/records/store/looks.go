package store

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

const looksQuery = `SELECT COUNT(*), COALESCE(AVG(cost_usd), 0) FROM (
SELECT cost_usd, verdict FROM sessions
WHERE started_at >= $1 AND tier = $2 AND status = $3 AND purpose = $4 AND has_request = $5 AND cost_estimated = $6
ORDER BY id DESC LIMIT 1000) AS looks WHERE verdict LIKE $7`

// HealthyLooks returns the number and the average cost of the looks of Tier 1 since a time that found nothing wrong, of
// the latest 1,000 looks. It counts looks at all services, whose cost is known.
func (s *Store) HealthyLooks(ctx context.Context, since time.Time) (looks int, averageUSD float64, err error) {
	err = s.db.QueryRowContext(ctx, looksQuery, since.UnixMilli(), int(escalation.TierObserve),
		string(escalation.SessionCompleted),
		string(escalation.PurposeTier), false, false, `{"status":"`+string(escalation.VerdictHealthy)+`"%`).Scan(&looks, &averageUSD)
	if err != nil {
		return 0, 0, fmt.Errorf("read what looks have cost: %w", err)
	}
	return looks, averageUSD, nil
}
