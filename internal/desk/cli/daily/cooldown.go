package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// maxCooldownActions limits the repairs that `cooldown` lists.
const maxCooldownActions = 10

func (a *app) cooldownCommand() *cobra.Command {
	var takeBack bool
	var actor string
	cmd := &cobra.Command{
		Use:   "cooldown SERVICE",
		Short: "Show the repairs that the limits of a service count, or take the latest one back",
		Long: "Cooldown shows how many restarts and redeployments of a service the limits count, and when the next " +
			"is allowed.\nWith --take-back the latest one counts no more: for one that reached nothing, because its " +
			"daemon did not run. An event\nof its chain says who has taken it back.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.cooldown(cmd.Context(), args[0], takeBack, a.Actor(actor))
		},
	}
	cmd.Flags().BoolVar(&takeBack, "take-back", false, "take back the latest restart or redeployment")
	cmd.Flags().StringVar(&actor, "actor", "", "who takes it back, for the record (default: the name of your user)")
	return cmd
}

// Cooldown is the result of `cooldown`.
type Cooldown struct {
	Service       string         `json:"service"`
	Restarts      escalation.Use `json:"restarts"`
	Redeployments escalation.Use `json:"redeployments"`
	// Actions lists the latest ones, latest first.
	Actions []operations.ServiceAction `json:"actions"`
	// TakenBack is what was taken back; nil if nothing was.
	TakenBack *operations.ServiceAction `json:"taken_back,omitempty"`
}

func (a *app) cooldown(ctx context.Context, name string, takeBack bool, actor string) error {
	var taken *operations.ServiceAction
	if takeBack {
		action, err := a.Operations.Services.TakeBack(ctx, name, actor)
		if err != nil {
			return err
		}
		taken = &action
	}
	found, err := a.Operations.Services.Get(ctx, name)
	if err != nil {
		return err
	}
	result := Cooldown{
		found.Name, found.Restarts, found.Redeployments,
		found.Actions[:min(len(found.Actions), maxCooldownActions)], taken,
	}
	return a.Print(result, func(w io.Writer) { writeCooldown(w, a.Clock, result) })
}

func writeCooldown(w io.Writer, clock console.Clock, c Cooldown) {
	describe := func(action operations.ServiceAction) string {
		return fmt.Sprintf("the %s of %s at %s, by %s of chain %s", action.Kind,
			console.Printable(action.Service, escalation.MaxServiceName), clock.DateTime(action.At), action.Tier,
			console.PrintableID(action.ChainID))
	}
	if c.TakenBack != nil {
		_, _ = fmt.Fprintf(w, "Taken back: %s. No limit counts it any more.\n\n", describe(*c.TakenBack))
	}
	use := func(what string, use escalation.Use) {
		_, _ = fmt.Fprintf(w, "%s  %d used, the limit is %s", what, use.Used, use.Limit)
		if !use.FreeAt.IsZero() {
			_, _ = fmt.Fprintf(w, "; the next one is allowed at %s", clock.DateTime(use.FreeAt))
		}
		_, _ = fmt.Fprintln(w)
	}
	use("Restarts     ", c.Restarts)
	use("Redeployments", c.Redeployments)
	for _, action := range c.Actions {
		_, _ = fmt.Fprintf(w, "  %s\n", describe(action))
	}
	if len(c.Actions) > 0 && c.TakenBack == nil {
		_, _ = fmt.Fprintf(w, "If the latest one reached nothing, take it back: claudeops cooldown --take-back %s\n",
			workflows.Operand(console.Printable(c.Service, escalation.MaxServiceName)))
	}
}
