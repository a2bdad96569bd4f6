package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const sqliteScheme = "sqlite"

// fileURL spells path as CLAUDEOPS_DATABASE_URL does.
func fileURL(path string) string {
	return (&url.URL{Scheme: sqliteScheme, Path: path}).String()
}

// DatabaseFile returns the path of the SQLite database that s names, or "" if DatabaseURL is
// not the plain URL of a file, which Load does not let through.
func (s State) DatabaseFile() string {
	parsed, err := url.Parse(s.DatabaseURL)
	if err != nil || !filepath.IsAbs(parsed.Path) || parsed.Path == "/" {
		return ""
	}
	if *parsed != (url.URL{Scheme: sqliteScheme, Path: parsed.Path, RawPath: parsed.RawPath}) {
		return "" // a host, a user, parameters: they would be ignored without a word
	}
	return parsed.Path
}

// stateDir is the directory for Claude Ops below the user's one for state, or "" if there
// is none. A relative XDG_STATE_HOME does not count, as the XDG specification demands.
func (s surroundings) stateDir() string {
	switch {
	case filepath.IsAbs(s.xdgState):
		return filepath.Join(s.xdgState, "claudeops")
	case filepath.IsAbs(s.home):
		return filepath.Join(s.home, ".local", "state", "claudeops")
	default:
		return ""
	}
}

// absolute cleans path, and expands a leading ~/, which no shell does in an environment file. It
// refuses a relative path: to programs that start in different directories it means different
// places, and they would keep records of their own. Its errors complete "it must".
func (s surroundings) absolute(path string) (string, error) {
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

// contains reports whether path is dir or lies below it. Both are absolute.
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

// AgentsDir returns the directory that holds those in which agents write: the state directory, or one beside it
// where agents run as another user, because that one has no access to the worker's own.
func (c Config) AgentsDir() string {
	if c.Claude.AgentUser == "" || c.State.Dir == "" {
		return c.State.Dir
	}
	return c.State.Dir + "-agents"
}

// MakeDirs creates the directories that Claude Ops owns, for their owner only, and makes
// sure that it can write there. Its error joins one sentence for each that it cannot use.
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
	if archive := c.State.TranscriptsDir(); archive != "" {
		dirs = append(dirs, ownDir{archive, "TRANSCRIPTS", nil})
	}
	var failures []error
	for _, dir := range dirs {
		if err := dir.make(); err != nil {
			failures = append(failures, fmt.Errorf(
				"directory %s cannot be used: %w; make it writable, or set %s%s to another", dir.path, err, Prefix, dir.setting))
		}
	}
	return errors.Join(failures...)
}

// ownDir is a directory of ours, the setting that moves it elsewhere, and what sets its owner and mode; nil leaves it
// to this process's user.
type ownDir struct {
	path, setting string
	hand          func(path string) error
}

// make creates the directory if it is missing.
func (d ownDir) make() error {
	err := makeWritable(d.path)
	if err == nil && d.hand != nil {
		err = d.hand(d.path)
	}
	return err
}

// passThrough lets every user pass through a directory, and nobody else read it.
func passThrough(path string) error {
	return os.Chmod(path, 0o711) //nolint:gosec // what is in it has modes of its own
}

// own makes the account the owner of a directory; with a nil account it stays as it is.
func (a *Account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.UID, a.GID)
}

// makeWritable creates dir if it is missing, and writes and removes a file in it: modes
// alone tell nothing about a read-only or full file system.
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
