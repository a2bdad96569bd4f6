package daily

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

func (a *app) escalateCommand() *cobra.Command {
	var signal workflows.EscalateSignal
	cmd := &cobra.Command{
		Use:   "escalate CHAIN",
		Short: "Ask a running chain for a higher tier",
		Long: "Escalate asks a running chain to go on with a higher tier at its next decision, or at once if it " +
			"waits.\nThe highest tier allowed and a dry run hold all the same. What became of it is among the " +
			"chain's events.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.escalate(cmd.Context(), args[0], signal) },
	}
	flags := cmd.Flags()
	flags.Var(console.TierFlag{Tier: &signal.ToTier, Allowed: higherTiers}, "to", "the tier to run")
	flags.StringVar(&signal.Reason, "reason", "", "why, for the record")
	flags.StringVar(&signal.Guidance, "guidance", "", "what the tier is told")
	flags.BoolVar(&signal.Force, "force", false, "pass the cooldowns; the record says so")
	return cmd
}

// higherTiers lists the tiers to which a person can escalate a chain.
var higherTiers = escalation.Tiers()[1:]

// escalated is the result of `escalate`.
type escalated struct {
	ChainID string          `json:"chain_id"`
	ToTier  escalation.Tier `json:"to_tier"`
}

func (a *app) escalate(ctx context.Context, chainID string, signal workflows.EscalateSignal) error {
	if signal.ToTier == 0 {
		return program.Misuse(errors.New("--to is missing: say with it which tier is to run, 2 or 3"))
	}
	if err := a.Operations.Chains.Escalate(ctx, chainID, signal); err != nil {
		return err
	}
	return a.Print(escalated{chainID, signal.ToTier}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Asked chain %s for %s. See what becomes of it with: %s\n",
			console.PrintableID(chainID), signal.ToTier, console.LookCommand(chainID))
	})
}
