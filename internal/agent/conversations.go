package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/transcripts"
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

// conversations restores the transcripts that runs resume, and archives the transcripts that runs write.
type conversations struct {
	cli     *claude.CLI
	archive *transcripts.Archive
	// failed is called after a failed operation on the archive (see Options.ArchiveFailed).
	failed func(save bool)
	logger *slog.Logger
}

func newConversations(options Options) conversations {
	failed := options.ArchiveFailed
	if failed == nil {
		failed = func(bool) {}
	}
	return conversations{options.CLI, options.Archive, failed, options.Logger}
}

// copyOf returns this host's copy of the transcript of a conversation. The agent of the conversation works in
// directory.
func (c conversations) copyOf(directory, sessionID string) (*transcripts.Copy, error) {
	path, err := c.cli.TranscriptPath(directory, sessionID)
	if err != nil {
		return nil, err
	}
	local, err := c.archive.Copy(sessionID, path)
	if err != nil {
		return nil, err
	}
	local.As(c.cli.AsUser)
	return local, nil
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

// keep archives the conversation of a run every saveInterval, and a last time when the caller calls end. The argument
// of end limits the time for this last save. A failed save is logged and does not end the run.
func (c conversations) keep(ctx context.Context, sessionID string, local *transcripts.Copy) (end func(limit time.Duration)) {
	failed := func(err error) {
		c.failed(true)
		c.logger.WarnContext(ctx, "the conversation could not be archived", "session_id", sessionID, "error", err)
	}
	watching, stop := context.WithCancel(ctx)
	var idle sync.WaitGroup
	idle.Go(func() { local.Watch(watching, saveInterval, failed) })
	return func(limit time.Duration) {
		stop()
		idle.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if _, err := local.Save(last); err != nil {
			failed(err)
		}
	}
}
