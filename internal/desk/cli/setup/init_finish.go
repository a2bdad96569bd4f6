package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

const (
	// scheduleID is the ID of the schedule that init creates.
	scheduleID = "looks"
	// scheduleJitter keeps several machines from looking at the same second.
	scheduleJitter = "5m"
	// temporalPatience limits the wait for a Temporal that may not run.
	temporalPatience = 5 * time.Second
)

// errLeftLate is the error if the person leaves after the files are written.
var errLeftLate = errors.New("left before the look; the files are written")

// ending is what init does after the files are written.
type ending struct {
	*setting

	answers answers
	cfg     config.Config
	environ []string
	// look reports that a dry run is wanted and possible.
	look bool
	// ready reports that the CLI and credentials are there, and onlyDry that the schedule repairs nothing, although the
	// answers permit it.
	ready, onlyDry bool
	// serves reports that init runs Temporal itself, and changed that it has written files.
	serves, changed bool
}

// finish tries the notifications, checks the installation, creates the schedule and looks once. Where no Temporal runs,
// it runs one in this process for that time.
func (s *setting) finish(ctx context.Context, got answers, changed bool) error {
	e := &ending{setting: s, answers: got, environ: config.Environ(s.now.outer), changed: changed}
	var err error
	if e.cfg, err = config.Load(s.now.outer); err != nil {
		return fmt.Errorf("the files are written, and the settings do not work: %w", err)
	}
	e.sayOverridden()
	if changed && got.NotifyURLs != "" {
		e.tryNotifications(ctx)
	}
	if e.look, err = e.wantsLook(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errLeftLate
	}
	switch {
	case e.temporalAnswers(ctx):
		return e.work(ctx, true)
	case e.look && e.mayServe():
		e.serves = true
		e.tell("\nNo Temporal runs here yet. Running it and a worker in this process, as `claudeops up` does, until " +
			"this is done …")
		return e.steps.Serve(ctx, e.environ, func() error { return e.work(ctx, true) })
	}
	return e.work(ctx, false)
}

// work checks the installation and, if Temporal answers, creates the schedule and looks once. Then it says what comes
// next.
func (e *ending) work(ctx context.Context, temporal bool) error {
	e.Say("\nThe installation, as `claudeops doctor` sees it:")
	inner := e.In(e.environ)
	findings := (&app{inner, e.steps}).examine(ctx)
	_ = inner.Close() // the findings name what does not work
	if ctx.Err() != nil {
		return errLeftLate
	}
	writeFindings(e.Stdout, e.Width(), findings)
	var err error
	if temporal && e.answers.timing.Every > 0 {
		err = e.schedule(ctx)
	}
	if err == nil && temporal && e.look {
		err = e.dryRun(ctx)
	}
	if err != nil {
		return err
	}
	e.sayNext(temporal)
	return nil
}

// sayOverridden names the settings that do not count, because the environment sets them, too.
func (e *ending) sayOverridden() {
	var names []string
	for _, name := range []string{
		"ENVIRONMENT", "MAX_TIER", "DAY_BUDGET_USD", "CHAIN_BUDGET_USD", "NOTIFY_URLS", "SERVICES_FILE", "POLICY_FILE",
	} {
		if console.Variable(e.now.outer, config.Prefix+name) != "" {
			names = append(names, config.Prefix+name)
		}
	}
	if len(names) > 0 {
		e.tell("\nThe environment of this terminal wins over the file, and sets: %s", strings.Join(names, ", "))
	}
	if key := "ANTHROPIC_API_KEY"; console.Variable(e.now.outer, key) != "" && e.answers.APIKey == "" {
		e.tell("\n%s is set in this terminal. Programs that start elsewhere, such as `claudeops up`, need it, too.",
			key)
	}
}

func (e *ending) tryNotifications(ctx context.Context) {
	e.Say("\nA test of the notifications:")
	targets, err := e.cfg.Notify.Targets()
	if err != nil {
		e.Say("✗ %s", console.PrintableError(err))
		return
	}
	writeAttempts(e.Stdout, e.tryTargets(ctx, e.cfg, targets))
}

// wantsLook reports whether to look once. Without the CLI or credentials there is nothing to look with.
func (e *ending) wantsLook(ctx context.Context) (bool, error) {
	_, credentials := claude.Credentials(supervisor.ClaudeOptions(e.cfg.Claude, e.environ))
	e.ready = e.cli.Path != "" && credentials
	switch {
	case e.options.noDryRun:
		return false, nil
	case e.cli.Path == "":
		e.tell("\nNo look now: %s", e.cli.Problem)
		return false, nil
	case !credentials:
		e.tell("\nNo look now: agents find no credentials.")
		return false, nil
	case !e.asks:
		return true, nil
	}
	wanted := true
	question := huh.NewConfirm().Value(&wanted).Title("Look once now, as a dry run that changes nothing?").
		Description(fmt.Sprintf("It takes a few minutes and costs about %s (%s), at most %s.",
			e.setting.look.Text(), e.setting.look.Basis,
			plaintext.Dollars(e.cfg.Tiers.Tier1.BudgetUSD))).
		Affirmative("Look").Negative("Not now")
	err := e.Ask(ctx, e.place, huh.NewGroup(question))
	if errors.Is(err, huh.ErrUserAborted) {
		return false, errLeftLate
	}
	return wanted, err
}

// temporalAnswers reports whether a Temporal runs where the settings say.
func (e *ending) temporalAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, temporalPatience)
	defer cancel()
	options, err := supervisor.ConnectionOptions(e.environ, e.cfg, e.QuietLogger())
	if err != nil {
		return false // doctor says why
	}
	connected, err := supervisor.Connect(ctx, options)
	if err != nil {
		return false
	}
	connected.Close()
	return true
}

// mayServe reports whether init may run Temporal itself: the settings name no other one, and no unit of systemd will.
func (e *ending) mayServe() bool {
	options, err := supervisor.ConnectionOptions(e.environ, e.cfg, e.QuietLogger())
	return err == nil && supervisor.IsOnThisHost(options.HostPort) &&
		console.Variable(e.environ, "TEMPORAL_ADDRESS") == "" && !e.forUnit()
}

// forUnit reports whether the settings are those of a unit of systemd.
func (s *setting) forUnit() bool { return strings.HasPrefix(s.now.files.Env, unitSettings+"/") }

// createFlags returns the flags for a new schedule. Where Tier 1 is the highest, its looks change nothing anyway, and
// people are told of what they find, as of a dry run they are not. Where repairs are permitted, it begins as a dry run.
func (e *ending) createFlags() []string {
	flags := append(e.answers.timing.Flags(), "--jitter", scheduleJitter)
	if e.answers.MaxTier > escalation.TierObserve {
		flags = append(flags, "--dry-run")
	}
	return flags
}

// schedule creates the schedule, or gives the one that is there its new times. Everything else of it stays.
func (e *ending) schedule(ctx context.Context) error {
	exists, err := e.scheduleExists(ctx)
	if err != nil {
		return err
	}
	e.onlyDry = e.onlyDry || !exists && e.answers.MaxTier > escalation.TierObserve
	switch {
	case !exists:
		return e.run(ctx, append([]string{"schedule", "create", scheduleID}, e.createFlags()...)...)
	case e.answers.keepTiming:
		return nil
	default:
		return e.run(ctx, append([]string{"schedule", "update", scheduleID}, e.answers.timing.Flags()...)...)
	}
}

// run runs another command of claudeops, and shows it.
func (e *ending) run(ctx context.Context, args ...string) error {
	e.Say("\n$ %s", commandLine(args))
	return e.steps.Run(ctx, e.environ, args...)
}

// commandLine returns a command of claudeops as a person would type it.
func commandLine(args []string) string {
	words := make([]string, len(args))
	for i, word := range args {
		words[i] = word
		if strings.ContainsAny(word, " *'\"$") {
			words[i] = console.ShellQuote(word)
		}
	}
	return "claudeops " + strings.Join(words, " ")
}

func (e *ending) scheduleExists(ctx context.Context) (bool, error) {
	inner := e.In(e.environ)
	found, err := inner.Operations.Schedules.Get(ctx, scheduleID)
	closed := inner.Close()
	var input struct {
		DryRun bool `json:"dry_run"`
	}
	if err == nil && json.Unmarshal(found.Input, &input) == nil {
		e.onlyDry = input.DryRun
	}
	if operations.KindOf(err) == operations.KindNotFound {
		return false, closed
	}
	return err == nil, errors.Join(err, closed)
}

// sayNext says which commands come next: without the CLI or credentials, what is missing, and init again.
func (e *ending) sayNext(temporal bool) {
	e.Say("\nNext:")
	next := func(command, what string) { e.Say("  %s\n      %s", command, what) }
	if !e.ready {
		e.sayMissing(next)
		return
	}
	prefix := ""
	scheduled := e.answers.timing.Every > 0
	switch {
	case e.forUnit():
		prefix = strings.Join(unitVariables, " ") + " "
		next("systemctl enable --now "+e.machine.Unit, "run it always")
	case e.serves && scheduled:
		next("claudeops up", "in a terminal of its own: the pages, Temporal and a worker. The schedule works while it "+
			"runs")
	case e.serves || !temporal:
		next("claudeops up", "in a terminal of its own: the pages, Temporal and a worker")
	case e.changed:
		next("claudeops up", "end the one that runs and start it again: it reads the settings when it starts")
	}
	if !temporal {
		next(prefix+"claudeops run --wait --dry-run", "look once, from another terminal")
	}
	if !temporal && scheduled {
		args := slices.Concat([]string{"schedule", "create", scheduleID}, e.createFlags())
		next(prefix+commandLine(args), "look by the clock")
	}
	if temporal && scheduled && e.onlyDry && e.answers.MaxTier > escalation.TierObserve {
		next(prefix+"claudeops schedule update "+scheduleID+" --dry-run=false",
			"let it repair, when you trust the verdicts")
	}
	next("claudeops init", "change the answers")
}

// sayMissing says what agents lack.
func (e *ending) sayMissing(next func(command, what string)) {
	if e.cli.Path == "" {
		next("npm install -g @anthropic-ai/claude-code@"+claude.NewestTested(),
			"install the claude CLI (https://docs.claude.com/en/docs/claude-code)")
	}
	if _, found := claude.Credentials(supervisor.ClaudeOptions(e.cfg.Claude, e.environ)); !found {
		next("ANTHROPIC_API_KEY=… in "+e.now.files.Env, "give agents a key of the model's API; or log in with claude")
	}
	next("claudeops init", "go on: look once, and look by the clock")
}
