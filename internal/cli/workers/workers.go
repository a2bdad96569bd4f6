// Package workers holds the commands about the processes that run chains. `workers` lists these processes, and makes a version
// current. `replay` checks whether this program can continue the running chains.
package workers

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Commands returns `workers` and `replay`.
func Commands(c *console.Console) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.listCommand(), a.replayCommand()}
}
