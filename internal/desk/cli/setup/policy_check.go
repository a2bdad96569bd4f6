package setup

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// checkOptions are the flags of `policy check`.
type checkOptions struct {
	tier             escalation.Tier
	tool, input, dir string
}

func (a *app) checkCallCommand() *cobra.Command {
	o := checkOptions{}
	cmd := &cobra.Command{
		Use:   "check --tier TIER COMMAND",
		Short: "Say whether a tier may make a call, and why; nothing is run",
		Long: "Check says what the guard would decide on a command, in one argument, or on another tool's call " +
			"(--tool, --input):\nallowed, denied, or at run, with what decides on the rest while the command runs. " +
			"For Tiers 1 and 2 it answers for the\nlevels full and kernel only; at the others (see `claudeops " +
			"doctor`) only plain texts of awk, sed, jq and yq are granted.\nIt ends with 3 if the call is denied, " +
			"else with 0.",
		Example: "  claudeops policy check --tier 2 'docker restart jellyfin && rm -rf /'\n" +
			`  claudeops policy check --tier 1 --tool Read --input '{"file_path":"/etc/shadow"}'`,
		Args: oneCommand,
		RunE: func(_ *cobra.Command, args []string) error { return a.checkCall(o, strings.Join(args, "")) },
	}
	cmd.Flags().Var(console.TierFlag{Tier: &o.tier, Allowed: escalation.Tiers()}, "tier",
		"the tier whose agent makes the call")
	cmd.Flags().StringVar(&o.tool, "tool", "Bash", "the tool that is called")
	cmd.Flags().StringVar(&o.input, "input", "", "the tool's input, a JSON object, in place of a command")
	addDirFlag(cmd, &o.dir)
	return cmd
}

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "directory in which the agent works; the configured one if left out")
}

// oneCommand is the argument check for a command whose only argument is a command line. People must quote the command
// line, so that their shell does not interpret it.
func oneCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("`%s` takes the command as one argument: put quotes around it", cmd.CommandPath())
	}
	return console.OneArgumentAtMost(cmd, args)
}

func (a *app) checkCall(o checkOptions, command string) error {
	if o.tier == 0 {
		return program.Misuse(errNoTier)
	}
	call, err := operations.Call{
		Tier: o.tier, Tool: o.tool, Command: command,
		Input: json.RawMessage(o.input),
	}.Complete()
	if err != nil {
		return program.Misuse(fmt.Errorf("%w (see `claudeops policy check --help`)", err))
	}
	made, err := a.Operations.Policy.Try(call, o.dir)
	if err != nil {
		return err
	}
	if err := a.Print(made, func(w io.Writer) {
		writeDecision(w, made)
		if o.tier < escalation.TierFullRepair {
			_, _ = fmt.Fprintln(w, "At level:   full, kernel only")
		}
	}); err != nil {
		return err
	}
	if !made.Allowed {
		return program.WithCode(console.ExitDenied, fmt.Errorf("tier %d may not do that", int(o.tier)))
	}
	return nil
}

func writeDecision(w io.Writer, d operations.Decision) {
	if !d.Allowed {
		_, _ = fmt.Fprintf(w, "Denied by: %s\nBecause:   %s\n", console.Printable(d.Rule, longLine),
			console.Printable(d.Reason, longLine))
		return
	}
	if d.Rule != "" || d.AtRun == "" {
		_, _ = fmt.Fprintf(w, "Allowed by: %s\n", console.Printable(d.Rule, longLine))
	}
	if d.AtRun != "" {
		_, _ = fmt.Fprintf(w, "At run:     %s decides on the rest\n", console.Printable(d.AtRun, longLine))
	}
	for _, action := range d.Actions {
		_, _ = fmt.Fprintf(w, "Counts as:  %s of %s\n", action.Kind, console.Printable(action.Service, longLine))
	}
}
