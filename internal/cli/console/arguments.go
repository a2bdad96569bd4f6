package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments is the check of a command that takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("`%s` takes no arguments, and %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArgument is the check of a command that takes one, which its usage names.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, name, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s is missing: write `%s %s`", name, cmd.CommandPath(), name)
	}
	return OneArgumentAtMost(cmd, args)
}

// OneArgumentAtMost is the check of a command that takes one or none. It refuses an empty one, which comes from a
// variable of the shell that is not set.
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
