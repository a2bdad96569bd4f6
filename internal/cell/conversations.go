package cell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

const (
	// saveInterval is the time between two saves of a transcript. If the host is lost, the messages since the latest
	// save are lost too.
	saveInterval = 15 * time.Second
	// lastSaveLimit limits the time for the save at the end of a run, unless the supervisor stops (see HurriedSave).
	lastSaveLimit = 30 * time.Second
)

// conversations holds this host's copies of the conversations, in a directory that no agent can read. Agents get a copy
// of the conversation that they continue. What they write is checked before it replaces the host's copy, and only the
// host's copy is archived.
type conversations struct {
	// dir is the directory of the copies.
	dir     string
	user    *claude.User
	archive Archive
	logger  *slog.Logger
	// lineages is shared by all copies of this struct.
	lineages *lineages
}

func newConversations(options Options) (conversations, error) {
	archive := options.Archive
	if archive == nil {
		archive = nowhere{}
	}
	if err := os.MkdirAll(options.Conversations, 0o700); err != nil {
		return conversations{}, fmt.Errorf("make the directory of the conversations: %w", err)
	}
	return conversations{options.Conversations, options.Driver.User, archive, options.Logger, new(lineages)}, nil
}

// path returns the path of this host's copy of a conversation.
func (c conversations) path(sessionID string) string { return filepath.Join(c.dir, sessionID+".jsonl") }

// AlteredError means that an agent has changed a part of a conversation that it had inherited. The conversation must
// not be resumed.
type AlteredError struct{ SessionID, How string }

// Error implements error.
func (e *AlteredError) Error() string {
	return fmt.Sprintf("conversation %s cannot be resumed, because its agent changed what it had inherited: %s",
		e.SessionID, e.How)
}

// altered returns the error of a conversation that was found altered; nil if it was not.
func (c conversations) altered(sessionID string) error {
	how, err := os.ReadFile(c.path(sessionID) + alteredSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look whether a conversation was altered: %w", err)
	}
	return &AlteredError{sessionID, string(how)}
}

// alteredSuffix ends the name of the file that says how a conversation was altered.
const alteredSuffix = ".altered"

// seal remembers that a conversation was altered. It removes the conversation from the archive, so that no other host
// resumes an earlier state of it either.
func (c conversations) seal(ctx context.Context, found *AlteredError) error {
	err := os.WriteFile(c.path(found.SessionID)+alteredSuffix, []byte(found.How), 0o600)
	return errors.Join(err, c.archive.Remove(ctx, found.SessionID))
}

// place gives a session the conversation that it resumes, and writes the session's record. It returns the intake of
// what the session writes.
func (c conversations) place(own *private, spec Spec) (*intake, error) {
	name, err := claude.TranscriptName(spec.Dir, spec.SessionID)
	if err != nil {
		return nil, err
	}
	in := &intake{conversations: c, sessionID: spec.SessionID, root: own.cli, begin: inherited{Name: name}}
	if spec.Resume != "" {
		resumed, err := claude.TranscriptName(spec.Dir, spec.Resume)
		if err != nil {
			return nil, err
		}
		if in.begin.start, err = c.put(own.cli, resumed, spec.Resume); err != nil {
			return nil, fmt.Errorf("give the session its conversation: %w", err)
		}
		if spec.Resume != spec.SessionID && in.begin.Bytes > 0 {
			in.begin.start, in.begin.Parent = start{}, spec.Resume
		}
	}
	return in, own.write(in.begin)
}

// put writes this host's copy of a conversation to a file in root that belongs to the agents' user. It returns the
// start that a later version of the file must have. Without a copy it does nothing, and the CLI reports that there is
// no conversation.
func (c conversations) put(root *os.Root, name, sessionID string) (begin start, err error) {
	source, err := os.Open(c.path(sessionID))
	if errors.Is(err, fs.ErrNotExist) {
		return start{}, nil
	}
	if err != nil {
		return start{}, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	digest := sha256.New()
	err = claude.AsUser(c.user, func() error {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		begin.Bytes, err = io.Copy(io.MultiWriter(file, digest), source)
		return errors.Join(err, file.Close())
	})
	begin.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return begin, err
}

// adopt takes in the conversation that a dead worker's session, or a person with the same login, has left in root. It
// removes the file of an unfinished fork, so that the session can begin again.
func (c conversations) adopt(ctx context.Context, root *os.Root, sessionID string, begin inherited) error {
	ctx, cancel := context.WithTimeout(ctx, lastSaveLimit)
	defer cancel()
	err := (&intake{conversations: c, sessionID: sessionID, root: root, begin: begin}).take(ctx)
	if errors.Is(err, errUnfinished) {
		return claude.AsUser(c.user, func() error { return root.Remove(begin.Name) })
	}
	return err
}

// prune removes the copies that nothing has changed for so long that the CLI would have removed them.
func (c conversations) prune() error {
	names, err := filepath.Glob(filepath.Join(c.dir, "*"))
	for _, name := range names {
		info, failed := os.Lstat(name)
		if failed == nil && time.Since(info.ModTime()) > claude.DefaultRetentionDays*24*time.Hour {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// keep takes in and archives the conversation of a run every saveInterval, and a last time when the caller calls end.
// The argument of end limits the time for this last save, and end reports whether the archive has all of the
// conversation. A failure is logged and does not end the run.
func (c conversations) keep(ctx context.Context, in *intake) (end func(limit time.Duration) bool, err error) {
	archive, err := c.archive.Saver(in.sessionID, c.path(in.sessionID))
	if err != nil {
		return nil, err
	}
	save := func(ctx context.Context) error {
		err := in.take(ctx)
		if errors.Is(err, errUnfinished) {
			return nil
		}
		if err != nil {
			return err
		}
		return archive(ctx)
	}
	failed := func(err error) {
		if _, altered := errors.AsType[*AlteredError](err); altered {
			c.logger.ErrorContext(ctx, "an agent changed the conversation that it had inherited", "session_id",
				in.sessionID, "error", err)
			return
		}
		c.archive.Failed()
		c.logger.WarnContext(ctx, "the conversation could not be archived", "session_id", in.sessionID, "error", err)
	}
	watching, stop := context.WithCancel(ctx)
	var idle sync.WaitGroup
	idle.Go(func() { watchSaves(watching, saveInterval, save, failed) })
	return func(limit time.Duration) bool {
		stop()
		idle.Wait()
		err := within(context.WithoutCancel(ctx), limit, save)
		if err != nil {
			failed(err)
		}
		return err == nil
	}, nil
}

// saveTimeout limits each save before the last one, so that a call that hangs does not prevent later ones.
const saveTimeout = time.Minute

// watchSaves calls the function save after every interval until ctx ends. If save fails, it calls the function failed,
// and continues. If the same error repeats, it calls failed only once. It does not save at the end.
func watchSaves(ctx context.Context, interval time.Duration, save func(context.Context) error, failed func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := within(ctx, saveTimeout, save)
		if err == nil || ctx.Err() != nil {
			told = ""
		} else if err.Error() != told {
			told = err.Error()
			failed(err)
		}
	}
}

func within(ctx context.Context, limit time.Duration, save func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return save(ctx)
}

// nowhere is the Archive of a host that has none.
type nowhere struct{}

var _ Archive = nowhere{}

// Saver implements Archive.
func (nowhere) Saver(string, string) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

// Failed implements Archive.
func (nowhere) Failed() {}

// Remove implements Archive.
func (nowhere) Remove(context.Context, string) error { return nil }

// Conversation returns the path of the host's copy of a conversation, which need not exist. A supervisor can put a
// conversation there that another host has had.
func (h *Host) Conversation(sessionID string) string { return h.conversations.path(sessionID) }

// Altered returns an *AlteredError if an agent has altered the conversation, which must then not be resumed.
func (h *Host) Altered(sessionID string) error { return h.conversations.altered(sessionID) }

// AdoptFromLogin takes in a conversation that a person has had in a directory with the login that agents use, unless
// this host has a copy.
func (h *Host) AdoptFromLogin(ctx context.Context, directory, sessionID string) error {
	if h.privates.shared == "" {
		return nil
	}
	if _, err := os.Lstat(h.conversations.path(sessionID)); err == nil {
		return nil
	}
	name, err := claude.TranscriptName(directory, sessionID)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(h.privates.shared)
	if err != nil {
		return err
	}
	return errors.Join(h.conversations.adopt(ctx, root, sessionID, inherited{Name: name}), root.Close())
}
