package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/workflows"
)

// runOptions are the flags of `run`.
type runOptions struct {
	console.InputFlags

	id         string
	trigger    string
	resumeFrom string
	actor      string
	wait       bool
	yes        bool
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start a chain",
		Long: "Run starts a chain and prints its ID. With --wait it shows what happens until the chain has ended;\n" +
			"notifications that take long are left on their way.\n\n" + console.ExitHelp,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	o.Register(flags)
	flags.StringVar(&o.id, "id", "", "workflow ID of the chain (default: one with the time in it)")
	flags.StringVar(&o.trigger, "trigger", string(escalation.TriggerManual), "what started the chain, for lists")
	flags.StringVar(&o.resumeFrom, "resume-from", "", "id of a conversation to start from")
	flags.StringVar(&o.actor, "actor", "", "who starts the chain, for the record (default: the name of your user)")
	flags.BoolVarP(&o.wait, "wait", "w", false, "follow the chain until it has ended")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do as configured: do not ask how far agents may go, as the first chain on a terminal does")
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions) error {
	input, err := a.runInput(o)
	if err != nil {
		return program.Misuse(err)
	}
	if input, err = a.permitted(ctx, input, o.yes); err != nil {
		return err
	}
	started, err := a.Operations.Chains.Start(ctx, o.id, input)
	if operations.KindOf(err) == operations.KindConflict {
		return fmt.Errorf("%w, or see it with: %s", err, console.LookCommand(o.id))
	}
	if err != nil {
		return err
	}
	if !o.wait {
		return a.Print(started, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Started chain %s. See it with: %s\n",
				console.PrintableID(started.ChainID), console.LookCommand(started.ChainID))
		})
	}
	chain, err := a.follow(ctx, started.ChainID)
	return a.printEnded(chain, err)
}

// runInput builds the workflow's input from the flags. It validates the input, so that an invalid input starts no
// chain.
func (a *app) runInput(o runOptions) (workflows.ChainInput, error) {
	if o.id != "" {
		if err := operations.CheckChainID(o.id); err != nil {
			return workflows.ChainInput{}, console.NameFlag(err)
		}
	}
	input, err := o.Input(a.Stdin)
	if err != nil {
		return input, err
	}
	input.Trigger, input.Actor = escalation.Trigger(o.trigger), a.Actor(o.actor)
	if o.resumeFrom != "" {
		input.ResumeFrom = &workflows.ResumeFrom{SessionID: o.resumeFrom}
	}
	return input, input.Validate()
}
