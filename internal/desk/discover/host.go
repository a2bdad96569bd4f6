package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// programLimit limits the time of one program, and programGrace the time to end when it is stopped.
	programLimit, programGrace = 3 * time.Second, 300 * time.Millisecond
	// maxOutput and maxMessage limit a program's output and its messages in bytes. The rest is dropped.
	maxOutput, maxMessage = 1 << 20, 300
)

// Host gives the finders access to a machine.
type Host struct {
	// Files is the file system, from the root directory on.
	Files    fs.FS
	Environ  []string
	Hostname string
	UID      int
	// Run runs a program by its name and returns its output. It returns an error that wraps ErrMissing if there is no
	// such program.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// ErrMissing is the error of Host.Run if a program is not installed.
var ErrMissing = errors.New("the program is not installed")

// ThisHost returns the machine on which this process runs.
func ThisHost(environ []string) Host {
	name, _ := os.Hostname() // the description can do without
	h := Host{Files: os.DirFS("/"), Environ: environ, Hostname: name, UID: os.Geteuid()}
	h.Run = h.run
	return h
}

// run runs a program of PATH, which it finds as the guard finds those of agents.
func (h Host) run(ctx context.Context, name string, args ...string) (string, error) {
	dirs := slices.DeleteFunc(filepath.SplitList(h.variable("PATH")),
		func(dir string) bool { return !filepath.IsAbs(dir) })
	path := guard.Host{}.LookPath(name, dirs)
	if path == "" {
		return "", ErrMissing
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	stdout, stderr := limited{most: maxOutput}, limited{most: maxMessage}
	exit, err := process.Run(ctx, process.Spec{
		Path: path, Args: args, Env: append(slices.Clone(h.Environ), "LC_ALL=C"), Dir: "/",
		Stdout: &stdout, Stderr: &stderr, Grace: programGrace,
	})
	switch {
	case err != nil:
		return "", err
	case exit.StoppedBy != nil:
		return "", exit.StoppedBy
	case exit.Code != 0:
		return "", fmt.Errorf("%s: %s", name, oneLine(stderr.kept.String()+" ("+exit.String()+")"))
	}
	return stdout.kept.String(), nil
}

// variable returns the value of a variable; "" if it is not set.
func (h Host) variable(name string) (value string) {
	for _, entry := range h.Environ {
		if rest, is := strings.CutPrefix(entry, name+"="); is {
			value = rest
		}
	}
	return value
}

// home returns the home directory without its leading slash, as Files names it; "" if there is none.
func (h Host) home() string {
	home := h.variable("HOME")
	if !filepath.IsAbs(home) || filepath.Clean(home) == "/" {
		return ""
	}
	return filepath.Clean(home)[1:]
}

// limited keeps the first bytes that are written to it.
type limited struct {
	kept bytes.Buffer
	most int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept.Write(p[:min(len(p), l.most-l.kept.Len())])
	return len(p), nil
}

// usable reports whether a name or a path from elsewhere can be shown and written: one printable line of a bounded
// length.
func usable(name string) bool {
	return name != "" && len(name) <= maxName && plaintext.IsLine(name) && strings.TrimSpace(name) == name
}

// oneLine makes a message safe to show.
func oneLine(text string) string { return plaintext.Cut(plaintext.Compact(text), maxName) }
