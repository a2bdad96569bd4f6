package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments is the argument check for commands without arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("`%s` takes no arguments, and %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArgument is the argument check for commands with one required argument. The error names the argument in the same
// way as the command's usage.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, name, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s is missing: write `%s %s`", name, cmd.CommandPath(), name)
	}
	return OneArgumentAtMost(cmd, args)
}

// OneArgumentAtMost is the argument check for commands with one optional argument. It refuses an empty argument, which
// usually comes from an unset shell variable.
func OneArgumentAtMost(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("`%s` takes one argument, and %q is another", cmd.CommandPath(), args[1])
	case len(args) == 1 && args[0] == "":
		return fmt.Errorf("the argument of `%s` is empty", cmd.CommandPath())
	default:
		return nil
	}
}
