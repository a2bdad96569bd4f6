package operate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/desk/cli/setup"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// everything runs the daily commands and those of setup.
var everything = clitest.Of(func(c *console.Console) []*cobra.Command {
	return append(daily.Commands(c), setup.Commands(c, setup.Steps{})...)
}).Run

// TestReadersMigrateNothing runs commands on a database without tables, which only workers and `db migrate` make.
func TestReadersMigrateNothing(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), nil, 0o600))
	for _, args := range [][]string{
		{"costs"}, {"incidents"}, {"memory"}, {"chain", "1"}, {"db", "release"}, {"db", "copy", "--to", "sqlite:///" + t.TempDir() + "/x.db"},
	} {
		run := everything
		if args[0] == "db" {
			run = starter
		}
		got := run(t, environ, args...)
		require.Equal(t, program.ExitFailure, got.Code, "%q", args)
		require.Contains(t, got.Stderr, "it has no tables of this release: start a worker, or run `claudeops db migrate`", "%q", args)
	}
	require.Regexp(t, "! database +it has no tables of this release: the next worker makes them", everything(t, environ, "doctor").Stdout)
	left, err := os.Stat(cfg.State.DatabaseFile())
	require.NoError(t, err)
	require.Zero(t, left.Size())
	require.Equal(t, program.ExitOK, starter(t, environ, "db", "migrate").Code)
	require.Equal(t, program.ExitOK, everything(t, environ, "incidents").Code)
}

// TestDatabaseMoves copies the records of an installation from SQLite to PostgreSQL, and uses the copy.
func TestDatabaseMoves(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	missing := starter(t, environ, "db", "status")
	require.Equal(t, program.ExitFailure, missing.Code)
	require.Contains(t, missing.Stderr, "there is no database")
	require.NoFileExists(t, cfg.State.DatabaseFile())
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		_, err = records.OpenSession(t.Context(), escalation.Session{
			ChainID: "nightly", SessionID: id, Tier: escalation.TierObserve, StartedAt: time.UnixMilli(1),
		}, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
		require.NoError(t, records.CloseSession(t.Context(), id, escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}}, time.UnixMilli(2)))
	}
	require.NoError(t, records.Close())

	moved := slices.Concat(environ, []string{"CLAUDEOPS_DATABASE_URL=" + postgrestest.Database(t)})
	empty := starter(t, moved, "db", "status")
	require.Equal(t, program.ExitOK, empty.Code, empty.Stderr)
	require.Contains(t, empty.Stdout, "none: run `claudeops db migrate`, or start a worker")
	migrated := starter(t, moved, "db", "migrate")
	require.Equal(t, program.ExitOK, migrated.Code, migrated.Stderr)
	require.Regexp(t, `schema +version \d+, up to date`, migrated.Stdout)

	copied := starter(t, moved, "db", "copy")
	require.Equal(t, program.ExitOK, copied.Code, copied.Stderr)
	require.Regexp(t, `sessions +2\n`, copied.Stdout)
	require.Regexp(t, `cost +\$0\.50\n`, copied.Stdout)
	again := starter(t, moved, "db", "copy")
	require.Equal(t, program.ExitFailure, again.Code)
	require.Contains(t, again.Stderr, "the target has 2 rows in table sessions: choose an empty database")

	status := starter(t, moved, "db", "status", "-o", "json")
	var got store.Status
	require.NoError(t, json.Unmarshal([]byte(status.Stdout), &got))
	require.Equal(t, store.TableRows{Table: "sessions", Rows: 2}, got.Tables[0])
	require.Contains(t, got.Server, "PostgreSQL")
	shown := everything(t, moved, "chain", "2")
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	require.Contains(t, shown.Stdout, "nightly")
	settings := everything(t, moved, "config")
	require.NotContains(t, settings.Stdout, "postgres://postgres")
}

// TestDatabaseRelease hands the records of one Temporal namespace over to the next worker.
func TestDatabaseRelease(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	missing := starter(t, environ, "db", "release")
	require.Equal(t, program.ExitFailure, missing.Code)
	require.Contains(t, missing.Stderr, "there are no records")
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	claim := func(at time.Time) {
		require.NoError(t, records.Claim(t.Context(), store.Namespace{ID: "1-2-3", Name: "default"}, at))
	}
	claim(time.Now())
	busy := starter(t, environ, "db", "release")
	require.Equal(t, program.ExitFailure, busy.Code)
	require.Contains(t, busy.Stderr, "a worker of namespace default has used the records within the last two minutes")
	require.Regexp(t, `namespace +"default" \(1-2-3\)\n`, starter(t, environ, "db", "status").Stdout)
	claim(time.Now().Add(-time.Hour))
	require.NoError(t, records.Close())
	released := starter(t, environ, "db", "release")
	require.Equal(t, program.ExitOK, released.Code, released.Stderr)
	require.Regexp(t, `namespace +none: the next worker takes the records\n`, released.Stdout)
}
