package daily

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
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
		Long: "Run starts a chain and prints its ID. If the chain stops within four seconds, run says why. With " +
			"--wait it shows what\nhappens until the chain has ended; notifications that take long are left on their " +
			"way.\n\n" + console.ExitHelp,
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
	flags.BoolVarP(&o.yes, "yes", "y", false,
		"do as configured: do not ask how far agents may go, as the first chain on a terminal does")
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
	id := cmp.Or(o.id, operations.NewChainID(a.Clock()))
	started, err := a.Operations.Chains.Start(ctx, id, input)
	switch {
	case operations.KindOf(err) == operations.KindConflict:
		return fmt.Errorf("%w, or see it with: %s", err, console.LookCommand(id))
	case operations.TimedOut(err):
		return fmt.Errorf("%w; the chain may have started: before you start another one, look with: %s", err,
			console.LookCommand(id))
	case err != nil:
		return err
	}
	if !o.wait {
		err := a.Print(started, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Started chain %s. See it with: %s\n",
				console.PrintableID(started.ChainID), console.LookCommand(started.ChainID))
		})
		a.glance(ctx, started.ChainID)
		return err
	}
	chain, err := a.follow(ctx, started.ChainID)
	return a.printEnded(ctx, chain, err)
}

// glanceTime limits how long run looks at a chain that it has started.
const glanceTime = 4 * time.Second

// glance looks at a chain that was just started, until a model has answered it, or for glanceTime. If the chain needs a
// person or waits already, for example because the worker has no credentials or its database takes no writes, glance
// says why.
func (a *app) glance(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	said := false
	for range time.Tick(glanceTime / 16) {
		now, err := a.Operations.Chains.Get(ctx, id)
		if ctx.Err() != nil {
			return
		}
		if unknown := now.Chain.UnknownServices; len(unknown) > 0 && !said {
			said = true
			a.Say("Not in the services file: %s", console.Printable(strings.Join(unknown, ", "), 1_000))
		}
		if err == nil && a.saysWhyItStays(now) { // otherwise no worker has begun it
			return
		}
	}
}

// saysWhyItStays says why a chain needs a person, waits or has ended badly. It reports whether there is no more to find
// out.
func (a *app) saysWhyItStays(now operations.Snapshot) bool {
	chain := now.Chain
	switch gate := chain.OpenGate(); {
	case gate != nil:
		a.Say("It waits for you: %s. Answer with: %s", console.Printable(gate.Reason, 1_000),
			console.AnswerCommand(chain.ID))
	case chain.Wait != nil:
		a.Say("It waits: %s.", console.Printable(chain.Wait.Reason, 1_000))
	case now.Waits != "":
		a.Say("It waits for %s", console.Printable(now.Waits, 1_000))
	case chain.Outcome == escalation.OutcomeHealthy || chain.Outcome == escalation.OutcomeResolved:
	case chain.Outcome != "":
		a.Say("It has ended (%s): %s.", escalation.InWords(chain.Outcome), console.Printable(chain.Reason, 1_000))
	default:
		return now.Progress != nil && now.Progress.Now.Turns > 0
	}
	return true
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
