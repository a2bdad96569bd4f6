// Package cli implements claudeops, the operator's command line. This package holds the root command. Each package
// below it holds a group of related commands.
package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/desk/cli/local"
	"github.com/claudeops/claudeops/internal/desk/cli/operate"
	"github.com/claudeops/claudeops/internal/desk/cli/setup"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// Execute runs the command that the arguments name and returns the exit code.
func Execute(ctx context.Context, p program.Process) program.ExitCode {
	return execute(ctx, &console.Console{Process: p, Clock: time.Now, Patience: operations.Patience})
}

func execute(ctx context.Context, c *console.Console) program.ExitCode {
	root := rootCommand(c)
	server := root.PersistentFlags().String("server", "",
		"do it through the server at this address, with a token (also CLAUDEOPS_SERVER)")
	return c.Run(ctx, root, func(command *cobra.Command) error {
		return program.Misuse(useServer(c, command,
			*server))
	})
}

// inOurOrder has help list commands in the order in which they were added, the first one to use first.
var inOurOrder = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

func rootCommand(c *console.Console) *cobra.Command {
	inOurOrder()
	root := c.Root()
	root.Short = "Start and watch escalation chains of Claude agents"
	root.Long = "Claudeops is the operator's command line of Claude Ops. It reads CLAUDEOPS_ variables (see `claudeops " +
		"config`).\nIt finds the `claudeops up` that runs on its state directory, and another Temporal by Temporal's " +
		"own settings:\nTEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, temporal.toml.\n\n" + console.ExitHelp
	root.Version = program.Version()
	root.SetVersionTemplate("claudeops {{.Version}}\n")
	root.AddGroup(groups...)
	root.SetHelpCommandGroupID("operate")
	root.SetCompletionCommandGroupID("operate")
	root.AddCommand(setup.Commands(c, stepsOf(c))...)
	root.AddCommand(local.Commands(c)...)
	root.AddCommand(daily.Commands(c)...)
	root.AddCommand(operate.Commands(c)...)
	root.AddCommand(setup.Policy(c)) // the last of its group in help
	for _, command := range root.Commands() {
		command.GroupID = groupOf[command.Name()]
	}
	return root
}

// stepsOf returns what `init` does with the commands of other packages.
func stepsOf(c *console.Console) setup.Steps {
	return setup.Steps{
		Run: func(ctx context.Context, environ []string, args ...string) error {
			other := c.In(environ)
			root := rootCommand(other)
			root.SetArgs(args)
			return errors.Join(root.ExecuteContext(ctx), other.Close())
		},
		Serve: func(ctx context.Context, environ []string, do func() error) error {
			return local.Serve(ctx, c, environ, do)
		},
	}
}

// groups are the headings in the list of commands.
var groups = []*cobra.Group{
	{ID: "daily", Title: "Every day:"},
	{ID: "setup", Title: "Set up:"},
	{ID: "operate", Title: "Operate:"},
}

// groupOf gives the ID of each command's group. Cobra lists a command without a group as an additional command.
var groupOf = map[string]string{
	"run": "daily", "watch": "daily", "chains": "daily", "chain": "daily", "gate": "daily", "escalate": "daily",
	"cancel": "daily", "incidents": "daily", "memory": "daily", "schedule": "daily", "talk": "daily", "costs": "daily",
	"plan": "daily", "cooldown": "daily", "alerts": "daily",
	"init": "setup", "demo": "setup", "up": "setup", "stop": "setup", "doctor": "setup", "config": "setup",
	"policy": "setup", "notify": "setup", "env": "setup", "web": "setup",
	"workers": "operate", "replay": "operate", "db": "operate", "codec": "operate",
}
