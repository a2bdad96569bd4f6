// Package operate holds the commands for those who operate workers: which workers run and in which version, whether
// this program can continue the running chains, the database of the records, and the codec of encrypted chains.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Commands returns `workers`, `replay`, `codec` and `db`.
func Commands(c *console.Console) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.workersCommand(), a.replayCommand(), a.codecCommand(), a.dbCommand()}
}
