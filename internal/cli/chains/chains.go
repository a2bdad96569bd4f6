// Package chains holds the commands that start, list, show, watch, escalate and cancel chains, and the one that
// adds up their costs.
package chains

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Commands returns the commands `run`, `chain`, `chains`, `watch`, `escalate`, `cancel` and `costs`.
func Commands(c *console.Console) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{
		a.runCommand(), a.showCommand(), a.listCommand(), a.watchCommand(), a.escalateCommand(), a.cancelCommand(), a.costsCommand(),
	}
}
