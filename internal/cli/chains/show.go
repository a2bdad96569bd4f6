package chains

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/chainview"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

func (a *app) showCommand() *cobra.Command {
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
			return a.show(cmd.Context(), args[0], everyCall)
		},
	}
	cmd.Flags().BoolVar(&everyCall, "calls", false, "list every call of the agents, not only those that were denied")
	return cmd
}

// show shows a chain. It queries the chain's workflow. If Temporal no longer knows the chain, show reads the records.
func (a *app) show(ctx context.Context, id string, everyCall bool) error {
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	asking, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	chain, err := chainclient.Query(asking, c, id, "")
	live := err == nil
	// Looking up the namespace's ID needs an additional permission. If the lookup fails, show the records of all
	// namespaces.
	namespace, _ := supervisor.FindNamespace(asking, c, c.Namespace)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		namespace, chain, err = a.recorded(ctx, cfg, namespace, id)
	} else if err == nil && chain.Outcome == "" && brokenOff(ctx, c, id) {
		chain, live = settled(ctx, cfg, namespace, chain), false
	}
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, chainclient.ExplainQueryError(ctx, c, a.Patience, id, err))
	}
	now := chainclient.Snapshot{Chain: chain, Live: live, Calls: recordedCalls(ctx, cfg, namespace, id)}
	now.Attempt, now.Progress = chainclient.AttemptAt(ctx, c, id, chain)
	if everyCall && now.Calls == nil {
		a.Say("The calls are in the records, which are not on this host, or cannot be read.")
	}
	return a.Print(View{chain, now.Calls}, func(w io.Writer) {
		chainview.WriteSnapshot(w, a.Clock, now, chainview.ListedCalls(everyCall))
	})
}

// recorded reads a chain from the records. It is for chains that Temporal does not know. It returns the chain and its
// namespace, which can differ from own.
func (a *app) recorded(
	ctx context.Context, cfg config.Config, own store.Namespace, id string,
) (namespace store.Namespace, chain escalation.Chain, err error) {
	if namespace, err = recordedIn(ctx, cfg, own, id); err != nil {
		return own, chain, err
	}
	if namespace != own {
		a.Say("Temporal does not know chain %s in this namespace. These are the records of its namesake in another one (%s).",
			console.PrintableID(id), console.Printable(namespace.Name, 200))
	}
	chain, err = recordedChain(ctx, cfg, namespace, id)
	return namespace, chain, err
}

// brokenOff reports whether a chain was terminated or timed out in Temporal. The workflow of such a chain does not know
// how the chain ended.
func brokenOff(ctx context.Context, c client.Client, id string) bool {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	status := described.GetWorkflowExecutionInfo().GetStatus()
	return err == nil && (status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED || status == enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}

// lineage shows the session with this number, its ancestors and its descendants.
func (a *app) lineage(ctx context.Context, number int64, everyCall bool) (err error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	records, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	found, err := lineageOf(ctx, records, number)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no session #%d", number)
	}
	if err != nil {
		return err
	}
	return a.Print(found, func(w io.Writer) { a.writeLineages(w, found, everyCall) })
}

func (a *app) writeLineages(w io.Writer, found chainview.Lineage, everyCall bool) {
	chain := escalation.Chain{
		ID: found.Forward[0].ChainID, Sessions: found.Forward, CostUSD: escalation.TotalCostUSD(found.Forward),
	}
	chainview.WriteSnapshot(w, a.Clock, chainclient.Snapshot{Chain: chain, Calls: found.Calls}, chainview.ListedCalls(everyCall))
	chainview.WriteLineage(w, "Backward:", found.Backward)
	chainview.WriteLineage(w, "Forward: ", found.Forward)
}
