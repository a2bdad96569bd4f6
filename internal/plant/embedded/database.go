package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/filelock"
)

// database is the server's storage: a file that this process has locked, or memory.
type database struct {
	// name is the absolute path of the file. For a database in memory, name is an invented name that no other server
	// uses.
	name string
	// lock prevents other processes from using the file. It is nil for a database in memory.
	lock *filelock.Lock
}

// openDatabase locks the database file for this process. It creates the schema, or checks that this build can use the
// existing schema. An empty file name means memory.
func openDatabase(ctx context.Context, file string) (*database, error) {
	if file == "" {
		return &database{name: "claudeops-" + uuid.NewString()}, nil
	}
	name, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("database file %s: %w", file, err)
	}
	if err := createPrivate(name); err != nil {
		return nil, err
	}
	lock, err := lockFile(name + ".lock")
	if err != nil {
		return nil, err
	}
	d := &database{name: name, lock: lock}
	if err := prepareSchema(ctx, d); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// createPrivate creates an empty file that only its owner can read, because workflows contain prompts and answers.
// SQLite gives its other files beside this file the same mode. For an existing file, createPrivate only checks that
// this user may read and write the file. It does not open an existing file, because closing the file afterwards would
// drop the locks of a server in this process.
func createPrivate(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names the file
	switch {
	case errors.Is(err, fs.ErrExist):
		err = checkWritable(name)
	case err == nil:
		return file.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("database file %s: its directory does not exist; create it: %w", name, err)
	case err != nil:
		return fmt.Errorf("database file %s cannot be written; make the file and its directory writable for this "+
			"user: %w", name, err)
	}
	return nil
}

// checkWritable returns nil for a file that this user may read and write.
func checkWritable(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	return unix.Access(name, unix.R_OK|unix.W_OK)
}

// ErrInUse is the error for a database file that another server has locked.
var ErrInUse = errors.New("another server uses this database; stop it, or use another database file")

// lockFile locks the file with the given name for this process. The file remains when the process ends.
func lockFile(name string) (*filelock.Lock, error) {
	lock, err := filelock.Create(name)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("lock file %s is held: %w", name, ErrInUse)
	case err != nil:
		return nil, fmt.Errorf("lock file %s cannot be locked; make it and its directory writable for this user: %w",
			name, err)
	}
	return lock, nil
}

// close merges the write-ahead log into the database file, so that a copy of this single file is complete. Then close
// releases the lock for other processes. The server's own connection stays open, because the server's driver closes the
// connection only when the process ends.
func (d *database) close(ctx context.Context) error {
	if d.lock == nil {
		return nil
	}
	return errors.Join(d.checkpoint(ctx), d.lock.Close())
}

func (d *database) checkpoint(ctx context.Context) (err error) {
	db, err := sql.Open(sqliteDriver, d.url())
	if err != nil {
		return fmt.Errorf("database file %s: %w", d.name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("database file %s: merge its write-ahead log: %w", d.name, err)
	}
	return nil
}

// sqlConfig returns the server's configuration of the database. All services of the server share one connection, so
// nothing in this process waits for a lock of the database.
func (d *database) sqlConfig() *config.SQL {
	if d.lock == nil {
		return &config.SQL{
			PluginName:        sqlite.PluginName,
			DatabaseName:      d.name,
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
	}
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: d.escaped(),
		ConnectAttributes: map[string]string{
			// Open an existing file, and never create a file. With "rwc", SQLite would create an empty file if the file
			// were lost, instead of reporting an error.
			"mode": "rw",
			// Write once for each transaction, and sequentially. Readers such as a backup do not stop the server.
			"journal_mode": "wal",
			// Wait for the disk at each transaction. With "normal", a power failure would lose the last seconds, and
			// with them steps that agents have really done. If the process dies and the host does not, no setting loses
			// anything.
			"synchronous": "full",
			// Wait up to 5 s for a program such as a backup that has locked the file. Nothing in this process locks the
			// file.
			"busy_timeout": "5000",
		},
	}
}

// url returns the file's URL for connections of this package.
func (d *database) url() string { return "file:" + d.escaped() + "?mode=rw&_pragma=busy_timeout=5000" }

// escaped returns the path in the form that SQLite expects in a URL. Without escapes, "?" and "#" would end the path,
// and "%" would begin an escape.
func (d *database) escaped() string { return (&url.URL{Path: d.name}).EscapedPath() }
