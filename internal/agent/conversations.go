package agent

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

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/records/transcripts"
)

const (
	// saveInterval is the time between two saves of a transcript. If the host is lost, the messages since the latest save are
	// lost too.
	saveInterval = 15 * time.Second
	// restoreLimit limits the time for the download of a transcript. It is enough for about ten megabytes over a slow line.
	restoreLimit = 2 * time.Minute
	// lastSaveLimit limits the time for the save at the end of a run. The tier's result is reported after this save.
	lastSaveLimit = 30 * time.Second
	// drainSaveLimit replaces lastSaveLimit when the worker stops. It must fit into ReportTime.
	drainSaveLimit = ReportTime / 2
)

// conversations holds this host's copies of the conversations, in a directory that no agent can read. Agents get a copy
// of the conversation that they continue. What they write is checked before it replaces the worker's copy, and only the
// worker's copy is archived.
type conversations struct {
	// dir is the directory of the copies.
	dir     string
	user    *claude.User
	archive *transcripts.Archive
	// failed is called after a failed operation on the archive (see Options.ArchiveFailed).
	failed func(save bool)
	logger *slog.Logger
	// lineages is shared by all copies of this struct.
	lineages *lineages
}

func newConversations(options Options) (conversations, error) {
	failed := options.ArchiveFailed
	if failed == nil {
		failed = func(bool) {}
	}
	dir := options.Config.ConversationsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return conversations{}, fmt.Errorf("make the directory of the conversations: %w", err)
	}
	user := ClaudeOptions(options.Config.Claude, options.Environ).User
	return conversations{dir, user, options.Archive, failed, options.Logger, new(lineages)}, nil
}

// path returns the path of this host's copy of a conversation.
func (c conversations) path(sessionID string) string { return filepath.Join(c.dir, sessionID+".jsonl") }

// copyOf returns this host's copy of a conversation, for the archive.
func (c conversations) copyOf(sessionID string) (*transcripts.Copy, error) {
	return c.archive.Copy(sessionID, c.path(sessionID))
}

// restore copies the transcript from the archive if this host has no copy or an older copy. Afterwards restore reports
// whether this host has a usable copy. A missing or damaged transcript in the archive is not an error; damage is
// logged. An error means that the archive cannot be read now.
func (c conversations) restore(ctx context.Context, sessionID string, local *transcripts.Copy) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	restored, err := local.Restore(ctx)
	switch {
	case errors.Is(err, transcripts.ErrNotFound):
		return false, nil
	case errors.Is(err, transcripts.ErrCorrupt):
		c.failed(false)
		c.logger.ErrorContext(ctx, "an archived conversation cannot be used", "session_id", sessionID, "error", err)
		return false, nil
	case err != nil:
		c.failed(false)
		return false, err
	}
	for _, damage := range restored.Damaged {
		c.logger.WarnContext(ctx, "an archived conversation was passed over", "session_id", sessionID, "error", damage)
	}
	if restored.SetAside != "" {
		c.logger.WarnContext(ctx, "a conversation went on elsewhere; what this host had was set aside",
			"session_id", sessionID, "file", restored.SetAside)
	}
	if restored.Outcome == transcripts.FromArchive {
		c.logger.InfoContext(ctx, "conversation restored from the archive", "session_id", sessionID)
	}
	return true, nil
}

// alteredError says that an agent has changed a part of a conversation that it had inherited. The conversation must not
// be resumed.
type alteredError struct{ sessionID, how string }

// Error implements error.
func (e *alteredError) Error() string {
	return fmt.Sprintf("conversation %s cannot be resumed, because its agent changed what it had inherited: %s", e.sessionID, e.how)
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
	return &alteredError{sessionID, string(how)}
}

// alteredSuffix ends the name of the file that says how a conversation was altered.
const alteredSuffix = ".altered"

// seal remembers that a conversation was altered. It removes the conversation from the archive, so that no other host
// resumes an earlier state of it either.
func (c conversations) seal(ctx context.Context, found *alteredError) error {
	err := os.WriteFile(c.path(found.sessionID)+alteredSuffix, []byte(found.how), 0o600)
	return errors.Join(err, c.archive.Remove(ctx, found.sessionID))
}

// place gives a session the conversation that it resumes, and writes the session's record. It returns the intake of
// what the session writes. The agent works in the directory of the run.
func (c conversations) place(own *private, run activities.AgentRun) (*intake, error) {
	name, err := claude.TranscriptName(run.Directory, run.SessionID)
	if err != nil {
		return nil, err
	}
	in := &intake{conversations: c, sessionID: run.SessionID, root: own.cli, begin: inherited{Name: name}}
	if run.Resume != "" {
		resumed, err := claude.TranscriptName(run.Directory, run.Resume)
		if err != nil {
			return nil, err
		}
		if in.begin.start, err = c.put(own.cli, resumed, run.Resume); err != nil {
			return nil, fmt.Errorf("give the session its conversation: %w", err)
		}
		if run.Resume != run.SessionID && in.begin.Bytes > 0 {
			in.begin.start, in.begin.Parent = start{}, run.Resume
		}
	}
	return in, own.write(in.begin)
}

// put writes this host's copy of a conversation to a file in root that belongs to the agents' user. It returns the start that
// a later version of the file must have. Without a copy it does nothing, and the CLI reports that there is no
// conversation.
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

// adopt takes in the conversation that a dead worker's session, or a person with the same login, has left in root. It removes
// the file of an unfinished fork, so that the session can begin again.
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

// archiveLeft archives this host's copy of a conversation whose process has ended without doing so, and reports whether the archive has
// all of it. A failure is logged.
func (c conversations) archiveLeft(ctx context.Context, sessionID string) bool {
	ctx, cancel := context.WithTimeout(ctx, lastSaveLimit)
	defer cancel()
	left, err := c.copyOf(sessionID)
	if err == nil {
		_, err = left.Save(ctx)
	}
	if err != nil {
		c.failed(true)
		c.logger.WarnContext(ctx, "the conversation could not be archived", "session_id", sessionID, "error", err)
	}
	return err == nil
}

// keep takes in and archives the conversation of a run every saveInterval, and a last time when the caller calls end.
// The argument of end limits the time for this last save, and end reports whether the archive has all of the conversation. A failure is
// logged and does not end the run.
func (c conversations) keep(ctx context.Context, in *intake) (end func(limit time.Duration) bool, err error) {
	local, err := c.copyOf(in.sessionID)
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
		_, err = local.Save(ctx)
		return err
	}
	failed := func(err error) {
		if _, altered := errors.AsType[*alteredError](err); altered {
			c.logger.ErrorContext(ctx, "an agent changed the conversation that it had inherited", "session_id", in.sessionID, "error", err)
			return
		}
		c.failed(true)
		c.logger.WarnContext(ctx, "the conversation could not be archived", "session_id", in.sessionID, "error", err)
	}
	watching, stop := context.WithCancel(ctx)
	var idle sync.WaitGroup
	idle.Go(func() { transcripts.Watch(watching, saveInterval, save, failed) })
	return func(limit time.Duration) bool {
		stop()
		idle.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err := save(last)
		if err != nil {
			failed(err)
		}
		return err == nil
	}, nil
}
