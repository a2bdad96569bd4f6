package cell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// guards makes the CLI ask before each tool call of an agent, and answers according to the policy.
type guards struct {
	policy *guard.Policy
	// place describes the execution environment of a session for the guard (see Options.Place).
	place func(directory string, variables map[string]string, asked []string) (guard.Place, error)
	// executable is this program. The CLI starts it to ask about a call.
	executable string
	// sockets is the directory with the sockets of all sessions. shell is a link in it to the executable.
	sockets socketDir
	shell   string
	// names holds the addresses of the supervisor's hosts.
	names  names
	logger *slog.Logger
	// passed lists the variables, as NAME=value, that only certain programs get.
	passed []string
	// confines reports whether the kernel of this host judges the executables, files and connections of agents.
	confines func() bool
}

// ErrAgentUser is the error of a host where the agents' user cannot run the program that guards them.
var ErrAgentUser = errors.New("agents cannot be guarded: this program asks about their calls, and their user cannot " +
	"run it")

// newGuards returns guards with a new directory for the sockets. The method close removes this directory. If the
// agents' user cannot run the executable, newGuards fails.
func newGuards(options Options) (*guards, error) {
	executable := options.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program, which guards the agents' calls: %w", err)
		}
	}
	if user := options.Driver.User; user != nil {
		if err := claude.MayRun(user, executable); err != nil {
			return nil, fmt.Errorf("%w: the user %s cannot %w; put it where every user may run it, such as "+
				"/usr/local/bin", ErrAgentUser, user.Name, err)
		}
	}
	sockets, err := newSocketDir(options.Logger)
	if err != nil {
		return nil, err
	}
	shell, err := InstallShell(sockets.path, executable)
	if err != nil {
		return nil, errors.Join(err, sockets.close())
	}
	return &guards{
		policy: options.Policy, place: options.Place, executable: executable, sockets: sockets, shell: shell,
		logger: options.Logger, passed: claude.Passed(options.Driver),
		confines: sync.OnceValue(func() bool { return confines(options) }),
	}, nil
}

// confines reports whether the kernel judges the executables, files and connections of the programs in a sandbox.
func confines(options Options) bool {
	sandbox := &claude.Sandbox{Opens: &process.Opens{}}
	found, err := claude.ProbeSandbox(context.Background(), options.Driver, sandbox)
	return err == nil && found.ABI > 0 && found.Opens && found.Connects
}

// close removes the directory of the sockets.
func (g *guards) close() error {
	if g == nil {
		return nil
	}
	return g.sockets.close()
}

// watch answers the CLI's questions about the calls of one session.
type watch struct {
	post   *Post
	audit  *callAudit
	logger *slog.Logger
}

// open starts to answer questions about the calls of a session, and changes invocation so that the CLI asks these
// questions. The guard takes into account the files that the agent is asked to write (asked).
func (g *guards) open(ctx context.Context, spec Spec, invocation *claude.Invocation, asked []string) (*watch, error) {
	place, err := g.place(spec.Dir, invocation.Env, asked)
	if err != nil {
		return nil, err
	}
	place.Origin = spec.Origin
	place.Own = slices.Concat(place.Own, []string{g.sockets.path}, resolved(g.sockets.path))
	executables := g.executables(spec.Tier, invocation.Sandbox)
	place.Confined, place.Unheld = executables.HoldTexts() && g.confines(), executables.Unheld()
	visitors := newVisitors(spec.SessionID, g.logger)
	audit := &callAudit{
		supervisor: spec.Supervisor, logger: g.logger, executable: g.executable, known: map[string]bool{},
		session: context.WithoutCancel(ctx),
	}
	post, err := OpenPost(g.sockets.path, guard.New(spec.Policy, guard.Host{}), PostSession{
		ID: spec.SessionID, Tier: spec.Tier, Place: place, Narrowed: len(spec.AllowedTools) > 0,
		Executables: executables, Admit: visitors.admit, Passed: g.passed,
	}, spec.Supervisor, audit.record)
	if err != nil {
		return nil, err
	}
	if invocation.Sandbox != nil {
		opens := fileRules(spec.Policy.FileRules(spec.Tier), invocation.Env, place.Asked,
			func(refused process.Refused) {
				post.Refused(RefusedFile(refused))
			})
		opens.Held = executables.Held()
		opens.HeldRead, opens.HeldWrite = spec.Policy.Reached(spec.Tier, place)
		g.connectionRules(ctx, opens, place, post)
		invocation.Sandbox.Opens, invocation.Sandbox.Judged = opens, place.Confined
	}
	invocation.Guard = &claude.Guard{
		Settings: HookSettings(g.executable), Env: post.Environment(g.executable, g.shell), Started: visitors.begin,
	}
	return &watch{post, audit, g.logger}, nil
}

// fileRules converts the policy's rules for files to those of a sandbox. Nothing is secret in the session's own
// directories, nor are the files that the agent is asked to write.
func fileRules(
	rules guard.FileRules, variables map[string]string, asked []string, refused func(process.Refused),
) *process.Opens {
	opens := &process.Opens{
		Secret: rules.Secret, Kept: rules.Kept, Clear: slices.Concat(packaged(rules.Clear), asked), Keys: rules.Keys,
		Refused: refused,
	}
	for _, name := range []string{"TMPDIR", "CLAUDE_CONFIG_DIR"} {
		if dir := variables[name]; dir != "" {
			opens.Clear = append(opens.Clear, resolved(dir)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules.Programs)) {
		program := rules.Programs[name]
		opens.Programs = append(opens.Programs, process.ProgramOpens{
			Program: name, Read: program.Read,
			Write: program.Write,
		})
	}
	return opens
}

// packaged returns the directories with only those parts of /usr that packages fill: people keep files of their own in
// /usr/local.
func packaged(dirs []string) (filled []string) {
	for _, dir := range dirs {
		if dir != "/usr" {
			filled = append(filled, dir)
			continue
		}
		for _, part := range []string{
			"bin", "games", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin",
			"share", "src",
		} {
			filled = append(filled, filepath.Join(dir, part))
		}
		for _, part := range []string{
			"bin", "games", "go", "include", "lib", "lib64", "libexec", "sbin",
			"share/ca-certificates",
		} {
			// installed toolchains have sources named secret and token
			filled = append(filled, filepath.Join(dir, "local", part))
		}
	}
	return filled
}

// executables returns what each program of a tier may execute; nil if there is no limit. The limit would keep sudo from
// changing the user.
func (g *guards) executables(tier int, sandbox *claude.Sandbox) *guard.Executables {
	if sandbox == nil || sandbox.Setuid {
		return nil
	}
	return g.policy.Executables(tier)
}

// settleLimit limits the time that watch.close takes after the end of a session.
const settleLimit = 10 * time.Second

// close stops answering the CLI's questions, and writes the pending decisions. Then it checks the calls that the CLI
// reports (made). If the CLI was not stopped, byItself is true. The error comes from callAudit.check.
func (w *watch) close(ctx context.Context, made []claude.MadeCall, byItself bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if err := w.post.Close(); err != nil {
		w.logger.WarnContext(ctx, "the guard's socket was not closed", "error", err)
	}
	w.audit.flush(ctx)
	return w.audit.check(made, byItself)
}
