// Package daily holds the commands that people use every day: they start, show and direct chains, answer gates, and
// manage incidents, memories and schedules. It also shows a chain as a tree, and line by line while the chain runs.
package daily

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Commands returns the commands of this package.
func Commands(c *console.Console) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{
		a.runCommand(), a.chainCommand(), a.chainsCommand(), a.watchCommand(), a.escalateCommand(), a.cancelCommand(),
		a.costsCommand(), a.gateCommand(), a.planCommand(), a.incidentsCommand(), a.alertsCommand(), a.memoryCommand(),
		a.cooldownCommand(), a.scheduleCommand(), a.talkCommand(),
	}
}
