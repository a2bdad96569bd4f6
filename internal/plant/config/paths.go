package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stateDir returns Claude Ops' directory below the user's state directory; "" if the user has no state directory. A
// relative XDG_STATE_HOME is ignored, as the XDG specification requires.
func (s foreignVariables) stateDir() string {
	switch {
	case filepath.IsAbs(s.xdgState):
		return filepath.Join(s.xdgState, "claudeops")
	case s.mayChangeUser && filepath.Clean(s.home) == "/root":
		return "/var/lib/claudeops" // the agents' user cannot pass through root's home
	case filepath.IsAbs(s.home):
		return filepath.Join(s.home, ".local", "state", "claudeops")
	default:
		return ""
	}
}

// absolute checks that path is absolute, and cleans it with filepath.Clean. It expands a leading ~/, because no shell
// does so in an environment file. It rejects a relative path, because programs that start in different directories
// would resolve it differently and keep separate records. The text of its error continues the phrase "it must ...".
func (s foreignVariables) absolute(path string) (string, error) {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		if !filepath.IsAbs(s.home) {
			return "", errors.New("not begin with ~, because HOME is not an absolute path")
		}
		path = filepath.Join(s.home, rest)
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("be an absolute path")
	}
	return filepath.Clean(path), nil
}

// contains reports whether path is dir or lies below it. Both paths must be absolute.
func contains(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// AgentsDir returns the parent of the directories in which agents write. Normally this is the state directory. Agents
// that run as another user cannot access the state directory, so their AgentsDir is a directory beside it.
func (c Config) AgentsDir() string {
	if !c.Claude.HasAgentUser() || c.State.Dir == "" {
		return c.State.Dir
	}
	return c.State.Dir + "-agents"
}

// ScratchDir returns the default of WORK_DIR. Several agents are permitted to work there at the same time, because
// nobody needs the content.
func (c Config) ScratchDir() string { return filepath.Join(c.AgentsDir(), "work") }

// ConversationsDir returns the directory of the worker's copies of conversations, where no agent can read.
func (c Config) ConversationsDir() string { return filepath.Join(c.State.Dir, "conversations") }

// WorktreesDir returns the directory of the git worktrees in which agents repair.
func (c Config) WorktreesDir() string { return filepath.Join(c.AgentsDir(), "worktrees") }

// MakeDirs creates Claude Ops' own directories and checks that they are writable. Other users cannot list a new
// directory. The error joins one sentence for each setting whose directories are unusable.
func (c Config) MakeDirs() error {
	dirs := []ownDir{{c.State.Dir, "STATE_DIR", nil}}
	if c.Claude.Account != nil {
		dirs = append(dirs, ownDir{c.AgentsDir(), "STATE_DIR", passThrough})
	}
	if !c.given[Prefix+"WORK_DIR"] {
		dirs = append(dirs, ownDir{c.Claude.WorkDir, "STATE_DIR", c.Claude.Account.own})
	}
	if !c.given[Prefix+"CLAUDE_CONFIG_DIR"] {
		dirs = append(dirs, ownDir{c.Claude.ConfigDir, "STATE_DIR", c.Claude.Account.own})
	}
	if c.Claude.Worktrees == WorktreesAuto {
		dirs = append(dirs, ownDir{c.WorktreesDir(), "STATE_DIR", c.Claude.Account.own})
	}
	if archive := c.State.TranscriptsDir(); archive != "" {
		dirs = append(dirs, ownDir{archive, "TRANSCRIPTS", nil})
	}
	var failures []error
	said := map[string]bool{}
	for _, dir := range dirs {
		if err := dir.make(); err != nil && !said[dir.setting] {
			said[dir.setting] = true
			// By default the archive lies beside the state directory, and fails with it.
			said["TRANSCRIPTS"] = said["TRANSCRIPTS"] || !c.given[Prefix+"TRANSCRIPTS"]
			failures = append(failures, fmt.Errorf(
				"directory %s cannot be used: %w; make it writable, or set %s%s to another", dir.path, err, Prefix,
				dir.setting))
		}
	}
	return errors.Join(failures...)
}

// ownDir is one of Claude Ops' own directories. The field setting is the name of the setting with its path. The field
// hand is a function that sets the owner and mode of the directory. If hand is nil, the owner and mode do not change.
type ownDir struct {
	path, setting string
	hand          func(path string) error
}

// make creates the directory if it is missing, and checks that the directory is writable. Then it calls hand.
func (d ownDir) make() error {
	err := makeWritable(d.path)
	if err == nil && d.hand != nil {
		err = d.hand(d.path)
	}
	return err
}

// passThrough lets other users traverse a directory, but not list the entries.
func passThrough(path string) error {
	return os.Chmod(path, 0o711) //nolint:gosec // the entries have modes of their own
}

// own makes the account the owner of a directory. If the account is nil, own changes nothing.
func (a *Account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.UID, a.GID)
}

// makeWritable creates dir if it is missing. Then it writes and removes a file in dir, because the mode does not show
// whether the file system is read-only or full.
func makeWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	_, writeErr := probe.WriteString("x")
	return errors.Join(writeErr, probe.Close(), os.Remove(probe.Name()))
}
