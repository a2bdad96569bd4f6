package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// Spending adds up the costs of some sessions, in US dollars. Only sessions that have ended count.
type Spending struct {
	// Sessions counts the sessions.
	Sessions int
	// USD is their cost. It includes the cost in replaced reports, because that was paid, too.
	USD float64
	// EstimatedUSD is the part of USD in reports that have an estimated cost.
	EstimatedUSD float64
	// UnknownUSD is what counts against budgets in addition to USD, for sessions with unknown cost (see
	// escalation.Session.CostUnknown).
	UnknownUSD float64
}

// Costs adds up the costs of the sessions of some time, grouped in two ways. The sums of both are equal. A key can
// occur several times: for each day (UTC), for the reports that were replaced, and for the sessions whose records were
// removed.
type Costs struct {
	// Quarters groups the sessions by the quarter of an hour in which they started. Days begin at a quarter of an hour
	// in every time zone.
	Quarters []QuarterCost
	Kinds    []KindCost
}

// QuarterCost is the spending of the sessions that started in a quarter of an hour.
type QuarterCost struct {
	Start time.Time
	Spending
}

// KindCost is the spending of the sessions of one kind.
type KindCost struct {
	Tier       escalation.Tier
	Model      string
	Trigger    escalation.Trigger
	Conclusion escalation.VerdictStatus
	// Services lists the services that the verdicts name, in their order. Of many services, only the first ones are
	// there.
	Services []string
	Spending
}

const quarter = 15 * time.Minute

const (
	spending = `COUNT(*) AS sessions, SUM(cost_usd) AS usd, SUM(CASE WHEN cost_estimated THEN cost_usd ELSE 0 END) AS estimated,
    SUM(CASE WHEN cost_estimated AND attempts = 0 AND budget_usd > cost_usd THEN budget_usd - cost_usd ELSE 0 END) AS unknown
FROM sessions WHERE started_at >= $1 AND started_at < $2 AND ended_at IS NOT NULL`

	// replacedSpending belongs to no further session.
	replacedSpending = `0, r.cost_usd, CASE WHEN r.cost_estimated THEN r.cost_usd ELSE 0 END, 0.0
FROM replaced_reports AS r JOIN sessions ON sessions.session_id = r.session_id
WHERE r.started_at >= $1 AND r.started_at < $2 AND sessions.ended_at IS NOT NULL ORDER BY r.id`

	// removedSpending is what sessions have cost whose records were removed. They are counted by the quarter of an
	// hour.
	removedSpending = " FROM removed_costs WHERE quarter >= $1 AND quarter < $2"
	removedSums     = ", CAST(SUM(sessions) AS BIGINT), SUM(usd), SUM(estimated_usd), SUM(unknown_usd)" +
		removedSpending

	kindColumns = "tier, model, trigger, conclusion, services"
)

// These queries add up sessions, and list replaced reports, of which there are few. Each grouping of sessions has the
// order of an index, so SQLite need not sort them: the kinds of each day are added up first. The limits on quarters and
// days select the part of the index.
var (
	quarterColumn  = fmt.Sprintf("started_at / %d", quarter.Milliseconds())
	quarterQueries = [3]string{
		"SELECT " + quarterColumn + ", " + spending + " AND " + quarterColumn + " >= $3 AND " + quarterColumn +
			" <= $4 GROUP BY 1 ORDER BY 1",
		"SELECT r." + quarterColumn + ", " + replacedSpending,
		"SELECT quarter" + removedSums + " GROUP BY quarter ORDER BY quarter",
	}
	kindQueries = [3]string{
		"SELECT " + kindColumns + ", CAST(SUM(sessions) AS BIGINT), SUM(usd), SUM(estimated), SUM(unknown)" +
			" FROM (SELECT " + kindColumns + ", " + spending +
			" AND started_day >= $3 AND started_day <= $4 GROUP BY started_day, " + kindColumns + ") AS of_days" +
			" GROUP BY " + kindColumns + " ORDER BY " + kindColumns,
		"SELECT " + kindColumns + ", " + replacedSpending,
		"SELECT " + kindColumns + removedSums + " GROUP BY " + kindColumns + " ORDER BY " + kindColumns,
	}
)

// Costs returns what the sessions have cost that started from the time from until before the time to, and
// have ended.
func (s *Store) Costs(ctx context.Context, from, to time.Time) (costs Costs, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		costs.Quarters, err = collectAll(ctx, tx, quarterFields, quarterQueries,
			costSpan{from, to, quarterOf(from), quarterOf(to)})
		if err != nil {
			return err
		}
		costs.Kinds, err = collectAll(ctx, tx, kindFields, kindQueries, costSpan{from, to, dayOf(from), dayOf(to)})
		return err
	})
	if err != nil {
		return Costs{}, fmt.Errorf("add up what sessions have cost: %w", err)
	}
	return costs, nil
}

// costSpan is a span of time whose costs are added up.
type costSpan struct {
	from, to time.Time
	// first and last are the limits of the span in the index that the query about sessions uses.
	first, last int64
}

// collectAll returns the rows of the queries about sessions, about replaced reports, and about removed sessions.
func collectAll[T any](
	ctx context.Context, q querier, fields func(*T) []field, queries [3]string, span costSpan,
) ([]T, error) {
	from, to := span.from.UnixMilli(), span.to.UnixMilli()
	rows, err := collect(ctx, q, fields, queries[0], from, to, span.first, span.last)
	if err != nil {
		return nil, err
	}
	replaced, err := collect(ctx, q, fields, queries[1], from, to)
	if err != nil {
		return nil, err
	}
	// Both times are at a quarter, or the last one is now, when nothing is old.
	removed, err := collect(ctx, q, fields, queries[2], quarterOf(span.from),
		quarterOf(span.to.Add(quarter-time.Millisecond)))
	return append(append(rows, replaced...), removed...), err
}

func quarterFields(c *QuarterCost) []field {
	return append([]field{{"quarter", quarterNumber{&c.Start}}}, spendingFields(&c.Spending)...)
}

func kindFields(c *KindCost) []field {
	return append([]field{
		{"tier", &c.Tier},
		{"model", &c.Model},
		{"trigger", &c.Trigger},
		{"conclusion", &c.Conclusion},
		{"services", jsonText[[]string]{&c.Services}},
	}, spendingFields(&c.Spending)...)
}

func spendingFields(s *Spending) []field {
	return []field{
		{"sessions", &s.Sessions},
		{"usd", &s.USD},
		{"estimated_usd", &s.EstimatedUSD},
		{"unknown_usd", &s.UnknownUSD},
	}
}

// quarterOf returns the number of quarters of an hour from the Unix epoch to at.
func quarterOf(at time.Time) int64 { return at.UnixMilli() / quarter.Milliseconds() }

// quarterNumber reads a time from the number of quarters of an hour since the Unix epoch.
type quarterNumber struct{ to *time.Time }

// Scan implements sql.Scanner. The time is in UTC.
func (q quarterNumber) Scan(src any) error {
	var number sql.NullInt64
	if err := number.Scan(src); err != nil {
		return err
	}
	*q.to = time.UnixMilli(number.Int64 * quarter.Milliseconds()).UTC()
	return nil
}

// DaySpending is the money of one day (UTC), as an admission counts it, in US dollars.
type DaySpending struct {
	// SpentUSD is the cost of the day's ended sessions. A session of unknown cost counts with its budget.
	SpentUSD float64
	// Estimated reports whether a part of SpentUSD is an estimate.
	Estimated bool
	// ReservedUSD is the sum of the budgets of the day's open sessions.
	ReservedUSD float64
}

const dayEstimatedQuery = `
SELECT EXISTS (SELECT 1 FROM sessions WHERE started_at >= $1 AND started_at < $2 AND cost_estimated)
    OR EXISTS (SELECT 1 FROM removed_costs WHERE quarter >= $3 AND quarter < $4 AND estimated_usd > 0)`

// EstimatedChains returns those of the chains a part of whose cost is an estimate.
func (s *Store) EstimatedChains(ctx context.Context, ids []string) (map[string]bool, error) {
	found, err := s.ofChains(ctx, "SELECT DISTINCT chain_id, '' FROM sessions WHERE cost_estimated", ids)
	if err != nil {
		return nil, fmt.Errorf("find the estimated costs of chains: %w", err)
	}
	estimated := make(map[string]bool)
	for id := range found {
		estimated[id] = true
	}
	return estimated, nil
}

// ofChains returns the texts that a query finds for the given chains, by their workflow IDs. It selects the ID and a
// text, and has a condition. If it finds several for one chain, the last one counts.
func (s *Store) ofChains(ctx context.Context, query string, ids []string) (map[string]string, error) {
	type row struct{ id, text string }
	texts := map[string]string{}
	for batch := range slices.Chunk(ids, incidentBatch) {
		args := make([]any, len(batch))
		for i, id := range batch {
			args[i] = id
		}
		found, err := collect(ctx, s.db, func(r *row) []field { return []field{{"chain_id", &r.id}, {"text", &r.text}} },
			query+" AND chain_id IN ("+placeholders(1, len(batch))+") ORDER BY 1, 2", args...)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			texts[one.id] = one.text
		}
	}
	return texts, nil
}

// DaySpending returns the money of the day of the given time.
func (s *Store) DaySpending(ctx context.Context, at time.Time) (day DaySpending, err error) {
	if day.SpentUSD, day.ReservedUSD, err = daySpent(ctx, s.db, at); err != nil {
		return DaySpending{}, fmt.Errorf("add up what the day has cost: %w", err)
	}
	own := calendar.Of(at.UTC())
	err = s.db.QueryRowContext(ctx, dayEstimatedQuery, own.Begin(time.UTC).UnixMilli(), own.End(time.UTC).UnixMilli(),
		quarterOf(own.Begin(time.UTC)), quarterOf(own.End(time.UTC))).Scan(&day.Estimated)
	if err != nil {
		return DaySpending{}, fmt.Errorf("find the estimated costs of the day: %w", err)
	}
	return day, nil
}
