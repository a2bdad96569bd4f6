package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/records/transcripts"
)

const (
	// restoreLimit limits the time for the download of a transcript. It is enough for about ten megabytes over a slow
	// line.
	restoreLimit = 2 * time.Minute
	// saveLimit limits the time for the save of a conversation whose process has ended without saving it.
	saveLimit = 30 * time.Second
)

// archive is the archive of conversations as the cell needs it.
type archive struct {
	*transcripts.Archive

	// failed is called after a failed operation on the archive (see Options.ArchiveFailed).
	failed func(save bool)
	logger *slog.Logger
}

var _ cell.Archive = archive{}

func newArchive(options Options) archive {
	failed := options.ArchiveFailed
	if failed == nil {
		failed = func(bool) {}
	}
	return archive{options.Archive, failed, options.Cell.Logger}
}

// Saver implements cell.Archive.
func (a archive) Saver(sessionID, path string) (func(context.Context) error, error) {
	local, err := a.Copy(sessionID, path)
	return func(ctx context.Context) error {
		_, err := local.Save(ctx)
		return err
	}, err
}

// Failed implements cell.Archive.
func (a archive) Failed() { a.failed(true) }

// restore copies a conversation from the archive to path if there is no copy or an older one. Afterwards restore
// reports whether there is a usable copy. A missing or damaged transcript in the archive is not an error; damage is
// logged. An error means that the archive cannot be read now.
func (a archive) restore(ctx context.Context, sessionID, path string) (found bool, err error) {
	local, err := a.Copy(sessionID, path)
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	restored, err := local.Restore(limited)
	switch {
	case errors.Is(err, transcripts.ErrNotFound):
		return false, nil
	case errors.Is(err, transcripts.ErrCorrupt):
		a.failed(false)
		a.logger.ErrorContext(ctx, "an archived conversation cannot be used", "session_id", sessionID, "error", err)
		return false, nil
	case err != nil:
		a.failed(false)
		if ctx.Err() != nil { // the run then ends at once, with the right status
			return false, nil
		}
		return false, err
	}
	for _, damage := range restored.Damaged {
		a.logger.WarnContext(ctx, "an archived conversation was passed over", "session_id", sessionID, "error", damage)
	}
	if restored.SetAside != "" {
		a.logger.WarnContext(ctx, "a conversation went on elsewhere; what this host had was set aside",
			"session_id", sessionID, "file", restored.SetAside)
	}
	if restored.Outcome == transcripts.FromArchive {
		a.logger.InfoContext(ctx, "conversation restored from the archive", "session_id", sessionID)
	}
	return true, nil
}

// saveLeft archives this host's copy of a conversation whose process has ended without doing so, and reports whether
// the archive has all of it. A failure is logged.
func (a archive) saveLeft(ctx context.Context, sessionID, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	save, err := a.Saver(sessionID, path)
	if err == nil {
		err = save(ctx)
	}
	if err != nil {
		a.Failed()
		a.logger.WarnContext(ctx, "the conversation could not be archived", "session_id", sessionID, "error", err)
	}
	return err == nil
}
