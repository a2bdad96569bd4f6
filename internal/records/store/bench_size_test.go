package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// BenchmarkSize measures how the size of the tables changes the two transactions of a session, and the comparison of a
// fault with the incidents of 30 days. The large tables have the records of ten days with 100,000 chains each, of which
// 4 % repair and 5 % open an incident. docs/sizing.md has the figures.
func BenchmarkSize(b *testing.B) {
	if testing.Short() {
		b.Skip("fills large tables; not with -short")
	}
	databases := map[string]func(b *testing.B) (*Store, error){
		"SQLite": func(b *testing.B) (*Store, error) {
			b.Helper()
			return Open(b.Context(), filepath.Join(b.TempDir(), "ops.db"))
		},
		"PostgreSQL": func(b *testing.B) (*Store, error) {
			b.Helper()
			return OpenPostgres(b.Context(), postgrestest.Database(b), 2)
		},
	}
	for name, open := range databases {
		for _, sessions := range []int{1_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", name, sessions), func(b *testing.B) {
				s, err := open(b)
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, s.Close()) })
				fill(b, s, sessions)
				benchmarkSessions(b, s)
			})
		}
	}
}

// lastMinute is the time of the newest record of fill, at the end of a day (UTC).
var lastMinute = time.Date(2026, 3, 1, 23, 58, 0, 0, time.UTC)

// benchmarkSessions measures the opening and the closing of sessions of kinds that read different records.
func benchmarkSessions(b *testing.B, s *Store) {
	b.Helper()
	policy := escalation.Policy{Tiers: make([]escalation.TierPolicy, 3), Cooldowns: escalation.Cooldowns{
		Restarts:      escalation.Limit{Max: 2, Window: escalation.Duration(4 * time.Hour)},
		Redeployments: escalation.Limit{Max: 1, Window: escalation.Duration(24 * time.Hour)},
	}}
	limited := policy
	limited.DayBudgetUSD = 1e9
	well := escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "All is well.", Services: []string{"shop"}}
	fault := escalation.Verdict{Status: escalation.VerdictEscalate, Summary: "It is down.", Services: []string{"service-1"}, Kind: "down"}
	for name, kind := range map[string]struct {
		policy  escalation.Policy
		verdict escalation.Verdict
	}{
		"well": {policy, well}, "well, with a day's budget": {limited, well}, "fault": {policy, fault},
	} {
		b.Run(name, func(b *testing.B) {
			var opening, closing, comparing time.Duration
			for i := 0; b.Loop(); i++ {
				one := session(fmt.Sprintf("%s %d of %d", name, i, b.N))
				one.ChainID, one.StartedAt = one.SessionID, lastMinute
				began := time.Now()
				opened, err := s.OpenSession(b.Context(), one, escalation.AdmissionRequest{}, kind.policy)
				require.NoError(b, err)
				require.Nil(b, opened.Refusal)
				opening += time.Since(began)
				report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.01}, Attempts: 1, Verdict: &kind.verdict}
				began = time.Now()
				require.NoError(b, s.CloseSession(b.Context(), one.SessionID, report, lastMinute.Add(time.Minute)))
				closing += time.Since(began)
				began = time.Now()
				_, err = s.Incidents(b.Context(), IncidentFilter{
					Since: lastMinute.Add(-escalation.IncidentMemory), Services: kind.verdict.Services,
				})
				require.NoError(b, err)
				comparing += time.Since(began)
			}
			for what, took := range map[string]time.Duration{"opening": opening, "closing": closing, "comparing": comparing} {
				b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/"+what)
			}
		})
	}
}

// numbers begins a query with the table n of the numbers i from $1 to $2.
const numbers = `WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) `

// fillQueries fill the tables with what belongs to the chains of numbers. A day has 86,400,000 ms, so 100,000 chains
// begin every 864 ms. $3 is the time of the first, in milliseconds.
var fillQueries = []string{
	`INSERT INTO sessions (chain_id, first_run_id, sequence, session_id, tier, model, trigger, continuity,
    continuity_reason, purpose, phase, ending, limited_model, budget_usd, forced, dry_run, has_request, started_at, started_day, ended_at, status, cost_usd, cost_estimated,
    reported_total_usd, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, context_tokens, context_window, turns,
    duration_ms, reported_session_id, cli_version, containment, sandbox, survivors, interrupted, attempts, host, worker_version, verdict,
    services, conclusion, error) ` + numbers + `
SELECT 'chain-20260301-' || i, '0b5cfd4e-run-' || i, 1, 'c0ffee00-session-' || i, CASE WHEN i % 25 = 0 THEN 2 ELSE 1 END,
    'haiku', 'scheduled', 'fresh', 'first_tier', '', '', '', '', 0.5, FALSE, i < 0, FALSE, $3 - i * 864, ($3 - i * 864) / 86400000, $3 - i * 864 + 60000, 'completed', 0.03, FALSE,
    0.03, 900, 700, 30000, 9000, 30000, 200000, 9,
    60000, 'c0ffee00-session-' || i, '2.1.332', 'subreaper', 'landlock', 0, FALSE, 1, 'ops-1', 'v0.1.0',
    '{"status":"healthy","summary":"All containers run, all endpoints answer within 200 ms, and 61 % of the disk are used.","check_results":[` +
		`{"service":"shop","status":"healthy","detail":"200 in 41 ms"},{"service":"postgres","status":"healthy","detail":"accepts connections"}]}',
    '["shop","postgres"]', 'healthy', '' FROM n`,

	`INSERT INTO ledger (service_key, service, kind, position, at, chain_id, session_id, call_id, succeeded) ` + numbers + `
SELECT 'service-' || i, 'service-' || i, 'restart', 1, $3 - i * 864, 'chain-20260301-' || i, 'c0ffee00-session-' || i, 'toolu_' || i, TRUE
FROM n WHERE i % 25 = 0`,

	`INSERT INTO incidents (services, kind, summary, severity, opened_at, last_seen_at, resolved_at, resolved_by, resolved_verified, resolved_reason,
    resolved_session, resolution, returned) ` + numbers + `
SELECT '["service-' || i || '"]', 'down', 'The service answers 502 since 02:00; its container restarts every few seconds because the disk is full.',
    'warning', $3 - i * 864, $3 - i * 864, CASE WHEN i % 10000 = 0 THEN NULL ELSE $3 - i * 864 END, 'chain-20260301-' || i, i < 0, '',
    'c0ffee00-session-' || i, 'repaired', 0 FROM n WHERE i % 20 = 0`,

	`INSERT INTO incident_chains (incident_id, chain_id, first_run_id, status, rule, reason, outcome, at, max_tier, dry_run, tier, did, since) ` +
		numbers + `
SELECT CAST(i / 20 AS BIGINT), 'chain-20260301-' || i, '0b5cfd4e-run-' || i, 'ended', 'verdict', '', 'resolved', $3 - i * 864, 3, i < 0, 2,
    'Restarted the container.', $3 - i * 864 FROM n WHERE i % 20 = 0`,
}

// fill records that many ended sessions, the newest at lastMinute, with their ledger entries and incidents.
func fill(b *testing.B, s *Store, sessions int) {
	b.Helper()
	const chunk = 50_000 // a statement must end within the store's limits
	for first := 1; first <= sessions; first += chunk {
		for _, query := range fillQueries {
			_, err := s.db.ExecContext(b.Context(), query, first, min(first+chunk-1, sessions), lastMinute.UnixMilli())
			require.NoError(b, err)
		}
	}
	if s.dialect.directory == postgresDialect.directory { // which otherwise does so later by itself, and SQLite never
		_, err := s.db.ExecContext(b.Context(), "ANALYZE")
		require.NoError(b, err)
	}
}

// TestFills runs the queries that fill tables for benchmarks, which no test of make test would run: each must fit the
// schema.
func TestFills(t *testing.T) {
	t.Parallel()
	databases := map[string]func() (*Store, error){
		"SQLite": func() (*Store, error) { return Open(t.Context(), filepath.Join(t.TempDir(), "ops.db")) },
	}
	if !testing.Short() {
		databases["PostgreSQL"] = func() (*Store, error) { return OpenPostgres(t.Context(), postgrestest.Database(t), 2) }
	}
	for name, open := range databases {
		for _, queries := range [][]string{fillQueries, append(slices.Clone(pageFill), callFill)} {
			s, err := open()
			require.NoError(t, err, name)
			for _, query := range queries {
				_, err := s.db.ExecContext(t.Context(), query, 1, 100, lastMinute.UnixMilli())
				require.NoError(t, err, "%s: %.200s", name, query)
			}
			require.NoError(t, s.Close())
		}
	}
}
