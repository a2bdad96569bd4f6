package cell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// ExitRefused is the exit code of a script that the guard refuses as a whole, and of a command in it that is refused.
const ExitRefused = 126

// Script is a script that a person runs as an agent of a tier would.
type Script struct {
	// Tier is the number of a tier of the policy.
	Tier int
	// Dir is the working directory, and Env holds further variables.
	Dir  string
	Env  map[string]string
	Text string

	Stdout, Stderr io.Writer
}

// RunScript runs a script as an agent's would run: through the guard, in the tier's sandbox, with an agent's
// environment, home and user. It charges and records nothing. It returns the exit code of the script.
func RunScript(ctx context.Context, options Options, script Script) (code int, err error) {
	guards, err := newGuards(options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, guards.close()) }()
	privates, err := newPrivates(options)
	if err != nil {
		return 0, err
	}
	own, err := privates.open(ctx, "policy-run-"+rand.Text())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	spec := Spec{SessionID: own.id, Tier: script.Tier, Policy: options.Policy, Dir: script.Dir, Supervisor: nobody{}}
	invocation := claude.Invocation{Env: own.variables()}
	maps.Copy(invocation.Env, script.Env)
	invocation.Sandbox, _ = newSandboxes(options, guards.sockets.path).of(script.Tier, script.Dir, nil)
	if invocation.Sandbox != nil {
		own.grant(invocation.Sandbox)
	}
	watch, err := guards.open(ctx, spec, &invocation, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, watch.post.Close()) }()
	if denied := watch.post.Try(script.Text); denied != "" {
		_, err := fmt.Fprintln(script.Stderr, "The supervisor denies this call:", denied)
		return ExitRefused, err
	}
	maps.Copy(invocation.Env, invocation.Guard.Env)
	return claude.RunScript(ctx, options.Driver, claude.Script{
		Shell: guards.executable, Text: "eval '" + strings.ReplaceAll(script.Text, "'", `'\''`) + "'",
		Dir: script.Dir, Env: invocation.Env, Started: invocation.Guard.Started,
		Sandbox: invocation.Sandbox, Stdout: script.Stdout, Stderr: script.Stderr,
	})
}
