package claude

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/claudeops/claudeops/internal/process"
)

// Script is a script for the agents' shell that a person runs.
type Script struct {
	// Shell is the program that runs the script, which is its only argument.
	Shell, Text string
	// Dir is the working directory.
	Dir string
	// Env holds variables in addition to those that an agent's commands get.
	Env     map[string]string
	Sandbox *Sandbox
	// Started is called when the shell has started; it may be nil.
	Started func(Tree)

	Stdout, Stderr io.Writer
}

// RunScript runs a script with the environment, the user and the sandbox of an agent's commands, and returns its exit
// code. It ends all processes that the script has started.
func RunScript(ctx context.Context, options Options, script Script) (code int, err error) {
	cli := &CLI{options: options.withDefaults()}
	own := map[string]string{"CLAUDECODE": "1", "SHELL": script.Shell}
	maps.Copy(own, script.Env)
	invocation := Invocation{Env: own, Sandbox: script.Sandbox}
	environ := cli.environment(invocation)
	exit, err := process.Run(ctx, process.Spec{
		Path: script.Shell, Args: []string{script.Text}, Env: environ, Dir: script.Dir, Stdout: script.Stdout, Stderr: script.Stderr,
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
