package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/files"
	"github.com/claudeops/claudeops/internal/filelock"
)

const (
	// homeName is the agent's HOME below the CLI's directory.
	homeName = "home"
	// recordSuffix ends the name of a record.
	recordSuffix = ".json"
)

// privates creates the directories that only one session has: the CLI's directory, with the agent's home, and a
// directory for temporary files. The CLI runs scripts from its directory, and shells and git read files in the home. So
// a session could run code in another one that shares them.
type privates struct {
	// dir is the parent of the CLI's directories. No agent can write in it.
	dir string
	// home holds the operator's files for the home of agents.
	home string
	// shared is the CLI's directory if it holds a login, and "" otherwise. The CLI renews a login in its directory, so
	// all sessions must use the same one.
	shared string
	// operators reports whether agents need the operator's own HOME, for a login.
	operators bool
	// user is the agents' user; nil for that of this process.
	user *claude.User
}

func newPrivates(options Options) (privates, error) {
	p := privates{
		dir: options.Sessions, home: filepath.Join(options.ConfigDir, homeName), operators: options.Login,
		user: options.Driver.User,
	}
	if where, found := claude.Credentials(options.Driver); options.Login ||
		found && filepath.Dir(where) == options.ConfigDir {
		p.shared = options.ConfigDir
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return p, fmt.Errorf("make the directory of the sessions: %w", err)
	}
	if p.user == nil {
		return p, nil
	}
	return p, passThrough(p.dir)
}

// passThrough lets every user traverse a directory, because agents can run as another user. Only the owner of the
// directory can list its content.
func passThrough(dir string) error { return os.Chmod(dir, 0o711) } //nolint:gosec // see above

// private holds the directories of one session.
type private struct {
	privates

	id string
	// cli is the CLI's directory. The agent can replace anything in it.
	cli *os.Root
	// path is the session's own directory. If the CLI's directory is shared, it holds only the home.
	path      string
	temporary tempDir
	// lock tells other workers, and the next one here, that the session runs.
	lock *filelock.Lock
}

// record describes a session whose worker may have died. It is in a file beside the session's directory.
type record struct {
	// Temporary is the directory for temporary files.
	Temporary string `json:"temporary"`
	// Inherited describes the conversation with which the session began.
	Inherited inherited `json:"inherited"`
}

// open creates the directories of a session. It fails if another worker runs this session. Remains of an earlier
// attempt must be gone (see leftovers).
func (p privates) open(ctx context.Context, sessionID string) (_ *private, err error) {
	own := &private{privates: p, id: sessionID, path: filepath.Join(p.dir, sessionID)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make the session's directories: %w", err), own.close())
		}
	}()
	if own.lock, err = lockRecord(ctx, own.path+recordSuffix); err != nil {
		return nil, err
	}
	if own.temporary, err = newTempDir(p.user); err != nil {
		return nil, err
	}
	if err := os.Mkdir(own.path, 0o700); err != nil {
		return nil, err
	}
	if p.user != nil {
		if err := os.Lchown(own.path, p.user.UID, p.user.GID); err != nil {
			return nil, err
		}
	}
	dir := own.path
	if p.shared != "" {
		dir = p.shared
	}
	if own.cli, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	return own, claude.AsUser(p.user, own.makeHome)
}

// lockLimit limits the wait for an earlier attempt of the same session: until its worker learns that it is over, its
// agent has ended (at most 10 seconds), and its conversation is saved.
const lockLimit = time.Minute + lastSaveLimit + 10*time.Second

// lockRecord creates and locks a record. While another attempt has it, lockRecord waits.
func lockRecord(ctx context.Context, name string) (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	for {
		lock, err := filelock.Create(name)
		if err == nil {
			if _, err = os.Lstat(name); err == nil {
				return lock, nil
			}
			err = errors.Join(err, lock.Close()) // the other attempt has just removed the file
		}
		if !errors.Is(err, filelock.ErrHeld) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockInterval):
		}
	}
}

// lockInterval is the time between two attempts to lock a record.
const lockInterval = 100 * time.Millisecond

// makeHome creates the home, with links to the operator's files for it.
func (p *private) makeHome() error {
	home := filepath.Join(p.path, homeName)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(p.home, entry.Name()), filepath.Join(home, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write writes the session's record.
func (p *private) write(begin inherited) error {
	text, err := json.Marshal(record{Temporary: p.temporary.path, Inherited: begin})
	if err != nil {
		return err
	}
	return os.WriteFile(p.path+recordSuffix, text, 0o600)
}

// variables returns the variables that name the session's directories.
func (p *private) variables() map[string]string {
	named := map[string]string{"TMPDIR": p.temporary.path, "CLAUDE_CODE_TMPDIR": p.temporary.path}
	if !p.operators {
		named["HOME"] = filepath.Join(p.path, homeName)
	}
	if p.shared == "" {
		named["CLAUDE_CONFIG_DIR"] = p.path
	}
	return named
}

// grant lets a sandbox write the session's directories, and read the operator's files for the home.
func (p *private) grant(sandbox *claude.Sandbox) {
	sandbox.Writable = append(sandbox.Writable, p.temporary.path)
	sandbox.Writable = append(sandbox.Writable, resolved(p.path)...)
	sandbox.Readable = append(sandbox.Readable, resolved(p.home)...)
}

// close removes the session's directories and its record.
func (p *private) close() error {
	if p.lock == nil {
		return nil
	}
	var err error
	if p.cli != nil {
		err = p.cli.Close()
	}
	return errors.Join(err, p.remove(p.id, p.temporary), p.lock.Close())
}

// remove removes the directories of a session, and then its record.
func (p privates) remove(sessionID string, temporary tempDir) error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	err = errors.Join(temporary.remove(), files.RemoveAll(root, sessionID))
	if err == nil {
		err = root.Remove(sessionID + recordSuffix)
	}
	return errors.Join(err, root.Close())
}

// leftover is what a session has left whose worker died.
type leftover struct {
	privates
	record

	id   string
	lock *filelock.Lock
}

// leftovers returns the sessions that have left something and do not run. The caller must close each of them.
func (p privates) leftovers() (found []*leftover, err error) {
	names, err := filepath.Glob(filepath.Join(p.dir, "*"+recordSuffix))
	for _, name := range names {
		left, failed := p.leftover(strings.TrimSuffix(filepath.Base(name), recordSuffix))
		err = errors.Join(err, failed)
		if left != nil {
			found = append(found, left)
		}
	}
	return found, err
}

// leftover returns what a session has left; nil if there is nothing, or if the session runs.
func (p privates) leftover(sessionID string) (*leftover, error) {
	name := filepath.Join(p.dir, sessionID+recordSuffix)
	lock, err := filelock.Try(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, filelock.ErrHeld) {
		return nil, nil //nolint:nilnil // there is nothing
	}
	if err != nil {
		return nil, err
	}
	left := &leftover{privates: p, id: sessionID, lock: lock}
	text, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	_ = json.Unmarshal(text, &left.record) // a worker that died early has written nothing
	return left, nil
}

// close removes what the session has left.
func (l *leftover) close() error {
	return errors.Join(l.remove(l.id, tempDir{l.Temporary}), l.lock.Close())
}
