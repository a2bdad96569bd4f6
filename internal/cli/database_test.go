package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/postgrestest"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// TestDatabaseMoves copies the records of an installation from SQLite to PostgreSQL, and uses the copy.
func TestDatabaseMoves(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	missing := starter(t, environ, "db", "status")
	require.Equal(t, program.ExitFailure, missing.code)
	require.Contains(t, missing.stderr, "there is no database")
	require.NoFileExists(t, cfg.State.DatabaseFile())
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		_, err = records.OpenSession(t.Context(), escalation.Session{
			ChainID: "nightly", SessionID: id, Tier: escalation.TierObserve, StartedAt: time.UnixMilli(1),
		}, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
		require.NoError(t, records.CloseSession(t.Context(), id, escalation.Report{Status: escalation.SessionCompleted, CostUSD: 0.25}, time.UnixMilli(2)))
	}
	require.NoError(t, records.Close())

	moved := slices.Concat(environ, []string{"CLAUDEOPS_DATABASE_URL=" + postgrestest.Database(t)})
	empty := starter(t, moved, "db", "status")
	require.Equal(t, program.ExitOK, empty.code, empty.stderr)
	require.Contains(t, empty.stdout, "none: run `starter db migrate`, or start a worker")
	migrated := starter(t, moved, "db", "migrate")
	require.Equal(t, program.ExitOK, migrated.code, migrated.stderr)
	require.Regexp(t, `schema +version 1, up to date`, migrated.stdout)

	copied := starter(t, moved, "db", "copy")
	require.Equal(t, program.ExitOK, copied.code, copied.stderr)
	require.Regexp(t, `sessions +2\n`, copied.stdout)
	require.Regexp(t, `cost +\$0\.50\n`, copied.stdout)
	again := starter(t, moved, "db", "copy")
	require.Equal(t, program.ExitFailure, again.code)
	require.Contains(t, again.stderr, "the target has 2 rows in table sessions: choose an empty database")

	status := starter(t, moved, "db", "status", "-o", "json")
	var got store.Status
	require.NoError(t, json.Unmarshal([]byte(status.stdout), &got))
	require.Equal(t, store.TableRows{Table: "sessions", Rows: 2}, got.Tables[0])
	require.Contains(t, got.Server, "PostgreSQL")
	shown := starter(t, moved, "chain", "2")
	require.Equal(t, program.ExitOK, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "nightly")
	settings := starter(t, moved, "config")
	require.NotContains(t, settings.stdout, "postgres://postgres")
}
