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

// MakeDirs creates the directories that Claude Ops owns, for their owner only, and makes
// sure that it can write there. Its error joins one sentence for each that it cannot use.
func (c Config) MakeDirs() error {
	dirs := []ownDir{{c.State.Dir, "STATE_DIR"}}
	if !c.given[Prefix+"WORK_DIR"] {
		dirs = append(dirs, ownDir{c.Claude.WorkDir, "STATE_DIR"})
	}
	if !c.given[Prefix+"CLAUDE_CONFIG_DIR"] {
		dirs = append(dirs, ownDir{c.Claude.ConfigDir, "STATE_DIR"})
	}
	if archive := c.State.TranscriptsDir(); archive != "" {
		dirs = append(dirs, ownDir{archive, "TRANSCRIPTS"})
	}
	var failures []error
	for _, dir := range dirs {
		if err := makeWritable(dir.path); err != nil {
			failures = append(failures, fmt.Errorf(
				"directory %s cannot be used: %w; make it writable, or set %s%s to another", dir.path, err, Prefix, dir.setting))
		}
	}
	return errors.Join(failures...)
}

// ownDir is a directory of ours, and the setting that moves it elsewhere.
type ownDir struct{ path, setting string }

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
