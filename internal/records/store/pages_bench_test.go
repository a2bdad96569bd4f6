package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// The size of the records of BenchmarkPages: chains of three sessions, with as many calls in each session.
const (
	pageChains   = 10_000
	pageSessions = 3 * pageChains
	pageCalls    = 1_000_000
)

// pagesPeriod is the time over which the chains of BenchmarkPages are spread.
const pagesPeriod = 30 * 24 * time.Hour

// pageFill fill the tables with what belongs to the sessions of numbers. $3 is the time of the newest session.
var pageFill = []string{
	`INSERT INTO sessions (chain_id, first_run_id, sequence, session_id, parent_session_id, tier, model, trigger,
    continuity, continuity_reason, purpose, phase, ending, limited_model, budget_usd, forced, dry_run, has_request, started_at, started_day, ended_at, status, cost_usd, cost_estimated,
    reported_total_usd, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, context_tokens, context_window, turns,
    duration_ms, reported_session_id, cli_version, containment, sandbox, survivors, interrupted, attempts, host, worker_version, verdict,
    services, conclusion, error) ` + numbers + `
SELECT 'chain-20260301-' || ((i - 1) / 3), '0b5cfd4e-run-' || ((i - 1) / 3), (i - 1) % 3 + 1, 'c0ffee00-session-' || i,
    CASE WHEN i % 3 = 1 THEN NULL ELSE i - 1 END, (i - 1) % 3 + 1, CASE i % 3 WHEN 1 THEN 'haiku' WHEN 2 THEN 'sonnet' ELSE 'opus' END,
    CASE WHEN i % 7 = 0 THEN 'manual' ELSE 'scheduled' END, 'resume', 'parent_session', '', '', '', '', 0.5, i < 0, i < 0, i < 0,
    $3 - (30000 - i) * 86400, ($3 - (30000 - i) * 86400) / 86400000, CASE WHEN i > 29990 THEN NULL ELSE $3 - (30000 - i) * 86400 + 60000 END,
    CASE WHEN i > 29990 THEN 'running' ELSE 'completed' END, 0.03, i % 50 = 0, 0.03, 900, 700, 30000, 9000, 30000, 200000, 9,
    60000, 'c0ffee00-session-' || i, '2.1.332', 'subreaper', 'landlock', 0, i < 0, 1, 'ops-1', 'v0.1.0',
    '{"status":"healthy","summary":"All containers run, all endpoints answer within 200 ms, and 61 % of the disk are used.","check_results":[` +
		`{"service":"shop","status":"healthy","detail":"200 in 41 ms"},{"service":"postgres","status":"healthy","detail":"accepts connections"}]}',
    CASE WHEN i % 3 = 1 AND i % 2 = 0 THEN '[]' ELSE '["service-' || (i % 40) || '"]' END, CASE WHEN i % 3 = 1 AND i % 2 = 0 THEN 'healthy' ELSE 'escalate' END, '' FROM n`,

	`INSERT INTO replaced_reports (session_id, started_at, ended_at, cost_usd, cost_estimated, report) ` + numbers + `
SELECT 'c0ffee00-session-' || i, $3 - (30000 - i) * 86400, $3 - (30000 - i) * 86400 + 30000, 0.01, i < 0, '{"status":"failed","cost_usd":0.01}'
FROM n WHERE i % 100 = 0`,

	`INSERT INTO ledger (service_key, service, kind, position, at, chain_id, session_id, call_id, succeeded) ` + numbers + `
SELECT 'service-' || (i % 40), 'service-' || (i % 40), 'restart', 1, $3 - (30000 - i) * 86400, 'chain-20260301-' || ((i - 1) / 3), 'c0ffee00-session-' || i, 'toolu_' || i,
    i > 0 FROM n WHERE i % 15 = 2`,

	`INSERT INTO events (event_key, chain_id, first_run_id, session_id, kind, severity, message, occurred_at) ` + numbers + `
SELECT 'event-' || n.i || '-' || m.i, 'chain-20260301-' || ((n.i - 1) / 3), '0b5cfd4e-run-' || ((n.i - 1) / 3), 'c0ffee00-session-' || n.i, 'decision', 'info',
    'tier 1 asks for tier 2: jellyfin answers 502', $3 - (30000 - n.i) * 86400
FROM n, (SELECT 1 AS i UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) AS m`,

	`INSERT INTO incidents (services, kind, summary, severity, opened_at, last_seen_at, resolved_at, resolved_by, resolved_verified, resolved_reason,
    resolved_session, resolution, returned) ` + numbers + `
SELECT '["service-' || (i % 40) || '"]', 'down', 'The service answers 502 since 02:00; its container restarts every few seconds because the disk is full.',
    'warning', $3 - (30000 - i) * 86400, $3 - (30000 - i) * 86400, CASE WHEN i % 3000 = 0 THEN NULL ELSE $3 - (30000 - i) * 86400 END,
    'chain-20260301-' || ((i - 1) / 3), i < 0, '', 'c0ffee00-session-' || i, 'repaired', 0 FROM n WHERE i % 30 = 0`,

	`INSERT INTO incident_chains (incident_id, chain_id, first_run_id, status, rule, reason, outcome, at, max_tier, dry_run, tier,
    did, since) ` + numbers + `
SELECT CAST(i / 30 AS BIGINT), 'chain-20260301-' || ((i - 1) / 3), '0b5cfd4e-run-' || ((i - 1) / 3), 'ended', 'verdict', '', 'resolved',
    $3 - (30000 - i) * 86400, 3, i < 0, 2, 'Restarted the container.', $3 - (30000 - i) * 86400 FROM n WHERE i % 30 = 0`,
}

// callFill records the calls of numbers.
const callFill = `INSERT INTO calls (chain_id, session_id, call_id, tier, decided_at, tool, input, allowed, rule, reason, actions) ` + numbers + `
SELECT 'chain-20260301-' || ((i % 30000) / 3), 'c0ffee00-session-' || (i % 30000 + 1), 'toolu_' || i, 1, $3 - (30000 - i % 30000) * 86400, 'Bash',
    '{"command":"docker inspect --format {{.State.Health.Status}} jellyfin","description":"Ask how the container is"}', i % 100 <> 0,
    'tier 1: docker inspect', '', NULL FROM n`

// fillPages records the chains of BenchmarkPages.
func fillPages(b *testing.B, s *Store) {
	b.Helper()
	const chunk = 50_000 // a statement must end within the store's limits
	for _, query := range pageFill {
		_, err := s.db.ExecContext(b.Context(), query, 1, pageSessions, lastMinute.UnixMilli())
		require.NoError(b, err)
	}
	for first := 1; first <= pageCalls; first += chunk {
		_, err := s.db.ExecContext(b.Context(), callFill, first, first+chunk-1, lastMinute.UnixMilli())
		require.NoError(b, err)
	}
	if s.dialect.directory == postgresDialect.directory { // which otherwise does so later by itself, and SQLite never
		_, err := s.db.ExecContext(b.Context(), "VACUUM ANALYZE")
		require.NoError(b, err)
	}
}

// BenchmarkPages measures the queries of the pages, with the records of 10,000 chains and 1,000,000 calls.
func BenchmarkPages(b *testing.B) {
	if testing.Short() {
		b.Skip("fills large tables; not with -short")
	}
	for name, open := range map[string]func(b *testing.B) (*Store, error){
		"SQLite": func(b *testing.B) (*Store, error) {
			b.Helper()
			return Open(b.Context(), filepath.Join(b.TempDir(), "ops.db"))
		},
		"PostgreSQL": func(b *testing.B) (*Store, error) {
			b.Helper()
			return OpenPostgres(b.Context(), postgrestest.Database(b), 4)
		},
	} {
		b.Run(name, func(b *testing.B) {
			s, err := open(b)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			fillPages(b, s)
			benchmarkPages(b, s)
		})
	}
}

func benchmarkPages(b *testing.B, s *Store) {
	b.Helper()
	month := lastMinute.Add(-pagesPeriod)
	const session, chain = 15_002, "chain-20260301-5000" // of the middle
	id := fmt.Sprintf("c0ffee00-session-%d", session)
	for name, query := range map[string]func(ctx context.Context) (int, error){
		"costs of 30 days": func(ctx context.Context) (int, error) {
			costs, err := s.Costs(ctx, month, lastMinute)
			return len(costs.Kinds), err
		},
		"money of the day": func(ctx context.Context) (int, error) {
			day, err := s.DaySpending(ctx, lastMinute)
			return int(day.SpentUSD), err
		},
		"running sessions": func(ctx context.Context) (int, error) { return count(s.Running(ctx)) },
		"actions on services": func(ctx context.Context) (int, error) {
			return count(s.ActionsSince(ctx, month))
		},
		"latest actions":         func(ctx context.Context) (int, error) { return count(s.LatestActions(ctx, month)) },
		"actions on one service": func(ctx context.Context) (int, error) { return count(s.ActionsOf(ctx, "Service-2", 100)) },
		"names of services":      func(ctx context.Context) (int, error) { return count(s.NamedServices(ctx, month)) },
		"open incidents":         func(ctx context.Context) (int, error) { return count(s.Incidents(ctx, IncidentFilter{})) },
		"all incidents": func(ctx context.Context) (int, error) {
			return count(s.Incidents(ctx, IncidentFilter{Since: month}))
		},
		"incidents of a service": func(ctx context.Context) (int, error) {
			return count(s.Incidents(ctx, IncidentFilter{Since: month, Services: []string{"service-10"}, Limit: 20}))
		},
		"session": func(ctx context.Context) (int, error) {
			detail, err := s.SessionDetail(ctx, session)
			return len(detail.Events), err
		},
		"calls of a session": func(ctx context.Context) (int, error) {
			calls, err := s.SessionCalls(ctx, id, 1_000)
			return len(calls.Decisions), err
		},
		"actions of a session": func(ctx context.Context) (int, error) { return count(s.SessionActions(ctx, id)) },
		"sessions of a chain":  func(ctx context.Context) (int, error) { return count(s.Chain(ctx, chain)) },
		"events of a chain":    func(ctx context.Context) (int, error) { return count(s.Events(ctx, chain)) },
		"calls of a chain":     func(ctx context.Context) (int, error) { return count(s.Decisions(ctx, chain)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				found, err := query(b.Context())
				require.NoError(b, err)
				require.NotZero(b, found)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/query")
		})
	}
}

// count returns the length of a list.
func count[T any](list []T, err error) (int, error) { return len(list), err }
