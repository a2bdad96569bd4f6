package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/hook"
)

// ExitRefused is the exit code of a script that the guard refuses as a whole, and of a command in it that is refused.
const ExitRefused = 126

// Script is a script that a person runs as an agent of a tier would.
type Script struct {
	Tier      escalation.Tier
	Directory string
	Text      string

	Stdout, Stderr io.Writer
}

// RunScript runs a script as an agent's would run: through the guard, in the tier's sandbox, with an agent's environment. It
// charges and records nothing. It returns the exit code of the script.
func RunScript(ctx context.Context, options Options, script Script) (code int, err error) {
	guards, err := newGuards(options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, guards.close()) }()
	temporary, err := newTempDir(options.Config.Claude.Account)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, temporary.remove()) }()
	variables := map[string]string{"TMPDIR": temporary.path, "CLAUDE_CODE_TMPDIR": temporary.path}
	place, err := options.Place(script.Directory, variables, nil)
	if err != nil {
		return 0, err
	}
	judge := guard.New(options.Policy, guard.Host{})
	run := activities.AgentRun{Tier: script.Tier, Directory: script.Directory}
	sandbox, _ := newSandboxes(options.Config, options.Policy, options.Environ, guards.sockets).of(run, []string{temporary.path})
	session := hook.Session{
		ID: "starter policy run", Tier: int(script.Tier), Place: place, Executables: guards.executables(script.Tier, sandbox),
	}
	post, err := hook.Open(guards.sockets, judge, session, unlimited{}, func(hook.Entry) {})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, post.Close()) }()
	if denied := post.Try(script.Text); denied != "" {
		_, err := fmt.Fprintln(script.Stderr, "The supervisor denies this call:", denied)
		return ExitRefused, err
	}
	maps.Copy(variables, post.Environment(guards.executable, guards.shell))
	return claude.RunScript(ctx, ClaudeOptions(options.Config.Claude, options.Environ), claude.Script{
		Shell: guards.executable, Text: "eval '" + strings.ReplaceAll(script.Text, "'", `'\''`) + "'",
		Dir: script.Directory, Env: variables,
		Sandbox: sandbox, Stdout: script.Stdout, Stderr: script.Stderr,
	})
}

// unlimited is a ledger without limits and without entries.
type unlimited struct{}

var _ hook.Ledger = unlimited{}

// Charge implements hook.Ledger.
func (unlimited) Charge(context.Context, string, []guard.Action) (refusal string, err error) {
	return "", nil
}

// Return implements hook.Ledger.
func (unlimited) Return(context.Context, string) error { return nil }
