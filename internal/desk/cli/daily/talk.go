package daily

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// talkOptions are the flags of the command.
type talkOptions struct {
	message, messageID, chain, actor string

	turn, confirm, history int
	showContext, end       bool
}

func (a *app) talkCommand() *cobra.Command {
	o := &talkOptions{}
	cmd := &cobra.Command{
		Use:   "talk [NAME]",
		Short: "Talk to the supervisor, also about a chain",
		Long: "Talk opens a conversation about your infrastructure. It looks and changes nothing: what it proposes " +
			"is done only if you\nconfirm it, in your name. NAME is the conversation; without it, each user has one " +
			"of their own. A conversation survives\nthe end of this command, of workers and of Temporal: what you " +
			"send is answered.\n\nOn a terminal it shows a screen: Enter sends, /yes N carries out a proposal, " +
			"Ctrl-C stops the running turn, and once\nmore leaves. With --message it sends one message, prints the " +
			"answer, and ends with 0; without an answer it says why\nand ends with 1. Ctrl-C then stops the turn.\n\n" +
			"With --chain the conversation begins with a copy of the last session of that chain: ask it what it did, " +
			"and why.",
		Example: "  claudeops talk\n  claudeops talk --message \"how is jellyfin?\"\n" +
			"  claudeops talk --chain chain-20261121-020140-b7dd05\n" +
			"  claudeops talk --turn 3 --confirm 1\n  claudeops talk --show-context",
		Args: console.OneArgumentAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.talk(cmd.Context(), strings.Join(args, ""), *o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.message, "message", "m", "",
		"send this message and print the answer; - reads it from standard input")
	flags.StringVar(&o.messageID, "message-id", "",
		"ID of the message: sent again with it, it is answered once (default: a new one)")
	flags.StringVar(&o.chain, "chain", "", "talk about this chain")
	flags.StringVar(&o.actor, "actor", "", "who talks, for the record (default: the user)")
	flags.IntVar(&o.confirm, "confirm", 0, "carry out this proposal of the turn that --turn names")
	flags.IntVar(&o.turn, "turn", 0, "the turn for --confirm and --show-context (default for the latter: the latest "+
		"one)")
	flags.IntVar(&o.history, "history", 0, "print this many of the latest turns")
	flags.BoolVar(&o.end, "end", false, "end the conversation; the next message begins it anew, from the latest answer")
	flags.BoolVar(&o.showContext, "show-context", false, "print what was sent in addition to a message")
	return cmd
}

// check returns an error if the flags exclude each other.
func (o talkOptions) check() error {
	given := 0
	for _, is := range []bool{o.message != "", o.confirm != 0, o.history != 0, o.showContext, o.end} {
		if is {
			given++
		}
	}
	if given > 1 {
		return errors.New("--message, --confirm, --history, --end and --show-context exclude each other")
	}
	if o.confirm != 0 && o.turn <= 0 {
		return errors.New("--confirm needs --turn: give the turn that has shown you the proposal, and not the latest " +
			"one")
	}
	return nil
}

// talk runs the command.
func (a *app) talk(ctx context.Context, name string, o talkOptions) error {
	o.actor = a.Actor(o.actor)
	name = cmp.Or(name, a.nameFor(o))
	err := o.check()
	if err == nil && name != escalation.OwnConversation {
		err = escalation.CheckConversationName(name)
	}
	if err != nil {
		return program.Misuse(err)
	}
	switch place, ok := a.Terminal(); {
	case o.message != "":
		return a.sendOne(ctx, name, o)
	case o.confirm != 0:
		return a.confirmOne(ctx, name, o)
	case o.showContext:
		return a.printContext(ctx, name, o)
	case o.history != 0:
		return a.printHistory(ctx, name, o)
	case o.end:
		return a.end(ctx, name)
	case !ok:
		return program.Misuse(errors.New("there is no terminal for a screen: send a message with --message"))
	default:
		return a.talkOn(ctx, place, name, o)
	}
}

// nameFor returns the name of the conversation if the person gives none: that of the chain or of the person. A server
// knows the person by the token.
func (a *app) nameFor(o talkOptions) string {
	switch {
	case o.chain != "":
		return escalation.AboutChain(o.chain)
	case a.Operations.Server != "":
		return escalation.OwnConversation
	default:
		return escalation.PersonalConversation(o.actor)
	}
}

// newMessage returns the message that the flags describe.
func (a *app) newMessage(o talkOptions) (escalation.TalkMessage, error) {
	message := escalation.TalkMessage{MessageID: cmp.Or(o.messageID, uuid.NewString()), Text: o.message, Actor: o.actor}
	if o.message == "-" {
		text, err := io.ReadAll(io.LimitReader(a.Stdin, 4*escalation.MaxTalkText+1))
		if err != nil {
			return message, fmt.Errorf("read the message: %w", err)
		}
		message.Text = string(text)
	}
	return message, nil
}

// sendOne sends a message, waits for the answer, and prints it.
func (a *app) sendOne(ctx context.Context, name string, o talkOptions) error {
	message, err := a.newMessage(o)
	if err != nil {
		return err
	}
	turn, err := a.Operations.Conversations.Send(ctx, name, o.chain, message)
	if operations.KindOf(err) == operations.KindFailure && err != nil {
		return fmt.Errorf("%w; the message may have arrived: with --message-id %s it is sent again and paid once", err,
			message.MessageID)
	}
	if err != nil {
		return err
	}
	ended, err := a.Operations.Conversations.Wait(ctx, name, turn)
	if ctx.Err() != nil {
		// The command ends anyway, and says itself if the turn could not be stopped.
		_, stopErr := a.Operations.Conversations.Stop(context.WithoutCancel(ctx), name, turn, o.actor)
		return errors.Join(ctx.Err(), stopErr)
	}
	if err != nil {
		return fmt.Errorf("%w; the message has arrived: claudeops talk %s --history 5 shows its answer, turn %d", err,
			name, turn)
	}
	ended.Text = message.Text
	if err := a.Print(ended, func(w io.Writer) { writeAnswer(w, ended, a.Width()) }); err != nil {
		return err
	}
	if ended.State != escalation.TalkAnswered {
		return console.PrintableError(errors.New(ended.Failure))
	}
	return nil
}

// writeAnswer writes the reply of a turn, with its proposals. Output that does not go to a terminal has the reply in
// Markdown, as it is.
func writeAnswer(w io.Writer, turn escalation.TalkTurn, width int) {
	if turn.Note != "" {
		_, _ = fmt.Fprintf(w, "(%s)\n\n", console.Printable(turn.Note, 1_000))
	}
	switch {
	case turn.Reply == "":
	case width == console.AnyWidth:
		_, _ = fmt.Fprintln(w, strings.TrimSpace(plaintext.Block(turn.Reply)))
	default:
		_, _ = fmt.Fprintln(w, strings.Join(reply(turn.Reply, width), "\n"))
	}
	for i, proposal := range turn.Proposals {
		what, why := console.Printable(proposal.Describe(), escalation.MaxDescription),
			console.Printable(proposal.Why, 500)
		_, _ = fmt.Fprintf(w, "\nProposal %d: %s\n  why: %s\n", i+1, what, why)
	}
	if len(turn.Proposals) > 0 {
		_, _ = fmt.Fprintf(w, "\nNothing was done. To have it done in your name: claudeops talk %s --turn %d "+
			"--confirm N\n",
			strings.TrimPrefix(turn.ConversationID, escalation.ConversationPrefix), turn.Turn)
	}
}

// confirmCommand returns the flags that confirm a proposal.
func confirmCommand(turn, number int) string {
	return fmt.Sprintf("--turn %d --confirm %d", turn, number)
}

// turnOf returns the turn that the flags name, or the latest one.
func (a *app) turnOf(ctx context.Context, name string, o talkOptions) (escalation.TalkTurn, error) {
	if o.turn != 0 {
		return a.Operations.Conversations.Turn(ctx, name, o.turn)
	}
	turns, err := a.Operations.Conversations.History(ctx, name, 1)
	if err == nil && len(turns) == 0 {
		err = fmt.Errorf("conversation %s has no turn yet", name)
	}
	if err != nil {
		return escalation.TalkTurn{}, err
	}
	return a.Operations.Conversations.Turn(ctx, name, turns[0].Turn)
}

// confirmOne carries out a proposal.
func (a *app) confirmOne(ctx context.Context, name string, o talkOptions) error {
	result, err := a.Operations.Conversations.Confirm(ctx, name, o.turn, o.confirm, operations.Actor{Name: o.actor})
	if operations.KindOf(err) == operations.KindConflict {
		return fmt.Errorf("%w; nothing was done", err)
	}
	if err != nil {
		return err
	}
	return a.Print(map[string]string{"result": result}, func(w io.Writer) {
		_,
			_ = fmt.Fprintln(w, console.Printable(result, 1_000))
	})
}

// end ends a conversation.
func (a *app) end(ctx context.Context, name string) error {
	if err := a.Operations.Conversations.End(ctx, name); err != nil {
		return err
	}
	return a.Print(map[string]string{"ended": name}, func(w io.Writer) {
		_,
			_ = fmt.Fprintf(w, "conversation %s is ended\n", name)
	})
}

// printContext prints what was sent in addition to the message of a turn.
func (a *app) printContext(ctx context.Context, name string, o talkOptions) error {
	turn, err := a.turnOf(ctx, name, o)
	return console.PrintResult(a.Console, turn, err, func(w io.Writer, turn escalation.TalkTurn) {
		_, _ = fmt.Fprintln(w, plaintext.Block(turn.Context))
	})
}

// printHistory prints the latest turns.
func (a *app) printHistory(ctx context.Context, name string, o talkOptions) error {
	turns, err := a.Operations.Conversations.History(ctx, name, o.history)
	if err != nil {
		return err
	}
	return a.Print(turns, func(w io.Writer) {
		for _, turn := range turns {
			text := strings.Join(linesOf(a.Clock, turn, a.Width(), confirmCommand), "\n")
			if a.Width() == console.AnyWidth { // no terminal
				text = ansi.Strip(text)
			}
			_, _ = fmt.Fprintln(w, text)
		}
	})
}
