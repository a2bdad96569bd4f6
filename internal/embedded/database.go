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

// database is where the server keeps everything: a file that this process holds for itself, or memory.
type database struct {
	// name is the absolute path of the file, or in memory a name that no other server has.
	name string
	// lock keeps other processes away from the file; nil in memory.
	lock *filelock.Lock
}

// openDatabase takes the database file for this process and makes sure that it has the schema of
// this build. An empty file means memory.
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

// createPrivate makes an empty file that only its owner may read, because workflows hold prompts and
// answers; SQLite gives the files beside it the same mode. A file that exists is not opened, only asked
// whether it may be written: closing it would drop the locks that a server in this process holds on it.
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
		return fmt.Errorf("database file %s cannot be written; make the file and its directory writable for this user: %w", name, err)
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

// ErrInUse is returned for a database file that another server holds.
var ErrInUse = errors.New("another server uses this database; stop it, or use another database file")

// lockFile locks the file of that name for this process. The file stays when the process ends.
func lockFile(name string) (*filelock.Lock, error) {
	lock, err := filelock.Create(name)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("lock file %s is held: %w", name, ErrInUse)
	case err != nil:
		return nil, fmt.Errorf("lock file %s cannot be locked; make it and its directory writable for this user: %w", name, err)
	}
	return lock, nil
}

// close writes the log of the database into its main file, so that a copy of that one file is whole,
// and lets other processes have it. It leaves the server's connection alone: the server's
// driver keeps that until the process ends.
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

// sqlConfig is the server's way to the database. All services of the server share one connection,
// so nothing in this process waits for a lock of the database.
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
			// The file exists already: without "c", SQLite reports a lost file instead of starting anew.
			"mode": "rw",
			// One sequential write a transaction, and readers such as a backup do not stop the server.
			"journal_mode": "wal",
			// Wait for the disk at each transaction. "normal" would survive the death of the process, but
			// lose the last seconds with the power, and with them steps that agents have really done.
			"synchronous": "full",
			// Only something outside, such as a backup, can hold the file; ride it out for 5 s.
			"busy_timeout": "5000",
		},
	}
}

// url is the file's address for connections of this package.
func (d *database) url() string { return "file:" + d.escaped() + "?mode=rw&_pragma=busy_timeout=5000" }

// escaped is the path as SQLite reads one in an address: "?" and "#" would end it, "%" begins an escape.
func (d *database) escaped() string { return (&url.URL{Path: d.name}).EscapedPath() }
