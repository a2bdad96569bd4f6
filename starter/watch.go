package main

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) watchCommand() *cobra.Command {
	var actor string
	cmd := &cobra.Command{
		Use:   "watch CHAIN",
		Short: "Follow a chain live, and answer its gates in place",
		Long: "Watch shows a chain as it runs: its tiers, tool calls, cost, waits and the chains of its issues. When it waits\n" +
			"at a gate, the gate can be answered there, as `starter gate` does. Ctrl-C leaves; the chain goes on.\n" +
			"Where there is no terminal it prints lines, as `starter run --wait` does.\n\n" + exitHelp,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args[0], a.actor(actor)) },
	}
	cmd.Flags().StringVar(&actor, "actor", "", "who answers, for the record (default: the user)")
	return cmd
}

// watch follows the chain of that ID until it has ended, or until the person has seen enough.
func (a *app) watch(ctx context.Context, id, actor string) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	described, err := describeChain(ctx, c, id)
	if err != nil {
		return fmt.Errorf("chain %s: %w", printable(id, 200), err)
	}
	run := c.GetWorkflow(ctx, id, described.GetExecution().GetRunId())
	place, ok := a.terminal()
	if !ok {
		chain, err := a.follow(ctx, c, run)
		return a.printEnded(chain, err)
	}
	chain, err := a.watchOn(ctx, place, c, run, actor)
	if errors.Is(err, errLeft) {
		a.sayGoesOn(id)
		return nil
	}
	return a.printEnded(chain, err)
}

// sayGoesOn tells a person who leaves a chain that it is not left by its agent.
func (a *app) sayGoesOn(id string) {
	a.say("Chain %s goes on. See it with: %s; end it with: %s", printable(id, maxChainID), lookCommand(id), endCommand(id))
}

// errLeft says that the person does not want to see more.
var errLeft = errors.New("left")

// watchOn shows the chain on a terminal until it has ended, or the person leaves.
func (a *app) watchOn(
	ctx context.Context, place terminal, c client.Client, run client.WorkflowRun, actor string,
) (escalation.Chain, error) {
	seeing, stop := context.WithCancel(ctx)
	defer stop()
	model := &watchModel{app: a, id: run.GetID(), answer: func(answer escalation.GateAnswer) tea.Msg {
		answer.Actor = actor
		resolution, err := resolveGate(seeing, c, run.GetID(), answer)
		return answeredMsg{answer.GateID, resolution.Next, err}
	}}
	program := tea.NewProgram(model, place.options(ctx, a.environ)...)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		chain, err := spectator{c, run, a.patience}.follow(seeing, display{program})
		program.Send(endedMsg{chain, err})
	}()
	_, err := program.Run()
	stop()
	<-gone
	switch {
	case ctx.Err() != nil:
		return escalation.Chain{}, ctx.Err()
	case err != nil:
		return escalation.Chain{}, fmt.Errorf("show chain %s: %w", run.GetID(), err)
	case model.ended == nil:
		return escalation.Chain{}, errLeft
	}
	return model.ended.chain, model.ended.err
}

// display is the program on the terminal, as a spectator sees it.
type display struct {
	program *tea.Program
}

var _ audience = display{}

// saw implements audience.
func (d display) saw(now sight) { d.program.Send(now) }

// sawNobody implements audience.
func (d display) sawNobody() { d.program.Send(nobodyMsg{}) }
