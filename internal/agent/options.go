package agent

import (
	"time"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/transcripts"
)

// Options configure a Runner.
type Options struct {
	// Cell says how agents run on this host. The Runner sets its Archive and Stopping.
	Cell cell.Options
	// Catalog holds the canonical names of services; nil if the operator has described none.
	Catalog *escalation.Catalog
	// Archive holds the transcripts of all conversations.
	Archive *transcripts.Archive
	Records Records

	// WorkDir is the working directory of sessions that name none, and Repositories are those that they may name. In
	// Scratch several sessions can repair at once.
	WorkDir      string
	Repositories []string
	Scratch      string
	// Locks is the directory for the locks of working directories. Worktrees is that of the git worktrees; empty for
	// none.
	Locks, Worktrees string
	// Reviewed reports that each commit must be reviewed, so that only sessions with a worktree may commit.
	Reviewed bool
	// Environment is the operator's text about the infrastructure, for each system prompt.
	Environment string

	// CheckLimit limits the time of all checks of a repository together; 0 for five minutes.
	CheckLimit time.Duration
	// ArchiveFailed is called after a failed operation on the archive; nil for no call. If save is true, a conversation
	// could not be saved. Otherwise a conversation could not be restored.
	ArchiveFailed func(save bool)
}
