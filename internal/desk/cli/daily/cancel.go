package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
)

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel CHAIN",
		Short: "End a running chain",
		Long: "Cancel asks a running chain to end: its agent is stopped, also those of its issues, what they have " +
			"spent is\nrecorded, and it ends aborted. It does not wait for that; `claudeops watch` shows it. A gate " +
			"needs no cancelling:\n`claudeops gate CHAIN --action abort` says who ended the chain, too.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.cancel(cmd.Context(), args[0]) },
	}
}

// cancelled is the result of `cancel`.
type cancelled struct {
	ChainID string `json:"chain_id"`
}

func (a *app) cancel(ctx context.Context, id string) error {
	if err := a.Operations.Chains.Cancel(ctx, id); err != nil {
		return err
	}
	return a.Print(cancelled{id}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Asked chain %s to end: its agent is stopped, and it ends aborted. See it with: %s\n",
			console.PrintableID(id), console.LookCommand(id))
	})
}
