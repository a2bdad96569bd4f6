package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/filelock"
)

const (
	// gitLimit limits one command of git. It is enough for the checkout of a large repository.
	gitLimit = 5 * time.Minute
	// gitGrace is the time that git has to clean up when it is stopped.
	gitGrace = 2 * time.Second
	// maxOutput and maxMessage limit the length of git's output and of error messages, in bytes. The rest is dropped.
	maxOutput, maxMessage = 64 << 10, 500
)

// The author line of commits that the supervisor makes. Agents' commits have it, too, if nothing else names an author.
const (
	AuthorName    = "claudeops"
	AuthorAddress = "claudeops@localhost"
)

// git runs git.
type git struct {
	path    string
	options Options
	// executables lists what git may execute in its sandbox: itself, and its own commands. So no filter of a repository
	// inside of a worktree runs, whose configuration nobody has checked.
	executables []string
}

// newGit finds git; its path is empty if there is none.
func newGit(options Options) git {
	search := filepath.SplitList(options.SearchPath)
	g := git{path: guard.Host{}.LookPath("git", search), options: options}
	if !filepath.IsAbs(g.path) {
		g.path = ""
		return g
	}
	programs := binfmt.Programs{Search: search}
	g.executables = programs.With(g.path)
	ctx, cancel := context.WithTimeout(context.Background(), gitLimit)
	defer cancel()
	commands := limited{most: maxLink}
	_, err := process.Run(ctx, process.Spec{
		Path: g.path, Args: []string{"--exec-path"}, Env: g.environment("/"), Stdout: &commands, Grace: gitGrace,
		Containment: options.Containment,
	})
	if dir, linkErr := filepath.EvalSymlinks(strings.TrimSpace(string(commands.kept))); err == nil && linkErr == nil {
		g.executables = append(g.executables, dir)
	}
	return g
}

// settings returns settings for git and for the programs that git starts. They override the settings of the
// repository. One effect is that Git LFS leaves its pointers in place of large files. Otherwise the filters of Git
// LFS would contact a server that the repository names.
func (g git) settings(top string) []string {
	settings := []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.commitGraph=false",
		"safe.bareRepository=explicit", "protocol.allow=never",
		"filter.lfs.smudge=", "filter.lfs.clean=", "filter.lfs.process=", "filter.lfs.required=false",
		"user.name=" + AuthorName, "user.email=" + AuthorAddress,
		"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "advice.detachedHead=false",
		"status.showUntrackedFiles=normal", // otherwise git removes a worktree although it has new files
	}
	if g.options.User != nil {
		// Git refuses a repository that belongs to another user. The operator chose this directory for agents, so allow
		// it.
		settings = append(settings, "safe.directory="+top)
	}
	var args []string
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// environment returns the whole environment of git. With this environment git ignores the configuration of the user and
// of the system, and never asks for a password. It shows objects as they are pushed, not those that refs/replace names
// instead.
func (g git) environment(ceiling string) []string {
	return []string{
		"PATH=" + g.options.SearchPath, "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CEILING_DIRECTORIES=" + ceiling,
	}
}

// failedError says that git has failed.
type failedError struct{ command, message string }

func (e *failedError) Error() string { return fmt.Sprintf("git %s: %s", e.command, e.message) }

// in runs git in the working directory of a repository, where it writes nothing. It returns the output without the last
// line break.
func (g git) in(ctx context.Context, r repository, args ...string) (string, error) {
	return g.run(ctx, where{repository: r}, args)
}

// atMost is like at, with a limit for the output in bytes. It reports whether it has cut the output.
func (g git) atMost(
	ctx context.Context, tree *Worktree, most int, args ...string,
) (output string, cut bool, err error) {
	stdout := limited{most: most + 1}
	err = g.write(ctx, inTree(tree), args, nil, &stdout)
	cut = len(stdout.kept) > most
	return string(stdout.kept[:min(len(stdout.kept), most)]), cut, err
}

// where says where git runs: in the working directory of a repository or, if tree is not nil, in a worktree.
type where struct {
	repository repository
	tree       *Worktree
	// index is the file of the index; empty for the one that the agent uses, too.
	index string
	// writable lists what git writes. Git follows links that agents have made in a repository, so its sandbox permits
	// nothing else.
	writable []string
}

// inTree returns the place of a worktree, in which git writes nothing.
func inTree(tree *Worktree) where { return where{repository: tree.repository, tree: tree} }

// directories returns the options of git that name the directories of a worktree. Agents could change the result if git
// searched for the directories.
func (w where) directories() []string {
	if w.tree == nil {
		return nil
	}
	return []string{"--git-dir=" + w.tree.Guarded.GitDir, "--work-tree=" + w.tree.Guarded.Top}
}

// sandbox returns the sandbox of git; nil if there is none.
func (g git) sandbox(at where) *process.Sandbox {
	if g.options.Sandbox == nil {
		return nil
	}
	sandbox := *g.options.Sandbox
	sandbox.Readable = append(slices.Clip(sandbox.Readable), at.repository.top, at.repository.dir)
	if at.tree != nil {
		sandbox.Readable = append(sandbox.Readable, at.tree.Readable()...)
	}
	sandbox.Readable = append(sandbox.Readable, g.executables...)
	sandbox.Writable, sandbox.Executable = at.writable, g.executables
	return &sandbox
}

// at runs git in a worktree.
func (g git) at(ctx context.Context, tree *Worktree, args ...string) (string, error) {
	return g.run(ctx, inTree(tree), args)
}

func (g git) run(ctx context.Context, at where, args []string) (string, error) {
	stdout := limited{most: maxOutput}
	err := g.write(ctx, at, args, nil, &stdout)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(stdout.kept), "\n"), nil
}

// alone runs git while no other process of this package does so in the repository. Git does not expect that two of its
// commands make, remove or search worktrees at once: it fails if it finds one that another is making.
func (g git) alone(ctx context.Context, at where, args []string) error {
	file := lockFile(g.options, at.repository.dir) + ".worktrees"
	held, err := filelock.Create(file)
	if errors.Is(err, filelock.ErrHeld) {
		held, err = filelock.Wait(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("lock the worktrees of %s: %w", at.repository.top, err)
	}
	_, err = g.run(ctx, at, args)
	return errors.Join(err, held.Close())
}

// write runs git with the input stdin, and writes its output to stdout. If stdin is nil, the input is empty.
func (g git) write(ctx context.Context, at where, args []string, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	top := at.repository.top
	stderr := limited{most: maxMessage}
	environment := g.environment(filepath.Dir(top))
	if at.index != "" {
		environment = append(environment, "GIT_INDEX_FILE="+at.index)
	}
	exit, err := process.Run(ctx, process.Spec{
		Path: g.path, Args: slices.Concat(at.directories(), g.settings(top), args), Env: environment, Dir: top,
		Stdin: stdin, Stdout: stdout, Stderr: &stderr, Grace: gitGrace, Containment: g.options.Containment,
		User: g.options.User, Sandbox: g.sandbox(at),
	})
	switch {
	case err != nil:
		return fmt.Errorf("git %s: %w", args[0], err)
	case exit.StoppedBy != nil:
		return fmt.Errorf("git %s was stopped: %w", args[0], exit.StoppedBy)
	case exit.Code != 0:
		message := strings.Join(strings.Fields(string(stderr.kept)), " ")
		if message == "" {
			message = exit.String()
		}
		return &failedError{args[0], message}
	}
	return nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	kept []byte
	most int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), l.most-len(l.kept))]...)
	return len(p), nil
}
