package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

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
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number, err := strconv.ParseInt(args[0], 10, 64); err == nil {
				return a.lineage(cmd.Context(), number, everyCall)
			}
			return a.chain(cmd.Context(), args[0], everyCall)
		},
	}
	cmd.Flags().BoolVar(&everyCall, "calls", false, "list every call of the agents, not only those that were denied")
	return cmd
}

// chain shows a chain as its workflow tells it, or, when Temporal has forgotten it, as
// the records do.
func (a *app) chain(ctx context.Context, id string, everyCall bool) error {
	c, cfg, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	asking, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	chain, err := queryChain(asking, c, id, "")
	live := err == nil
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		chain, err = recordedChain(ctx, cfg, id)
	} else if err == nil && chain.Outcome == "" && brokenOff(ctx, c, id) {
		chain, live = settled(ctx, cfg, chain), false
	}
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, a.whyNoAnswer(ctx, c, id, err))
	}
	now := sight{chain: chain, live: live, calls: recordedCalls(ctx, cfg, id), everyCall: everyCall}
	now.attempt, now.progress = attemptAt(ctx, c, id, chain)
	if everyCall && now.calls == nil {
		a.say("The calls are in the records, which are not on this host, or cannot be read.")
	}
	return a.print(chainView{chain, now.calls}, func(w io.Writer) { a.writeSight(w, now) })
}

// brokenOff reports whether a chain was ended from outside, so that its workflow cannot tell what it
// came to.
func brokenOff(ctx context.Context, c client.Client, id string) bool {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	status := described.GetWorkflowExecutionInfo().GetStatus()
	return err == nil && (status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED || status == enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}

// settled is a chain that was broken off with its sessions as the workers have settled them. Where the
// records are elsewhere, it is what its workflow knew.
func settled(ctx context.Context, cfg config.Config, chain escalation.Chain) escalation.Chain {
	recorded, err := recordedChain(ctx, cfg, chain.ID)
	if err != nil {
		return chain
	}
	chain.Sessions, chain.CostUSD, chain.Wait = recorded.Sessions, recorded.CostUSD, nil
	return chain
}

// recordedChain puts a chain together from its records.
func recordedChain(ctx context.Context, cfg config.Config, id string) (chain escalation.Chain, err error) {
	records, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return chain, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	chain.ID = id
	if chain.Sessions, err = records.Chain(ctx, id); err != nil {
		return chain, err
	}
	if len(chain.Sessions) == 0 {
		return chain, errNoSuchChain
	}
	chain.StartedAt = chain.Sessions[0].StartedAt
	chain.Trigger = chain.Sessions[0].Trigger
	chain.CostUSD = escalation.TotalCostUSD(chain.Sessions)
	chain.Events, err = records.Events(ctx, id)
	return chain, err
}

// lineage is the answer of the two recursive queries about one session.
type lineage struct {
	Backward []escalation.Session `json:"backward"`
	Forward  []escalation.Session `json:"forward"`
	// Calls are what was decided on the calls of these sessions.
	Calls []escalation.CallDecision `json:"calls"`
}

// lineage shows what led to the session of that number, and what came of it.
func (a *app) lineage(ctx context.Context, number int64, everyCall bool) (err error) {
	cfg, err := config.Load(a.environ)
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
	return a.print(found, func(w io.Writer) { a.writeLineages(w, found, everyCall) })
}

func lineageOf(ctx context.Context, records *store.Store, number int64) (lineage, error) {
	var found lineage
	var err error
	if found.Backward, err = records.Backward(ctx, number); err != nil {
		return found, err
	}
	if found.Forward, err = records.Forward(ctx, number); err != nil {
		return found, err
	}
	found.Calls, err = callsOf(ctx, records, slices.Concat(found.Backward, found.Forward))
	return found, err
}

func (a *app) writeLineages(w io.Writer, found lineage, everyCall bool) {
	chain := escalation.Chain{
		ID: found.Forward[0].ChainID, Sessions: found.Forward, CostUSD: escalation.TotalCostUSD(found.Forward),
	}
	a.writeSight(w, sight{chain: chain, calls: found.Calls, everyCall: everyCall})
	writeLineage(w, "Backward:", found.Backward)
	writeLineage(w, "Forward: ", found.Forward)
}

// undecodable is how the SDK's message begins when the input of a workflow cannot be read. The reason
// is behind undecoded, and in front of the name of the workflow.
const (
	undecodable = "unable to decode the workflow function input payload"
	undecoded   = "unable to decode: "
)

// rootCause returns the sentence at the bottom of a workflow's error.
func rootCause(err error) error {
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		return err
	}
	if _, reason, found := strings.Cut(application.Message(), undecoded); found && strings.HasPrefix(application.Message(), undecodable) {
		reason, _, _ = strings.Cut(reason, ", function name")
		return fmt.Errorf("its input is not valid JSON: %s", reason)
	}
	return errors.New(application.Message())
}
