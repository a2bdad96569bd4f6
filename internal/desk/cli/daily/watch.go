package daily

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) watchCommand() *cobra.Command {
	var actor string
	cmd := &cobra.Command{
		Use:   "watch CHAIN",
		Short: "Follow a chain live, and answer its gates in place",
		Long: "Watch shows a chain as it runs: its tiers, tool calls, cost, waits and the chains of its issues. When " +
			"it waits\nat a gate, the gate can be answered there, as `claudeops gate` does. Ctrl-C leaves; the chain " +
			"goes on.\nWhere there is no terminal it prints lines, as `claudeops run --wait` does.\n\n" +
			console.ExitHelp,
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args[0], a.Actor(actor)) },
	}
	cmd.Flags().StringVar(&actor, "actor", "", "who answers, for the record (default: the user)")
	return cmd
}

// watch follows the chain with the given ID until the chain has ended or the person closes the screen.
func (a *app) watch(ctx context.Context, id, actor string) error {
	place, ok := a.Terminal()
	if !ok {
		chain, err := a.follow(ctx, id)
		return a.printEnded(ctx, chain, err)
	}
	chain, err := a.watchOn(ctx, place, id, actor)
	if errors.Is(err, errLeft) {
		a.sayGoesOn(id)
		return nil
	}
	return a.printEnded(ctx, chain, err)
}

// errLeft means that the person has closed the screen before the chain has ended.
var errLeft = errors.New("left")

// watchOn shows the chain on a terminal until the chain has ended or the person closes the screen.
func (a *app) watchOn(
	ctx context.Context, place console.Terminal, id, actor string,
) (escalation.Chain, error) {
	seeing, stop := context.WithCancel(ctx)
	defer stop()
	model := &watchModel{app: a, id: id, answer: func(answer escalation.GateAnswer) tea.Msg {
		answer.Actor = actor
		resolution, err := a.Operations.Gates.Answer(seeing, id, answer)
		return answeredMsg{answer.GateID, resolution.Next, err}
	}}
	screen := tea.NewProgram(model, place.Options(ctx, a.Environ)...)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		chain, err := a.Operations.Chains.Follow(seeing, id, display{screen})
		screen.Send(chainEndedMsg{chain, err})
	}()
	_, err := screen.Run()
	stop()
	<-gone
	switch {
	case ctx.Err() != nil:
		return escalation.Chain{}, ctx.Err()
	case err != nil:
		return escalation.Chain{}, fmt.Errorf("show chain %s: %w", id, err)
	case model.ended == nil:
		return escalation.Chain{}, errLeft
	}
	return model.ended.chain, model.ended.err
}

// display sends a follower's snapshots to the screen.
type display struct {
	screen *tea.Program
}

var _ operations.Observer = display{}

// Saw implements operations.Observer.
func (d display) Saw(now operations.Snapshot) { d.screen.Send(now) }

// SawNobody implements operations.Observer.
func (d display) SawNobody() { d.screen.Send(nobodyMsg{}) }
