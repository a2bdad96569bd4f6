package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// Root returns the command `claudeops` without subcommands, for the arguments and streams of the console.
func (c *Console) Root() *cobra.Command {
	root := &cobra.Command{Use: "claudeops", SilenceUsage: true, SilenceErrors: true}
	root.SetFlagErrorFunc(flagProblem)
	root.SetArgs(c.Args)
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	c.Output = Text
	root.PersistentFlags().VarP(&c.Output, "output", "o", "how results are printed: text or json")
	return root
}

// Parent returns cmd with subcommands. Without one of them, it is an error: cmd asks what to do with the subject.
func Parent(cmd *cobra.Command, subject string, commands ...*cobra.Command) *cobra.Command {
	names := make([]string, len(commands))
	for i, command := range commands {
		names[i] = command.Name()
	}
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(*cobra.Command, []string) error {
		return program.Misuse(fmt.Errorf("say what to do with %s: %s", subject, plaintext.Or(names)))
	}
	cmd.AddCommand(commands...)
	return cmd
}

// Run runs the command that the arguments of root name, prints its error, and returns the exit code. If prepare is not
// nil, Run calls it before the command.
func (c *Console) Run(ctx context.Context, root *cobra.Command, prepare func(*cobra.Command) error) program.ExitCode {
	c.Operations = c.NewOperations()
	begun := false // an error before any command begins is an error in the command line
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		begun = true
		if prepare == nil {
			return nil
		}
		return prepare(command)
	}
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		err = program.Misuse(fmt.Errorf("%w (see `%s --help`)", err, command.CommandPath()))
	}
	if operations.KindOf(err) == operations.KindInvalid {
		err = program.Misuse(NameFlag(err))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.Complain("claudeops", err)
	}
	if closeErr := c.Close(); closeErr != nil { // the command has done its work, even if its traces cannot be sent
		c.Complain("claudeops", closeErr)
	}
	return program.CodeOf(err)
}
