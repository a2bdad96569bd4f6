package supervisor_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// awayFor is longer than a store waits for a lock, so that activities really fail.
const awayFor = 8 * time.Second

// TestDatabaseAwayDelaysAChain locks the records while a tier runs: its end cannot be
// recorded for a while, and nothing runs twice.
func TestDatabaseAwayDelaysAChain(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("touch "+marker+"; sleep 1"), claudesim.Conclude(asksFor(2))),
		concluding("sonnet", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER1_ALLOWED_TOOLS=Bash"))
	run := s.start(nil)
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, testTimeout, 20*time.Millisecond)

	database, err := sql.Open("sqlite", s.cfg.State.DatabaseFile())
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close()) }()
	database.SetMaxOpenConns(1)
	_, err = database.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	time.Sleep(awayFor)
	require.Empty(t, s.query(run).Outcome, "the chain waits for its records")
	_, err = database.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)

	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, simtest.Launches(t, claude), 2, "each tier ran once")
	require.Len(t, chain.Sessions, 2)
	requireRecorded(t, s, chain)
}
