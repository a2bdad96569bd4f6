package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/transcripts"
)

// conversationTimeout limits the time for reading a conversation from the archive.
const conversationTimeout = 20 * time.Second

// transcript returns what a session has added to its conversation. The argument parent is the session that it
// continues; nil if there is none.
func (b *backend) transcript(ctx context.Context, session escalation.Session, parent *escalation.Session) Transcript {
	ctx, cancel := context.WithTimeout(ctx, conversationTimeout)
	defer cancel()
	shown := newShownTranscript(b.mask)
	if err := b.readTranscript(ctx, session, parent, shown); err != nil {
		shown.Problem = line(b.mask.Text(err.Error()), maxError)
	}
	read := shown.finish()
	shareCost(read.Models, session.CostUSD)
	return read
}

func (b *backend) readTranscript(
	ctx context.Context, session escalation.Session, parent *escalation.Session, shown *shownTranscript,
) error {
	cfg, err := b.config()
	if err != nil {
		return err
	}
	archive, err := supervisor.OpenArchive(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // nothing was written
	reader, err := newTranscriptReader(cfg, archive)
	if err != nil {
		return err
	}
	defer reader.close()
	if parent != nil && session.Continuity == escalation.ContinuityResume && parent.SessionID != session.SessionID {
		_, err := reader.read(ctx, parent.SessionID,
			func(message claude.TranscriptMessage) { shown.inherits(message.UUID) })
		if err != nil {
			// A fork keeps the times of the messages that it takes over.
			shown.inheritsBefore(session.StartedAt)
			shown.Problem = "The conversation of the parent cannot be read. What was inherited is told by the times " +
				"of messages."
		}
	}
	shown.Unreadable, err = reader.read(ctx, session.SessionID, shown.add)
	return err
}

// transcriptReader reads conversations in a directory of its own, and changes neither the worker's copies nor the
// archive.
type transcriptReader struct {
	config  config.Config
	archive *transcripts.Archive
	dir     string
}

// readingPrefix begins the names of the directories in which conversations are read. They are below the state
// directory, which no agent can read.
const readingPrefix = ".reading-"

func newTranscriptReader(cfg config.Config, archive *transcripts.Archive) (*transcriptReader, error) {
	if err := os.MkdirAll(cfg.State.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	removeLeftovers(cfg.State.Dir)
	dir, err := os.MkdirTemp(cfg.State.Dir, readingPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for reading a conversation: %w", err)
	}
	return &transcriptReader{cfg, archive, dir}, nil
}

// removeLeftovers removes directories that killed processes have left.
func removeLeftovers(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, readingPrefix+"*")) // the pattern is valid
	for _, old := range found {
		if info, err := os.Stat(old); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(old) // it only wastes space
		}
	}
}

func (r *transcriptReader) close() { _ = os.RemoveAll(r.dir) } // it only wastes space

// read calls the function each with every message of a conversation, in its newest copy: that of this host, or that of
// the archive. It returns how many lines cannot be read.
func (r *transcriptReader) read(
	ctx context.Context, sessionID string, each func(claude.TranscriptMessage),
) (unreadable int, err error) {
	if _, err := uuid.Parse(sessionID); err != nil {
		return 0, errors.New("the session has no conversation that could be archived")
	}
	path := filepath.Join(r.dir, sessionID+".jsonl")
	if err := link(filepath.Join(r.config.ConversationsDir(), sessionID+".jsonl"), path); err != nil {
		return 0, fmt.Errorf("read this host's copy of the conversation: %w", err)
	}
	newest, err := r.archive.Copy(sessionID, path)
	if err != nil {
		return 0, err
	}
	// Without an archive, and if the archive cannot be read, this host's copy will do.
	if _, err := newest.Restore(ctx); err != nil {
		if _, missing := os.Stat(path); missing != nil {
			return 0, err
		}
	}
	file, err := os.Open(path) //nolint:gosec // made from a UUID and a directory of ours
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return claude.ReadMessages(reading{ctx, file}, each)
}

// link makes the file at path available at another path of the same disk, if it exists. The worker never writes into
// the file: it replaces it.
func link(path, as string) error {
	err := os.Link(path, as)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// reading ends when its context ends.
type reading struct {
	ctx context.Context //nolint:containedctx // an io.Reader has no other way to learn of the end
	io.Reader
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
