package cell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
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

// RunScript runs a script as an agent's would run: through the guard, in the tier's sandbox, with an agent's environment, home
// and user. It charges and records nothing. It returns the exit code of the script.
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
	own, err := privates.open(ctx, scriptSession+rand.Text())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	return guards.runScript(ctx, options, own, script)
}

// scriptSession begins the names of the directories of scripts that a person runs.
const scriptSession = "policy-run-"

// runScript runs a script with the directories of a session.
func (g *guards) runScript(ctx context.Context, options Options, own *private, script Script) (code int, err error) {
	variables := own.variables()
	maps.Copy(variables, script.Env)
	place, err := g.place(script.Dir, variables, nil)
	if err != nil {
		return 0, err
	}
	sandbox, _ := newSandboxes(options, g.sockets.path).of(script.Tier, script.Dir, nil)
	if sandbox != nil {
		own.grant(sandbox)
	}
	executables := g.executables(script.Tier, sandbox)
	place.Confined = executables.HoldTexts() && g.confines()
	visitors := newVisitors(own.id, slog.New(slog.DiscardHandler))
	session := PostSession{
		ID: own.id, Tier: script.Tier, Place: place, Executables: executables, Admit: visitors.admit,
		Passed: g.passed,
	}
	post, err := OpenPost(g.sockets.path, guard.New(g.policy, guard.Host{}), session, unlimited{}, func(Entry) {})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, post.Close()) }()
	if denied := post.Try(script.Text); denied != "" {
		_, err := fmt.Fprintln(script.Stderr, "The supervisor denies this call:", denied)
		return ExitRefused, err
	}
	if sandbox != nil {
		sandbox.Opens = g.opensOf(ctx, g.policy, variables, session, post)
	}
	maps.Copy(variables, post.Environment(g.executable, g.shell))
	return claude.RunScript(ctx, options.Driver, claude.Script{
		Shell: g.executable, Text: "eval '" + strings.ReplaceAll(script.Text, "'", `'\''`) + "'",
		Dir: script.Dir, Env: variables, Started: visitors.begin,
		Sandbox: sandbox, Stdout: script.Stdout, Stderr: script.Stderr,
	})
}
