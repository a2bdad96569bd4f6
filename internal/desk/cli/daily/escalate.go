package daily

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
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
			"waits.\nThe highest tier allowed and a dry run hold all the same.",
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
	// Next says what follows, and when.
	Next string `json:"next"`
}

func (a *app) escalate(ctx context.Context, chainID string, signal workflows.EscalateSignal) error {
	if signal.ToTier == 0 {
		return program.Misuse(errors.New("--to is missing: say with it which tier is to run, 2 or 3"))
	}
	if err := a.Operations.Chains.Escalate(ctx, chainID, signal); err != nil {
		return err
	}
	next := a.afterRequest(ctx, chainID, signal)
	return a.Print(escalated{chainID, signal.ToTier, next}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Asked chain %s for %s: %s.\nFollow it with: %s\n", console.PrintableID(chainID),
			signal.ToTier, console.Printable(next, 600), console.WatchCommand(chainID))
	})
}

const (
	// requestLimit limits how long escalate looks what follows, and requestPoll is the time between two looks.
	requestLimit = 5 * time.Second
	requestPoll  = 300 * time.Millisecond
)

// afterRequest says what a request for a tier has led to.
func (a *app) afterRequest(ctx context.Context, chainID string, signal workflows.EscalateSignal) string {
	const unknown = "the chain has not said yet what follows"
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for {
		now, err := a.Operations.Chains.Get(ctx, chainID)
		if err != nil {
			return unknown
		}
		if text, known := operations.AfterRequest(now.Chain, signal.ToTier, a.Clock()); known {
			if wait := now.Chain.Wait; wait != nil && wait.Rule == escalation.RuleCooldown && !signal.Force {
				text += "; --force passes it"
			}
			return text
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(requestPoll):
		}
	}
}
