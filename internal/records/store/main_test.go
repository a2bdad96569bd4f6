package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// These environment variables make the test binary run as another process. Their value is the path or the URL of the
// database.
const (
	writerVariable   = "STORE_TEST_WRITER"
	admittedVariable = "STORE_TEST_ADMITTED"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(writerVariable); place != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(place))
		os.Exit(1)
	}
	if place := os.Getenv(admittedVariable); place != "" {
		if err := admitAtOnce(place); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openPlace opens the database of a path or a URL.
func openPlace(ctx context.Context, place string) (*store.Store, error) {
	if filepath.IsAbs(place) {
		return store.Open(ctx, place)
	}
	return store.OpenPostgres(ctx, place, 4)
}

// again returns the command that runs this test binary with a variable.
func again(t *testing.T, variable, value string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(bounded(t), executable)
	command.Env = append(os.Environ(), variable+"="+value)
	return command
}

// writeUntilKilled records sessions, and prints the id of each once it is closed.
func writeUntilKilled(place string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := openPlace(ctx, place)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("process %d session %d", os.Getpid(), i)
		if _, err := openSession(ctx, s, opening("shared", name, 0)); err != nil {
			return err
		}
		if err := s.CloseSession(ctx, name, completed(0.01), noon); err != nil {
			return err
		}
		if err := s.AppendEvents(ctx, []escalation.Event{event("shared", name)}); err != nil {
			return err
		}
		fmt.Println(name)
	}
}

// TestKilledWriter kills another process several times while it writes, and checks that every acknowledged record is
// there.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "ops.db")
		testKilledWriter(t, openFile(t, path), path)
		requireSound(t, path)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		database := postgrestest.Database(t)
		testKilledWriter(t, openURL(t, database), database)
	})
}

func testKilledWriter(t *testing.T, s *store.Store, place string) {
	t.Helper()
	var acknowledged []string
	for round := range 3 {
		own := fmt.Sprintf("own session %d", round)
		mustOpen(t, s, opening("shared", own, 0))
		acknowledged = append(acknowledged, runAndKill(t, place, 5+round)...)
	}

	for _, name := range acknowledged {
		session, err := s.BySessionID(bounded(t), name)
		require.NoError(t, err)
		require.Equal(t, escalation.SessionCompleted, session.Status)
	}
	chain, err := s.Chain(bounded(t), "shared")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(chain), len(acknowledged)+3)
	for i, session := range chain {
		require.Equal(t, i+1, session.Sequence)
	}
}

// runAndKill starts a writer, kills it after it has acknowledged at least atLeast sessions, and returns all
// acknowledged ids.
func runAndKill(t *testing.T, place string, atLeast int) (acknowledged []string) {
	t.Helper()
	writer := again(t, writerVariable, place)
	var complaints strings.Builder
	writer.Stderr = &complaints
	output, err := writer.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	for lines := bufio.NewScanner(output); lines.Scan(); {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == atLeast {
			require.NoError(t, writer.Process.Kill())
		}
	}
	require.ErrorContains(t, writer.Wait(), "killed", complaints.String())
	return acknowledged
}

// requireSound checks the file with SQLite's integrity check and foreign key check.
func requireSound(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var verdict string
	require.NoError(t, db.QueryRowContext(bounded(t), "PRAGMA integrity_check").Scan(&verdict))
	require.Equal(t, "ok", verdict)
	var orphans int
	require.NoError(t, db.QueryRowContext(bounded(t), "SELECT COUNT(*) FROM pragma_foreign_key_check").Scan(&orphans))
	require.Zero(t, orphans)
}
