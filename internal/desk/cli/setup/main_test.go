package setup

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell of its agents, as claudeops is
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// claudeops runs the program with the commands of this package.
var starter = clitest.Of(commands).Run

// commands returns the commands of this package. What `init` does with other commands fails.
func commands(c *console.Console) []*cobra.Command {
	none := errors.New("this program has no other commands")
	return append(Commands(c, Steps{
		Run:   func(context.Context, []string, ...string) error { return none },
		Serve: func(context.Context, []string, func() error) error { return none },
	}), Policy(c))
}
