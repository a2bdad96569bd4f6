package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// answerTimeout is how long an answer may take. It is recorded before it is confirmed.
const answerTimeout = 30 * time.Second

// gateOptions are the flags of `gate`.
type gateOptions struct {
	action   string
	guidance string
	actor    string
	gate     string
	limit    int
}

func (a *app) gateCommand() *cobra.Command {
	var o gateOptions
	cmd := &cobra.Command{
		Use:   "gate [CHAIN]",
		Short: "List the chains that wait for a person, or answer one",
		Long: "Gate lists the open gates, the oldest first. With the ID of a chain it shows that chain's gate and\n" +
			"asks for an answer:\n\n" +
			"  c  continue-session  go on with the interrupted session, if the gate offers it\n" +
			"  f  fix               run the tier again in a new session\n" +
			"  o  override          accept the state; the chain ends overridden\n" +
			"  q  abort             the chain ends aborted\n\n" +
			"Guidance for the agent may follow after a colon, as in `c: leave the database alone`. With --action it asks\n" +
			"nothing and needs no terminal; with --output json and without --action it only shows.\n\n" + exitHelp,
		Example: "  starter gate\n  starter gate CHAIN\n  starter gate CHAIN --action f --guidance \"look at the proxy\" --actor ada",
		Args:    oneArgumentAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(len(args) == 1); err != nil {
				return misuse(err)
			}
			if len(args) == 0 {
				return a.inbox(cmd.Context(), o.limit)
			}
			o.actor = a.actor(o.actor)
			return a.gate(cmd.Context(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.action, "action", "", "the answer, without asking: c, f, o or q, or the name in full")
	flags.StringVar(&o.guidance, "guidance", "", "what the agent is told; goes with --action")
	flags.StringVar(&o.actor, "actor", "", "who answers, for the record (default: the user)")
	flags.StringVar(&o.gate, "gate", "", "answer only if this gate is the one that is open, such as gate-2")
	flags.IntVar(&o.limit, "limit", 100, "list at most this many")
	return cmd
}

func (o gateOptions) check(named bool) error {
	switch {
	case o.limit < 1:
		return fmt.Errorf("--limit %d is less than one gate", o.limit)
	case !named && (o.action != "" || o.guidance != "" || o.gate != "" || o.actor != ""):
		return errors.New("name the chain whose gate is to be answered; `starter gate` without flags lists them")
	case o.action == "" && o.guidance != "":
		return errors.New("--guidance goes with --action")
	default:
		return nil
	}
}

// actor is the name of whoever starts a chain or answers its gate: the one that was given, or the user's.
func (a *app) actor(given string) string {
	name := cmp.Or(given, variable(a.environ, "USER"), variable(a.environ, "LOGNAME"))
	if name != "" {
		return name
	}
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return "" // the workflow refuses an answer that nobody gives, and says so
}

// gate shows the gate of a chain and answers it.
func (a *app) gate(ctx context.Context, id string, o gateOptions) error {
	if err := escalation.CheckActor(o.actor); err != nil {
		return misuse(err)
	}
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	gate, err := a.queryGate(ctx, c, id)
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, a.whyNoAnswer(ctx, c, id, err))
	}
	if o.gate != "" && o.gate != gate.ID {
		return misuse(fmt.Errorf("chain %s: the gate that is open is %s, not %s", id, gate.ID, printable(o.gate, 60)))
	}
	if o.action == "" && a.output == outputJSON {
		return a.print(gate, nil)
	}
	answer, err := a.reply(ctx, id, *gate, o)
	if err != nil {
		return err
	}
	answer.Actor = o.actor
	resolution, err := resolveGate(ctx, c, id, answer)
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, err)
	}
	return a.print(resolution, func(w io.Writer) { _, _ = fmt.Fprintln(w, printable(resolution.Next, 600)) })
}

// reply gets the answer from the flags, or from the person at the terminal.
func (a *app) reply(ctx context.Context, id string, gate escalation.Gate, o gateOptions) (escalation.GateAnswer, error) {
	if o.action != "" {
		answer, err := escalation.ParseGateReply(gate, o.action)
		switch {
		case err != nil:
			return answer, misuse(fmt.Errorf("chain %s: %w", id, cleaned(err)))
		case o.guidance != "" && answer.Guidance != "":
			return answer, misuse(errors.New("--guidance and guidance after the colon of --action exclude each other"))
		}
		answer.Guidance = cmp.Or(answer.Guidance, o.guidance)
		return answer, nil
	}
	place, ok := a.terminal()
	if !ok {
		return escalation.GateAnswer{}, misuse(fmt.Errorf(
			"chain %s waits at %s, and there is no terminal to ask at: answer with --action", id, gate.ID))
	}
	return a.ask(ctx, place, id, gate)
}

// errNoGate says that a chain does not wait for a person.
var errNoGate = errors.New("it does not wait at a gate; `starter gate` lists the chains that do")

// queryGate asks a chain for the gate at which it waits.
func (a *app) queryGate(ctx context.Context, c client.Client, id string) (*escalation.Gate, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, id, "", workflows.GateQuery)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, errNoSuchChain
	}
	if err != nil {
		return nil, err
	}
	var gate *escalation.Gate
	if err := answer.Get(&gate); err != nil {
		return nil, err
	}
	if gate == nil {
		return nil, errNoGate
	}
	return gate, nil
}

// resolveGate answers a gate. A refusal is an error with the workflow's sentence, and marked as misuse.
func resolveGate(ctx context.Context, c client.Client, id string, answer escalation.GateAnswer) (escalation.GateResolution, error) {
	var resolution escalation.GateResolution
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	update, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: workflows.ResolveGate, Args: []any{answer},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, &resolution)
	}
	return resolution, refusal(err)
}

// refusal makes a sentence of the error of an update.
func refusal(err error) error {
	_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case cut:
		return fmt.Errorf("nobody confirmed the answer within %s; look again before you repeat it", answerTimeout)
	case unknown:
		return errors.New("it has ended, and needs no answer any more")
	case refused:
		return misuse(cleaned(rootCause(err)))
	}
	return err
}

// cleaned makes an error that may hold agents' words safe for a terminal.
func cleaned(err error) error { return errors.New(printable(err.Error(), 1_000)) }
