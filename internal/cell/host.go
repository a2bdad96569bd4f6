package cell

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/redact"
)

// Options configure a Host. Policy, Place, ConfigDir, Sessions, Conversations and Logger are required, and CLI for
// Host.Run.
type Options struct {
	// CLI starts claude. Driver holds the options with which it was located: they also apply to programs that are no
	// agent.
	CLI    *claude.CLI
	Driver claude.Options
	// Policy decides on the calls of agents, and on their sandboxes.
	Policy *guard.Policy
	// Place describes the execution environment of a session's calls for the guard. It gets the session's working
	// directory, the variables that only this session has, and the files that the agent is asked to write (asked).
	Place func(directory string, variables map[string]string, asked []string) (guard.Place, error)
	// Executable is the program that the CLI runs to ask whether a call is allowed. Its main package must import this
	// one. If Executable is empty, this process's own program is used.
	Executable string

	// Sessions is the directory in which each session gets a directory of its own. Agents must be able to pass through
	// those above.
	Sessions string
	// Conversations is the directory of the host's copies of conversations, in which no agent can read.
	Conversations string
	// Archive keeps conversations elsewhere; nil for nowhere.
	Archive Archive
	// ConfigDir is the CLI's directory. Files in its subdirectory home are linked into the home of each session. If
	// Login is set, it holds a login that all sessions share, with the HOME of Driver.Environ.
	ConfigDir string
	Login     bool

	// Sandbox says whether agents of Tiers 1 and 2 need the kernel's sandbox. Hidden are paths that it hides, beside
	// those of other users and sessions. If one of Directories, in which agents work, is in a home, only the keys in
	// that home are hidden.
	Sandbox     Sandbox
	Hidden      []string
	Directories []string
	// Closed are directories of the supervisor that only its user may open, with their files. An agent with the same
	// user can change their permissions; while agents run, the Host changes them back. Of ClosedTree only the directory
	// itself is looked at.
	Closed     []string
	ClosedTree string
	// SessionBytes is the space that a session may use for its own files; 0 for no limit. On the disk of Reserve, a
	// directory, some space is held back, and sessions get less when that disk is full; empty for no reserve.
	SessionBytes int64
	Reserve      string
	// Limits are the time limits of each run. Spec.Timeout is its Wall.
	Limits claude.Limits
	// Stopping ends when the supervisor stops; then the last save of a conversation gets HurriedSave instead of 30
	// seconds. It may be nil.
	Stopping context.Context

	// Mask masks secrets in the files that agents leave; nil for a mask of the secrets in Driver.Environ.
	Mask   *redact.Redactor
	Logger *slog.Logger
}

// Archive keeps conversations beyond the host.
type Archive interface {
	// Saver returns a function that saves the file at path, which the Host replaces while the session runs.
	Saver(sessionID, path string) (save func(ctx context.Context) error, err error)
	// Failed is called when a conversation could not be read or saved.
	Failed()
	// Remove removes a conversation that must not be resumed.
	Remove(ctx context.Context, sessionID string) error
}

// HurriedSave limits the time for the save at the end of a run when the supervisor stops.
const HurriedSave = 5 * time.Second

// Host runs agents on this host. Several processes can run agents with the same directories.
type Host struct {
	cli           *claude.CLI
	driver        claude.Options
	limits        claude.Limits
	sessionBytes  int64
	keys          keys
	reserve       *reserve
	conversations conversations
	privates      privates
	sandboxes     sandboxes
	guards        *guards
	modes         modes
	mask          *redact.Redactor
	stopping      context.Context
	logger        *slog.Logger
	// guessed holds the models without a known price that were logged.
	guessed sync.Map
}

// Open returns a Host, and removes what sessions have left whose process died. The caller must close the Host.
func Open(ctx context.Context, options Options) (_ *Host, err error) {
	h := &Host{
		cli: options.CLI, driver: options.Driver, limits: options.Limits, sessionBytes: options.SessionBytes,
		modes: newModes(options), mask: cmp.Or(options.Mask, redact.New(options.Driver.Environ)),
		stopping: options.Stopping, logger: options.Logger,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if h.keys, err = openKeys(ctx, options); err != nil {
		return nil, err
	}
	if h.guards, err = newGuards(options); err != nil {
		return nil, err
	}
	h.sandboxes = newSandboxes(options, h.guards.sockets.path)
	if h.privates, err = newPrivates(options); err != nil {
		return nil, err
	}
	if h.conversations, err = newConversations(options); err != nil {
		return nil, err
	}
	h.reclaimAll(ctx)
	if options.Reserve != "" {
		h.reserve = openReserve(options.Reserve, options.Logger)
	}
	return h, nil
}

// Close revokes the agents' keys. After that the guard answers no more calls. All runs must have ended, or end soon.
func (h *Host) Close() error {
	h.reserve.close()
	return errors.Join(h.guards.close(), h.keys.close())
}
