package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/records/store"
)

func TestOpenCreatesPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "of it? 100% #1")
	s := openFile(t, filepath.Join(dir, "ops.db"))
	mustOpen(t, s, opening("chain", "session", 0))

	requireMode(t, 0o700, dir)
	requireMode(t, 0o700, filepath.Dir(dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "the database, its log and the log's index")
	for _, file := range files {
		requireMode(t, 0o600, filepath.Join(dir, file.Name()))
	}
}

func requireMode(t *testing.T, want os.FileMode, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, want, info.Mode().Perm(), path)
}

func TestOpenSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ops.db")
	openFile(t, path)
	require.Equal(t, "wal", query(t, path, "PRAGMA journal_mode"))
}

func TestOpenAgainKeepsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ops.db")
	first, err := store.Open(bounded(t), path)
	require.NoError(t, err)
	want := mustOpen(t, first, opening("chain", "session", 0))
	require.NoError(t, first.Close())

	got, err := openFile(t, path).BySessionID(bounded(t), want.SessionID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Commands open the records while workers write them all the time.
func TestOpenWhileAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ops.db")
	openFile(t, path)
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	writing, err := other.BeginTx(bounded(t), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, writing.Rollback()) }()

	records, err := store.Open(bounded(t), path)
	require.NoError(t, err)
	require.NoError(t, records.Close())
}

// TestOpenExistingCreatesNothing opens a missing file, and one without tables.
func TestOpenExistingCreatesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ops.db")
	_, err := store.OpenExisting(bounded(t), path)
	require.Error(t, err)
	require.NoFileExists(t, path)
	_, err = store.OpenExisting(bounded(t), fileOf("")(t, filepath.Dir(path)))
	require.ErrorIs(t, err, store.ErrUnmigrated)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, content)
}

func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "ops.db")
	ctx := bounded(t)
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			s, err := store.Open(ctx, path)
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, "1", query(t, path, "SELECT COUNT(*) FROM claudeops_schema_version WHERE version_id = 1"))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) (path string)
		message string
	}{
		"a file that is no database": {fileOf("These are notes about a database, and far from one.\n"), "not a SQLite database"},
		"a long file of noise":       {fileOf(string(make([]byte, 4096)) + "noise"), "not a SQLite database"},
		"another program's database": {databaseOf("CREATE TABLE executions (id INTEGER)"), "belongs to another program"},
		"another program's database, which goose migrates": {
			databaseOf("CREATE TABLE goose_db_version (id INTEGER, version_id INTEGER, is_applied INTEGER, tstamp TIMESTAMP)"), "belongs to another program",
		},
		"a newer schema": {newerSchema, "version 9000 and this release knows versions up to"},
		"a directory":    {func(_ *testing.T, dir string) string { return dir }, "make the file and its directory writable"},
		"a directory that is a file": {func(t *testing.T, dir string) string {
			return filepath.Join(fileOf("x")(t, dir), "ops.db")
		}, "make its parent writable"},
		"a directory that cannot be written": {func(t *testing.T, dir string) string {
			skipRoot(t)
			require.NoError(t, os.Chmod(dir, 0o500)) //nolint:gosec // a directory needs its x bit
			return filepath.Join(dir, "ops.db")
		}, "make its directory writable"},
		"an empty file that cannot be written": {readOnly(fileOf("")), "make the file and its directory writable"},
		"a database that cannot be written":    {readOnly(ownDatabase), "make the file and its directory writable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := test.prepare(t, t.TempDir())
			before, _ := os.ReadFile(path)
			_, err := store.Open(bounded(t), path)
			require.ErrorContains(t, err, test.message)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "\n")
			after, _ := os.ReadFile(path)
			require.Equal(t, before, after, "what is refused is left as it was")
		})
	}
}

func fileOf(content string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		path := filepath.Join(dir, "ops.db")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
}

func databaseOf(statements ...string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		path := filepath.Join(dir, "ops.db")
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		for _, statement := range statements {
			_, err := db.ExecContext(bounded(t), statement)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
		return path
	}
}

func readOnly(prepare func(*testing.T, string) string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		skipRoot(t)
		path := prepare(t, dir)
		require.NoError(t, os.Chmod(path, 0o400))
		return path
	}
}

func ownDatabase(t *testing.T, dir string) string {
	path := filepath.Join(dir, "ops.db")
	s, err := store.Open(bounded(t), path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return path
}

// newerSchema creates a database of this program whose schema version is that of a later release.
func newerSchema(t *testing.T, dir string) string {
	ownDatabase(t, dir)
	return databaseOf("INSERT INTO claudeops_schema_version (version_id, is_applied) VALUES (9000, 1)")(t, dir)
}

func query(t *testing.T, path, statement string) (answer string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(bounded(t), statement).Scan(&answer))
	return answer
}

func skipRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
}
