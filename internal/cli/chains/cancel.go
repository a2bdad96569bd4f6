package chains

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/console"
)

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel CHAIN",
		Short: "End a running chain",
		Long: "Cancel asks a running chain to end: its agent is stopped, also those of its issues, what they have spent is\n" +
			"recorded, and it ends aborted. It does not wait for that; `starter watch` shows it. A gate needs no cancelling:\n" +
			"`starter gate CHAIN --action abort` says who ended the chain, too.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.cancel(cmd.Context(), args[0]) },
	}
}

// cancelled is the result of `cancel`.
type cancelled struct {
	ChainID string `json:"chain_id"`
}

func (a *app) cancel(ctx context.Context, id string) error {
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	chain, err := chainclient.Describe(ctx, c, id)
	if err == nil && chain.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		err = errors.New("it has ended, and there is nothing to cancel") // Temporal would report no error
	}
	if err == nil {
		err = c.CancelWorkflow(ctx, id, "")
	}
	if err != nil {
		return fmt.Errorf("chain %s: %w", console.PrintableID(id), err)
	}
	return a.Print(cancelled{id}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Asked chain %s to end: its agent is stopped, and it ends aborted. See it with: %s\n",
			console.PrintableID(id), console.LookCommand(id))
	})
}
