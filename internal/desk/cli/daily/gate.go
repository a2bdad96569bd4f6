package daily

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// gateOptions are the flags of `gate`.
type gateOptions struct {
	action   string
	guidance string
	actor    string
	gate     string
	force    bool
	limit    int
}

// plainWidth is the width of a gate's text where there is no terminal, in characters.
const plainWidth = 100

func (a *app) gateCommand() *cobra.Command {
	var o gateOptions
	cmd := &cobra.Command{
		Use:   "gate [CHAIN]",
		Short: "List the chains that wait for a person, or answer one",
		Long: "Gate lists the open gates, the most severe first. With the ID of a chain it shows that chain's gate " +
			"and\nasks for an answer:\n\n" +
			"  c  continue-session  the agent goes on and keeps what it knows, if the gate offers it\n" +
			"  f  fix               the tier starts fresh, in a new session\n" +
			"  l  look-again        you have fixed it: tier 1 looks, and the chain ends if all is well\n" +
			"  o  override          accept the state; the chain ends\n" +
			"  q  abort             the chain ends\n\n" +
			"Guidance for the agent may follow after a colon, as in `c: leave the database alone`. With --action it " +
			"asks\nnothing and needs no terminal; with --output json and without --action it only shows.\n\n" +
			console.ExitHelp,
		Example: "  claudeops gate\n  claudeops gate CHAIN\n  claudeops gate CHAIN --action f --guidance \"look at " +
			"the proxy\" --actor ada", Args: console.OneArgumentAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(len(args) == 1); err != nil {
				return program.Misuse(err)
			}
			if len(args) == 0 {
				return a.listGates(cmd.Context(), o.limit)
			}
			o.actor = a.Actor(o.actor)
			return a.answerGate(cmd.Context(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.action, "action", "", "the answer, without asking: c, f, l, o or q, or the name in full")
	flags.StringVar(&o.guidance, "guidance", "", "what the agent is told; goes with --action")
	flags.StringVar(&o.actor, "actor", "", "who answers, for the record (default: the user)")
	flags.StringVar(&o.gate, "gate", "", "answer only if this gate is the one that is open, such as gate-2")
	flags.BoolVar(&o.force, "force", false, "begin now, although restarts are used up; goes with --action")
	flags.IntVar(&o.limit, "limit", 100, "list at most this many")
	return cmd
}

func (o gateOptions) check(named bool) error {
	switch {
	case o.limit < 1:
		return console.CheckLimit(o.limit, "gate")
	case !named && (o.action != "" || o.guidance != "" || o.gate != "" || o.actor != "" || o.force):
		return errors.New("name the chain whose gate is to be answered; `claudeops gate` without flags lists them")
	case o.action == "" && (o.guidance != "" || o.force):
		return errors.New("--guidance and --force go with --action")
	default:
		return nil
	}
}

// answerGate shows the gate of a chain, and answers the gate.
func (a *app) answerGate(ctx context.Context, id string, o gateOptions) error {
	if err := escalation.CheckActor(o.actor); err != nil {
		return program.Misuse(err)
	}
	gate, err := a.Operations.Gates.Get(ctx, id)
	if err != nil {
		return err
	}
	if o.gate != "" && o.gate != gate.ID {
		return program.Misuse(fmt.Errorf("chain %s: the gate that is open is %s, not %s", id, gate.ID,
			console.Printable(o.gate, 60)))
	}
	if o.action == "" && a.Output == console.JSON {
		return a.Print(gate, nil)
	}
	answer, err := a.replyTo(ctx, id, *gate, o)
	if err != nil {
		return err
	}
	answer.Actor = o.actor
	resolution, err := a.Operations.Gates.Answer(ctx, id, answer)
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, err)
	}
	return a.Print(resolution, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, console.Printable(resolution.Next, 600))
		if _, ends := gate.Ending(escalation.GateClosing{Action: answer.Action, Actor: answer.Actor}); !ends {
			_, _ = fmt.Fprintln(w, "Follow it with:", console.WatchCommand(id))
		}
	})
}

// replyTo returns the answer in the flags. If the flags contain no answer, replyTo asks the person at the terminal.
func (a *app) replyTo(
	ctx context.Context, id string, gate escalation.Gate, o gateOptions,
) (escalation.GateAnswer, error) {
	if o.action != "" {
		answer, err := escalation.ParseGateReply(gate, o.action)
		switch {
		case err != nil:
			return answer, program.Misuse(fmt.Errorf("chain %s: %w", id, console.PrintableError(err)))
		case o.guidance != "" && answer.Guidance != "":
			return answer, program.Misuse(errors.New("--guidance and guidance after the colon of --action exclude " +
				"each other"))
		}
		answer.Guidance, answer.Force = cmp.Or(answer.Guidance, o.guidance), o.force
		return answer, nil
	}
	place, ok := a.Terminal()
	if !ok {
		show := func(w io.Writer) {
			_, _ = fmt.Fprintln(w, strings.Join(gateText(a.Clock, id, gate, plainWidth), "\n"))
		}
		if err := a.Print(gate, show); err != nil {
			return escalation.GateAnswer{}, err
		}
		return escalation.GateAnswer{}, program.Misuse(fmt.Errorf(
			"chain %s waits at %s, and there is no terminal to ask at: answer with --action", id, gate.ID))
	}
	return a.askAtGate(ctx, place, id, gate)
}
