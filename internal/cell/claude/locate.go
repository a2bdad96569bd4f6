package claude

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// askTimeout limits the time for `claude --version`. It took a fraction of a second when measured. On a slow disk it
// takes longer, because more than 200 MB must sometimes be read.
const askTimeout = 60 * time.Second

// CLI is an installed `claude` of a known version. It is immutable, so several goroutines can use it at once.
type CLI struct {
	path    string
	version version
	profile versionProfile
	options Options
	bounds  bounds
}

// Locate finds the executable, asks it for its version and chooses the profile of that version. An untested version
// gets the profile of the nearest tested version, and Warning then returns a text about the version. A version that
// lacks options of an invocation is an error. The error is an *Error of KindNotStarted or KindInvalid.
func Locate(ctx context.Context, options Options) (*CLI, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	path, err := lookUp(options.Path, lookupVariable(options.Environ, "PATH"))
	if err != nil {
		return nil, err
	}
	cli := &CLI{path: path, options: options, bounds: defaultBounds()}
	if cli.version, err = cli.askVersion(ctx); err != nil {
		return nil, err
	}
	cli.profile = profileOf(cli.version)
	if cli.version.compare(earliest) < 0 {
		return nil, notStarted("claude %s at %s is too old: update it to %s, the newest version that was tested "+
			"(npm install -g @anthropic-ai/claude-code@%[3]s)", cli.version, cli.path, NewestTested())
	}
	return cli, nil
}

// Path returns the executable's absolute path.
func (c *CLI) Path() string { return c.path }

// Version returns the version as `claude --version` printed it, such as "2.1.332".
func (c *CLI) Version() string { return c.version.String() }

// Warning returns a sentence if the version is untested. It returns "" for a measured version, and for a version
// between two measured versions of the same profile.
func (c *CLI) Warning() string { return c.profile.warning(c.version) }

// NewestTested returns the newest version of the CLI that was tested.
func NewestTested() string { return newestProfile().newest().String() }

// askVersion runs `claude --version`.
func (c *CLI) askVersion(ctx context.Context) (version, error) {
	printed, err := c.ask(ctx, "--version")
	if err != nil {
		return version{}, err
	}
	found, err := parseVersion(printed)
	if err != nil {
		return version{}, notStarted("%s does not look like the Claude Code CLI: %w", c.path, err)
	}
	return found, nil
}

// ask runs the CLI with one flag that makes it print a text and exit, such as --version. It returns the text.
func (c *CLI) ask(ctx context.Context, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var stdout bytes.Buffer
	stderr := tailWriter{limit: maxStderrBytes}
	environ := c.environment(Invocation{})
	dir := ""
	if c.options.User != nil { // another user possibly has no access to this process's directory
		dir = "/"
	}
	exit, err := process.Run(ctx, process.Spec{
		Dir:    dir,
		Path:   c.path,
		Args:   []string{flag},
		Env:    environ,
		Stdout: &stdout,
		Stderr: &stderr,

		Containment: c.options.Containment,
		User:        c.options.User,
	})
	if err != nil {
		return "", notStarted("cannot run %s %s: %w", c.path, flag, err)
	}
	said := oneLine(c.masking(environ).Text(string(stderr.kept)), maxMessageRunes)
	if said != "" {
		said = ": " + said
	}
	if exit.StoppedBy != nil {
		return "", notStarted("%s %s did not finish: %w%s", c.path, flag, exit.StoppedBy, said)
	}
	if exit.Code != 0 {
		return "", notStarted("%s %s failed: %s; is it the Claude Code CLI?%s", c.path, flag, exit, said)
	}
	return stdout.String(), nil
}

// lookUp returns the absolute path of an executable file. The argument name is a path, or the name of a file in one of
// the directories of searchPath.
func lookUp(name, searchPath string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		path, err := filepath.Abs(name)
		if err != nil {
			return "", notStarted("cannot resolve the path %s: %w", name, err)
		}
		return path, executable(path)
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	return "", notStarted("no executable called %s on the PATH; install the Claude Code CLI, or set CLAUDEOPS_CLAUDE "+
		"to its path", name)
}

// executable returns nil if path is a file that can be executed.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return notStarted("cannot use %s as the Claude Code CLI: %w", path, err)
	case info.IsDir():
		return notStarted("cannot use %s as the Claude Code CLI: it is a directory", path)
	case info.Mode().Perm()&0o111 == 0:
		return notStarted("cannot use %s as the Claude Code CLI: it is not executable; chmod +x it", path)
	}
	return nil
}

// notStarted returns an error of KindNotStarted. It takes the same arguments as fmt.Errorf; a %w sets the cause.
func notStarted(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: KindNotStarted, Message: err.Error(), ExitCode: -1, Err: err}
}
