package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
)

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel CHAIN",
		Short: "End a running chain",
		Long: "Cancel asks a running chain to end: its agent is stopped, also those of its issues, what they have spent is\n" +
			"recorded, and it ends aborted. It does not wait for that; `starter watch` shows it. A gate needs no cancelling:\n" +
			"`starter gate CHAIN --action abort` says who ended the chain, too.",
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.cancel(cmd.Context(), args[0]) },
	}
}

// cancelled is what the command prints.
type cancelled struct {
	ChainID string `json:"chain_id"`
}

func (a *app) cancel(ctx context.Context, id string) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	chain, err := describeChain(ctx, c, id)
	if err == nil && chain.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		err = errors.New("it has ended, and there is nothing to cancel") // which Temporal does not tell
	}
	if err == nil {
		err = c.CancelWorkflow(ctx, id, "")
	}
	if err != nil {
		return fmt.Errorf("chain %s: %w", printable(id, maxChainID), err)
	}
	return a.print(cancelled{id}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Asked chain %s to end: its agent is stopped, and it ends aborted. See it with: %s\n",
			printable(id, maxChainID), lookCommand(id))
	})
}
