package claude

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/process"
)

// Script is a script for the agents' shell that a person runs, or a program that the supervisor runs like a command of an
// agent.
type Script struct {
	// Shell is the program that runs the script, which is its last argument.
	Shell, Text string
	// Args are arguments in front of the script. If Text is empty, they are all arguments.
	Args []string
	// Keyless keeps the variables of the model's providers from the program.
	Keyless bool
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
	args := script.Args
	if script.Text != "" {
		args = append(slices.Clip(args), script.Text)
	}
	exit, err := process.Run(ctx, process.Spec{
		Path: script.Shell, Args: args, Env: environ, Dir: script.Dir, Stdin: script.Stdin, Stdout: script.Stdout, Stderr: script.Stderr,
		Containment: cli.options.Containment, Sandbox: cli.sandbox(invocation, environ), User: cli.options.User,
		Started: script.Started,
	})
	switch {
	case err != nil:
		return 0, err
	case exit.Signal != 0:
		return 128 + int(exit.Signal), nil
	case exit.Code < 0:
		return 0, fmt.Errorf("the script %s", exit)
	}
	return exit.Code, nil
}
