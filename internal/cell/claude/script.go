package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// Script is a script for the agents' shell that a person runs, or a program that the supervisor runs like a command of
// an agent.
type Script struct {
	// Shell is the program that runs the script, which is its last argument.
	Shell, Text string
	// Args are arguments in front of the script. If Text is empty, they are all arguments.
	Args []string
	// Keyless keeps the variables of the model's providers from the program.
	Keyless bool
	// Cell keeps everything from the program that belongs to the operator or to agents: it gets the search path, the
	// language and Env, nothing that the CLI may read or write, and no file that a variable of PassEnv names. The
	// sandbox must be required.
	Cell   bool
	Limits ScriptLimits
	// Dir is the working directory.
	Dir string
	// Env holds variables in addition to those that an agent's commands get.
	Env     map[string]string
	Sandbox *Sandbox
	// Started is called when the shell has started; it may be nil.
	Started func(Tree)

	// Stdin is the standard input; nil for an empty one.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ScriptLimits are limits of package process.
type ScriptLimits = process.Limits

// RunScript runs a script with the environment, the user and the sandbox of an agent's commands, and returns its exit
// code. It ends all processes that the script has started.
func RunScript(ctx context.Context, options Options, script Script) (code int, err error) {
	cli := &CLI{options: options.withDefaults()}
	own := map[string]string{"CLAUDECODE": "1", "SHELL": script.Shell}
	maps.Copy(own, script.Env)
	invocation := Invocation{Env: own, Sandbox: script.Sandbox}
	if script.Keyless {
		cli.options.Environ = withoutProviders(cli.options.Environ)
	}
	environ := cli.environment(invocation)
	sandbox := cli.sandbox(invocation, environ)
	if script.Cell {
		sandbox = cli.cell(script.Sandbox, environ)
		environ = cli.cellEnvironment(script.Env)
	}
	args := script.Args
	if script.Text != "" {
		args = append(slices.Clip(args), script.Text)
	}
	exit, err := process.Run(ctx, process.Spec{
		Path: script.Shell, Args: args, Env: environ, Dir: script.Dir, Stdin: script.Stdin, Stdout: script.Stdout,
		Stderr: script.Stderr, Containment: cli.options.Containment, Sandbox: sandbox, User: cli.options.User,
		Started: script.Started, Limits: script.Limits,
	})
	limit, exceeded := errors.AsType[*process.LimitError](exit.StoppedBy)
	switch {
	case err != nil:
		return 0, err
	case exceeded:
		return 0, limit
	case exit.Signal != 0:
		return 128 + int(exit.Signal), nil
	case exit.Code < 0:
		return 0, fmt.Errorf("the script %s", exit)
	}
	return exit.Code, nil
}

// cellVariables are the operator's variables that a program in a cell gets.
var cellVariables = []string{"PATH", "LANG", "LANGUAGE", "LC_*", "TZ"}

// cellEnvironment returns the environment of a program in a cell.
func (c *CLI) cellEnvironment(own map[string]string) []string {
	variables := map[string]string{"CI": "true"}
	for _, variable := range c.options.Environ {
		name, value, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(cellVariables, func(pattern string) bool { return matchesName(pattern, name) }) {
			variables[name] = value
		}
	}
	maps.Copy(variables, gitSettings())
	maps.Copy(variables, own)
	var environ []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environ = append(environ, name+"="+variables[name])
	}
	return environ
}

// cell returns the sandbox of a program in a cell, with the directories of the search path. The argument environ is the
// environment of an agent's commands: the files that its variables of PassEnv name are hidden.
func (c *CLI) cell(of *Sandbox, environ []string) *Sandbox {
	all := *of
	passed := slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.ContainsFunc(c.options.PassEnv, func(pattern string) bool { return matchesName(pattern, name) })
	})
	all.Hidden = slices.Concat(all.Hidden, namedFiles(passed), namedFiles(c.passed()), c.ownPlaces(Invocation{}))
	for _, place := range resolved(filepath.SplitList(lookupVariable(environ, "PATH"))...) {
		if !slices.Contains(resolved(all.Hidden...), place) {
			all.Readable = append(slices.Clip(all.Readable), place)
		}
	}
	return &all
}
