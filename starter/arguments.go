package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// noArguments is for a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("`%s` takes no arguments, and %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArgument is for a command that takes the one that its usage names.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, name, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s is missing: write `%s %s`", name, cmd.CommandPath(), name)
	}
	return oneArgumentAtMost(cmd, args)
}

// oneArgumentAtMost is for a command that does something else without one. An empty one, from a variable
// of the shell that is not set, is none.
func oneArgumentAtMost(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("`%s` takes one argument, and %q is another", cmd.CommandPath(), args[1])
	case len(args) == 1 && args[0] == "":
		return fmt.Errorf("the argument of `%s` is empty", cmd.CommandPath())
	default:
		return nil
	}
}
