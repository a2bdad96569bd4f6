// Package workers holds the commands about the processes that run chains: `workers`, which lists them and makes a version
// current, and `replay`, which tries a program on the chains that run.
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
