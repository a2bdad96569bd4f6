package embedded

import (
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	takenPort := listen(t, 0).Addr().(*net.TCPAddr).Port

	cases := map[string]struct {
		options Options
		want    string
	}{
		"a frontend port in use": {
			options: Options{FrontendPort: takenPort},
			want:    "for the frontend is in use by another program; choose another port",
		},
		"a Web UI port in use": {
			options: Options{UIPort: takenPort},
			want:    "for the Web UI is in use by another program; choose another port",
		},
		"ports and a retention that cannot be": {
			options: Options{FrontendPort: -1, UIPort: 70000, Retention: 1},
			want: "a retention of 1ns is too short; use at least 1h0m0s\n" +
				"port -1 for the frontend is outside 0..65535; choose another port, or 0 for a free one\n" +
				"port 70000 for the Web UI is outside 0..65535",
		},
		"a directory that does not exist": {
			options: Options{DatabaseFile: filepath.Join(dir, "none", "temporal.db")},
			want:    "its directory does not exist; create it",
		},
		"a directory instead of a file": {
			options: Options{DatabaseFile: dir},
			want:    "cannot be written; make the file and its directory writable",
		},
		"a file that is no database": {
			options: Options{DatabaseFile: writeFile(t, "This is a diary, not a database. It is long enough to have a header.")},
			want:    "cannot be read as a SQLite database; use another file",
		},
		"a database of something else": {
			options: Options{DatabaseFile: writeDatabase(t, `CREATE TABLE diary (entry TEXT)`)},
			want:    "holds tables of something else; use another file",
		},
		"a newer schema": {
			options: Options{DatabaseFile: writeSchemaVersion(t, "0.999", "0.1")},
			want:    "has Temporal schema 0.999/0.1, newer than the",
		},
		"a newer schema of the lists": {
			options: Options{DatabaseFile: writeSchemaVersion(t, currentSchema().main, "1.0")},
			want:    "newer than the",
		},
		"an older schema": {
			options: Options{DatabaseFile: writeSchemaVersion(t, "0.9", "0.1")},
			want:    "has Temporal schema 0.9/0.1, older than the",
		},
		"a malformed schema version": {
			options: Options{DatabaseFile: writeSchemaVersion(t, "new", "0.1")},
			want:    `has the malformed Temporal schema version "new"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := Start(t.Context(), c.options)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, server)
		})
	}
}

func TestDirectoryNotWritable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere; run as another user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500)) //nolint:gosec // entering a directory needs x

	_, err := Start(t.Context(), Options{DatabaseFile: filepath.Join(dir, "temporal.db")})

	require.ErrorContains(t, err, "cannot be written; make the file and its directory writable")
}

// TestSchemaIsAllOrNothing checks that an interrupted setup leaves an empty database, which the next start
// completes.
func TestSchemaIsAllOrNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := openDatabase(ctx, file)
	require.ErrorIs(t, err, context.Canceled)

	for range 2 { // the second time the database exists
		db, err := openDatabase(t.Context(), file)
		require.NoError(t, err)
		require.NoError(t, db.close(t.Context()))
	}
}

func TestDatabaseIsPrivateAndLocked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	db, err := openDatabase(t.Context(), file)
	require.NoError(t, err)

	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = openDatabase(t.Context(), file)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "another server uses this database; stop it, or use another database file")

	require.NoError(t, db.close(t.Context()))
	again, err := openDatabase(t.Context(), file)
	require.NoError(t, err)
	require.NoError(t, again.close(t.Context()))
}

// writeFile creates a file with content.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "temporal.db")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// writeDatabase creates a SQLite database with statement.
func writeDatabase(t *testing.T, statement string, args ...any) string {
	t.Helper()
	file := writeFile(t, "")
	db, err := sql.Open(sqliteDriver, file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return file
}

func writeSchemaVersion(t *testing.T, main, visibility string) string {
	t.Helper()
	return writeDatabase(t, `CREATE TABLE claudeops_schema AS SELECT ? AS main, ? AS visibility`, main, visibility)
}
