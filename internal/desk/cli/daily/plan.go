package daily

import (
	"context"
	"fmt"
	"io"
	"path"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

func (a *app) planCommand() *cobra.Command {
	return console.Parent(&cobra.Command{
		Use:   "plan",
		Short: "Review a plan in a repository, or carry it out",
		Long: "A plan is a committed Markdown file with phases: headings such as \"## Phase 1: The port\", with " +
			"checklists. An author\nworks in a worktree of its own, and a reviewer reads each commit. What needs a " +
			"person waits at a gate.\n\nBoth are chains: `claudeops chain`, `chains`, `watch`, `gate` and `cancel` " +
			"take their IDs.",
	}, "the plan",
		a.startPlanCommand(escalation.PlanReviewed, "review FILE",
			"Have a plan reviewed, and amended until it is approved"),
		a.startPlanCommand(escalation.PlanRun, "run FILE",
			"Carry out the phases of a plan, one reviewed commit for each"),
		a.planStatusCommand())
}

// planOptions are the flags of `plan review` and `plan run`.
type planOptions struct {
	console.RequestFlags

	id     string
	actor  string
	phases []string
	budget float64
	wait   bool
}

func (a *app) startPlanCommand(task escalation.PlanTask, use, short string) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + ".\nFILE is the path of the plan below the agents' working directory; it must be committed " +
			"there. With --wait\nthe command shows what happens until the chain has ended.\n\n" + console.ExitHelp,
		Example: "  claudeops plan " + string(task) + " docs/ports.md --repository infra --wait",
		Args:    console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.startPlan(cmd.Context(), task, args[0], o)
		},
	}
	flags := cmd.Flags()
	o.Register(flags)
	flags.StringVar(&o.id, "id", "", "workflow ID of the chain (default: one made of the task, the repository and "+
		"the file)")
	flags.StringVar(&o.actor, "actor", "", "who starts it, for the record (default: the name of your user)")
	flags.Float64Var(&o.budget, "budget", 0, "lowers the budget of the chain, in US dollars (default: the workers')")
	flags.BoolVarP(&o.wait, "wait", "w", false, "follow the chain until it has ended")
	if task == escalation.PlanRun {
		flags.StringSliceVar(&o.phases, "phase", nil,
			"number of a phase to carry out (default: all that are not done); can be repeated")
	}
	return cmd
}

func (a *app) startPlan(ctx context.Context, task escalation.PlanTask, file string, o planOptions) error {
	start := operations.PlanStart{Task: task, ID: o.id, Input: workflows.PlanInput{
		File: path.Clean(file), Repository: o.Repository, Phases: o.phases, BudgetUSD: o.budget,
		Actor: a.Actor(o.actor),
	}}
	var err error
	if start.Input.Prompt, err = o.Request(a.Stdin); err == nil {
		err = console.NameFlag(start.Check())
	}
	if err != nil {
		return program.Misuse(err)
	}
	started, err := a.Operations.Plans.Start(ctx, start)
	if operations.KindOf(err) == operations.KindConflict {
		return fmt.Errorf("%w; see the running chains with: claudeops chains --running", err)
	}
	if err != nil {
		return err
	}
	if !o.wait {
		return a.Print(started, func(w io.Writer) {
			writeStartedPlan(w, a.Width(), started)
			_, _ = fmt.Fprintf(w, "Started %s. See it with: %s\n",
				console.PrintableID(started.ChainID), console.PlanCommand(started.ChainID))
		})
	}
	if a.Output != console.JSON {
		writeStartedPlan(a.Stdout, a.Width(), started)
	}
	chain, err := a.follow(ctx, started.ChainID)
	return a.printEnded(ctx, chain, err)
}

// planStatus is the result of `plan status`.
type planStatus struct {
	ChainID string `json:"chain_id"`
	// State is running, waits for a person, or the outcome.
	State   string             `json:"state"`
	Outcome escalation.Outcome `json:"outcome,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	CostUSD float64            `json:"cost_usd"`
	// Gate is the open gate; nil if there is none.
	Gate *escalation.Gate `json:"gate,omitempty"`

	escalation.PlanState
}

func (a *app) planStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status ID",
		Short: "Show how far the phases of a plan are, and what they cost",
		Long: "Status shows each phase of the plan of a chain: its status, its approved commit, the sessions of " +
			"author and reviewer,\nhow many of the blocking findings were fixed, and what phase, reviews and each " +
			"fixed finding have cost.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.showPlan(cmd.Context(), args[0]) },
	}
}

func (a *app) showPlan(ctx context.Context, id string) error {
	now, err := a.Operations.Chains.Get(ctx, id)
	if err != nil {
		return err
	}
	if now.Chain.Plan == nil {
		return program.Misuse(fmt.Errorf("chain %s works on no plan; see it with: %s", console.PrintableID(id),
			console.LookCommand(id)))
	}
	status := planStatus{
		ChainID: id, State: stateOf(now), Outcome: now.Chain.Outcome, Reason: now.Chain.Reason, CostUSD: now.CostUSD(),
		Gate: now.Chain.OpenGate(), PlanState: *now.Chain.Plan,
	}
	return a.Print(status, func(w io.Writer) { writePlan(w, a.Clock, a.Width(), now) })
}
