package cell

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// Scratch has directories of its own, for programs that are no agent and run with the agents' user.
type Scratch struct {
	*Host

	own *private
}

// Program is a program that the supervisor runs like a command of an agent of Tier 1, without the guard: in the
// sandbox, with the environment, the user and a home of agents. No variable of the model's providers is in its
// environment.
type Program struct {
	// Path is the executable.
	Path string
	Args []string
	// Dir is the working directory; empty for Scratch.Temporary.
	Dir string
	// Env holds further variables. Passed names programs whose variables of the operator it gets, as the policy says.
	Env    map[string]string
	Passed []string
	// Sealed programs can execute what an agent has written. They get nothing of the operator or of agents and, unless
	// the policy grants it, no network; they can write temporary files only. On a host without the sandbox, they do not
	// run.
	Sealed bool
	// Limits limit the processes of a program together.
	Limits claude.ScriptLimits
	// Readable and Writable are further paths for the sandbox. Their links are resolved; what is missing is left out.
	Readable, Writable []string
	// Executables lists what the program may execute; nil for no limit.
	Executables *guard.Executables

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Scratch returns a Scratch with a name that no session and no other Scratch has. The caller must close it.
func (h *Host) Scratch(ctx context.Context, name string) (*Scratch, error) {
	own, err := h.privates.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Scratch{h, own}, nil
}

// Close removes the directories. A failure is logged.
func (s *Scratch) Close(ctx context.Context) { s.free(ctx, s.own) }

// Run runs a program until it and all processes that it has started have ended, and returns its exit code.
func (s *Scratch) Run(ctx context.Context, program Program) (code int, err error) {
	if program.Dir == "" {
		program.Dir = s.own.temporary.path
	}
	script := claude.Script{
		Shell: program.Path, Args: program.Args, Dir: program.Dir, Keyless: true, Limits: program.Limits,
		Stdin: program.Stdin, Stdout: program.Stdout, Stderr: program.Stderr,
	}
	if program.Sealed {
		home := filepath.Join(s.own.temporary.path, homeName)
		if err := claude.AsUser(s.own.user, func() error { return os.MkdirAll(home, 0o700) }); err != nil {
			return 0, err
		}
		script.Cell, script.Sandbox = true, s.sandboxes.sealed(s.own.home)
		script.Env = map[string]string{"HOME": home, "TMPDIR": s.own.temporary.path}
		script.Sandbox.Writable = []string{s.own.temporary.path}
	} else {
		script.Env = s.own.variables()
		if script.Sandbox, _ = s.sandboxes.of(observe, program.Dir, nil); script.Sandbox != nil {
			s.own.grant(script.Sandbox)
		}
	}
	maps.Copy(script.Env, program.Env)
	maps.Copy(script.Env, s.passedTo(program.Passed))
	if sandbox := script.Sandbox; sandbox != nil {
		// the program can be in a home
		sandbox.Readable = append(sandbox.Readable, resolved(append(program.Readable, program.Path)...)...)
		sandbox.Writable = append(sandbox.Writable, resolved(program.Writable...)...)
		sandbox.Executable = nil
		if program.Executables != nil {
			sandbox.Executable = except(program.Executables.All(), sandbox.Writable)
		}
	}
	return claude.RunScript(ctx, s.driver, script)
}

// passedTo returns the passed variables of certain programs.
func (h *Host) passedTo(programs []string) map[string]string {
	variables := map[string]string{}
	for _, variable := range claude.Passed(h.driver) {
		name, value, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(programs, func(program string) bool {
			return guard.MatchesAny(h.guards.policy.VariablesOf(program), name)
		}) {
			variables[name] = value
		}
	}
	return variables
}
