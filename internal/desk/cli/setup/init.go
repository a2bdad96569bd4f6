package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
)

// Steps has the commands of other packages that `init` runs.
type Steps struct {
	// Run runs another command of claudeops with an environment.
	Run func(ctx context.Context, environ []string, args ...string) error
	// Serve runs Temporal and a worker in this process while the function do runs.
	Serve func(ctx context.Context, environ []string, do func() error) error
}

// initOptions are the flags of `init`. Each that is given is the answer to a question, or its default on a terminal.
type initOptions struct {
	yes                 bool
	maxTier             escalation.Tier
	dayBudget, perChain float64
	every               time.Duration
	hours               string
	notify              string
	ssh                 []string
	sudo                bool
	noDryRun            bool
}

func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set up this machine: find what runs here, ask, write the settings, and look once",
		Long: "Init looks at this machine, asks how far agents may go, what they may spend and when they look, and " +
			"writes the file of\nsettings, the services file and the policy beside it. It shows each change first. " +
			"Then it checks the installation, creates\nthe schedule `" + scheduleID +
			"` and looks once, as a dry run, which costs about a cent. Run it again to change its\nanswers.\n\n" +
			"With --yes it asks nothing: flags, what is set already, and careful defaults are the answers.",
		Example: "  claudeops init\n  claudeops init --yes --max-tier 1 --day-budget 5 --notify " +
			"ntfy://ntfy.sh/your-topic",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.init(cmd.Context(), o, cmd.Flags().Changed) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *initOptions) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.yes, "yes", "y", false, "ask nothing")
	flags.Var(console.TierFlag{Tier: &o.maxTier, Allowed: escalation.Tiers()}, "max-tier",
		"highest tier that may run (default 1)")
	flags.Float64Var(&o.dayBudget, "day-budget", proposedDayBudget,
		"most that all agents spend in a day, in US dollars; 0: no cap")
	flags.Float64Var(&o.perChain, "chain-budget", proposedChainBudget, "most that one chain spends; 0: no cap")
	flags.DurationVar(&o.every, "every", time.Hour, "time from one look to the next; 0: no schedule")
	flags.StringVar(&o.hours, "hours", "",
		"look only in these hours of the day, such as 7-22: the last look begins before the second one")
	flags.StringVar(&o.notify, "notify", "", "where people are told, such as ntfy://ntfy.sh/your-topic")
	flags.StringArrayVar(&o.ssh, "ssh", nil, "host on which agents may run what they may run here; can be repeated")
	flags.BoolVar(&o.sudo, "sudo", false, "let Tier 2 use sudo, which costs it the kernel's sandbox")
	flags.BoolVar(&o.noDryRun, "no-dry-run", false, "do not look at the end")
}

// setting is one run of init.
type setting struct {
	*app

	options initOptions
	given   func(flag string) bool
	place   console.Terminal
	asks    bool

	machine discover.Machine
	cli     discover.CLI
	now     present
	// look is the cost of one look.
	look proposal.Look
	// outside holds the programs that agents would find where the policy grants none, by their names.
	outside map[string]string
}

var errNobodyToAsk = errors.New(
	"there is no terminal to ask on: say --yes, with flags for what the defaults do not suit; nothing was written")

func (a *app) init(ctx context.Context, o initOptions, given func(flag string) bool) error {
	s := &setting{app: a, options: o, given: given}
	var onTerminal bool
	s.place, onTerminal = a.Terminal()
	s.asks = onTerminal && !o.yes
	if a.Output == console.JSON {
		return program.Misuse(errors.New("`claudeops init` asks and explains, so it has no output in JSON; nothing " +
			"was written"))
	}
	if !s.asks && !o.yes {
		return program.Misuse(errNobodyToAsk)
	}
	if err := s.findOut(ctx); err != nil {
		return err
	}
	answers, err := s.firstAnswers()
	if err != nil {
		return program.Misuse(err)
	}
	if s.asks {
		if err := s.ask(ctx, &answers); err != nil {
			return s.left(err)
		}
	}
	if answers.timing.Every > 0 && !answers.keepTiming {
		s.tell("\nLooks %s. %s", answers.timing, proposal.Month(answers.timing, s.look, answers.DayBudgetUSD,
			answers.MaxTier > escalation.TierObserve))
	}
	changed, err := s.write(ctx, answers)
	if err != nil {
		return err
	}
	return s.finish(ctx, answers, changed)
}

// left explains the end of a form.
func (s *setting) left(err error) error {
	if errors.Is(err, huh.ErrUserAborted) || errors.Is(err, context.Canceled) {
		return errors.New("left before the end: nothing was written")
	}
	return fmt.Errorf("ask for the settings: %w; nothing was written", err)
}

// findOut looks at the machine and at the settings that are there, and says what it has found.
func (s *setting) findOut(ctx context.Context) error {
	host := discover.ThisHost(s.Environ)
	if s.Machine != nil {
		host = s.Machine(s.Environ)
	}
	s.Say("Looking at this machine …")
	s.machine = discover.Look(ctx, host)
	var err error
	if s.now, err = readPresent(s.Environ, s.machine); err != nil {
		return err
	}
	s.cli = discover.FindCLI(ctx, host, supervisor.ClaudeOptions(s.now.cfg.Claude, s.now.environ),
		s.now.cfg.Tiers.Tier1.Model)
	s.look = s.lookCost(ctx)
	if !s.forUnit() { // a unit has another PATH
		if s.outside, err = supervisor.ProgramsOutside(s.now.cfg, s.now.environ); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return errors.New("left before the end: nothing was written")
	}
	s.sayFound()
	s.sayPlace()
	return nil
}

// tell prints a sentence, in lines that fit on the terminal.
func (s *setting) tell(format string, args ...any) {
	for _, line := range console.Labelled("", fmt.Sprintf(format, args...), s.Width()) {
		s.Say("%s", line)
	}
}

// sayPlace tells root where the settings go, because root's programs and the unit of systemd read different files.
func (s *setting) sayPlace() {
	switch {
	case !s.machine.Root:
	case s.forUnit():
		s.tell("\nYou are root, and %s is installed: the settings go to %s, which it reads.", s.machine.Unit,
			s.now.files.Env)
	default:
		s.tell("\nYou are root: the settings go to %s, for what root starts in a terminal. To run Claude Ops as a "+
			"service, "+
			"install its unit first (docs/one-machine.md).", s.now.files.Env)
	}
}

// write shows the changes and, if the person agrees, makes them. It returns whether there were any.
func (s *setting) write(ctx context.Context, answers answers) (changed bool, err error) {
	changes, err := proposal.Plan(s.now.files, answers.Answers)
	if err != nil {
		return false, fmt.Errorf("%w; nothing was written", err)
	}
	if len(changes) == 0 {
		s.Say("\nNothing to change in the files: they say what you want.")
		return false, nil
	}
	mask := redact.New(append(slices.Clone(s.now.environ),
		"ANTHROPIC_API_KEY="+answers.APIKey, config.Prefix+"NOTIFY_URLS="+answers.NotifyURLs))
	paths := make([]string, len(changes))
	s.Say("")
	for i, change := range changes {
		paths[i] = change.Path
		writeDiff(s.Stdout, mask.Text(change.Diff()))
	}
	if s.asks {
		agreed := true
		question := huh.NewConfirm().Value(&agreed).Title("Write " + plaintext.Count(len(paths), "file") + "?").
			Description(strings.Join(paths, "\n")).Affirmative("Write").Negative("Leave it")
		if err := s.Ask(ctx, s.place, huh.NewGroup(question)); err != nil {
			return false, s.left(err)
		}
		if !agreed {
			return false, errors.New("nothing was written")
		}
	}
	if ctx.Err() != nil {
		return false, errors.New("left before the end: nothing was written")
	}
	if err := proposal.Write(changes); err != nil {
		return false, err
	}
	for _, path := range paths {
		s.Say("Written: %s", path)
	}
	return true, nil
}

// writeDiff writes a difference. The text can have names from elsewhere, so each line is made safe for a terminal.
func writeDiff(w io.Writer, diff string) {
	for line := range strings.Lines(diff) {
		if !strings.HasPrefix(line, `\ No newline`) {
			_, _ = fmt.Fprintln(w, console.Printable(strings.TrimRight(line, "\n"), longestLine))
		}
	}
	_, _ = fmt.Fprintln(w)
}

// longestLine limits a line of a difference in characters.
const longestLine = 2_000
