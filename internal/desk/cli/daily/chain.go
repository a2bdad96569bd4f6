package daily

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Chain is the result of `chain`.
type Chain struct {
	escalation.Chain

	// Calls holds the decisions on the calls of the chain's agents, in order. If this host cannot read the records,
	// Calls is nil, and the JSON omits it.
	Calls []escalation.CallDecision `json:"calls,omitzero"`
}

func (a *app) chainCommand() *cobra.Command {
	var everyCall bool
	cmd := &cobra.Command{
		Use:   "chain ID",
		Short: "Show a chain as a tree",
		Long: "Chain shows one chain: its sessions with tier, model, cost, duration and status, and its total.\n" +
			"ID is a chain's workflow ID, or the number of a session record: then the records answer, with the\n" +
			"sessions that led to it and those that came of it.\n\n" +
			"Below a session stand how many calls of its agent the guard has allowed and denied, and those that it\n" +
			"has denied. In JSON, `calls` has every call in order: session_id, call (its ID), tier, at, tool, input\n" +
			"(JSON as text; of a long one the beginning), allowed, rule, reason and actions. Calls are in the\n" +
			"records: on a host that has none, they are left out.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number, err := strconv.ParseInt(args[0], 10, 64); err == nil {
				return a.lineage(cmd.Context(), number, everyCall)
			}
			return a.showChain(cmd.Context(), args[0], everyCall)
		},
	}
	cmd.Flags().BoolVar(&everyCall, "calls", false, "list every call of the agents, not only those that were denied")
	return cmd
}

// showChain shows a chain.
func (a *app) showChain(ctx context.Context, id string, everyCall bool) error {
	now, err := a.Operations.Chains.Get(ctx, id)
	if err != nil {
		return err
	}
	if everyCall && now.Calls == nil {
		a.Say("The calls are in the records, which are not on this host, or cannot be read.")
	}
	return a.Print(Chain{now.Chain, now.Calls}, func(w io.Writer) {
		writeSnapshot(w, a.Clock, now, listedCalls(everyCall))
	})
}

// lineage shows the session with this number, its ancestors and its descendants.
func (a *app) lineage(ctx context.Context, number int64, everyCall bool) error {
	found, err := a.Operations.Chains.Session(ctx, number)
	return console.PrintResult(a.Console, found, err, func(w io.Writer,
		found operations.Lineage,
	) {
		a.writeLineages(w, found, everyCall)
	})
}

func (a *app) writeLineages(w io.Writer, found operations.Lineage, everyCall bool) {
	chain := escalation.Chain{
		ID: found.Forward[0].ChainID, Sessions: found.Forward, CostUSD: escalation.TotalCostUSD(found.Forward),
	}
	writeSnapshot(w, a.Clock, operations.Snapshot{Chain: chain, Calls: found.Calls}, listedCalls(everyCall))
	WriteLineage(w, "Backward:", found.Backward)
	WriteLineage(w, "Forward: ", found.Forward)
}
