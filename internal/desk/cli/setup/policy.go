package setup

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
)

// Policy returns `policy`.
func Policy(c *console.Console) *cobra.Command {
	a := &app{Console: c}
	return console.Parent(&cobra.Command{
		Use:   "policy",
		Short: "Try and change what the agents of each tier may do",
		Long: "Policy asks the guard, which decides on every call of an agent by the built-in policy or the one " +
			"that\nCLAUDEOPS_POLICY_FILE names. Only `run` runs something. Paths, links and programs are looked up " +
			"on this host, as by the\nworker.",
	}, "the policy",
		a.checkCallCommand(), a.testTableCommand(), a.runScriptCommand(), a.explainTierCommand(),
		a.suggestGrantsCommand())
}

var errNoTier = errors.New("--tier is missing: say with it for which tier, 1, 2 or 3")

// longLine limits how much text of a call the output contains, in characters.
const longLine = 1000
