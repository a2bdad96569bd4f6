package daily

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded/crontime"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// defaultCatchup limits the delay of a cycle after an outage of Temporal. If the delay would be longer, Temporal
	// skips the cycle. Each cycle examines the current state, so several cycles at once after an outage would be of no
	// use.
	defaultCatchup = time.Minute
	// longestEvery is the longest interval. Much longer ones are those with which amend makes up for a change of the
	// clocks.
	longestEvery = 10 * 365 * 24 * time.Hour
	// leastCatchup is Temporal's minimum catch-up window.
	leastCatchup = 10 * time.Second
)

// scheduleOptions holds the flags of `schedule create`.
type scheduleOptions struct {
	console.InputFlags

	every, offset time.Duration
	hours         string
	cron          []string
	timezone      string
	// timing is what --every and --hours say; zero without --hours.
	timing         proposal.Timing
	jitter         time.Duration
	overlap        string
	catchup        time.Duration
	pauseOnFailure bool
	paused         bool
	note           string
	actor          string
}

func (a *app) createScheduleCommand() *cobra.Command {
	var o scheduleOptions
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create a schedule",
		Long: "Create makes a schedule that starts a chain every so often (--every, and --hours) or at the times " +
			"of a cron\nexpression (--cron). What a chain does is said with the same flags as for `claudeops run`. Each has a " +
			"conversation of its own.\n\nWith --pause-on-failure a chain that ends failed pauses the schedule. With " +
			"gates that is rare: a chain that cannot go\non waits at its gate, of which people are told, and its " +
			"cycle ends well. Chains that end failed without a gate pause\nit: where there are no gates " +
			"(CLAUDEOPS_GATE_TIMEOUT=0s), and where the input is wrong for the workers.",
		Example: "  claudeops schedule create hourly --every 1h --jitter 5m\n" +
			"  claudeops schedule create nightly --cron '30 2 * * *' --timezone Europe/Berlin --service nas " +
			"--max-tier 2",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := o.withHours(cmd.Flags().Changed, a.Environ)
			if err != nil {
				return program.Misuse(err)
			}
			return a.createSchedule(cmd.Context(), args[0], &o, given)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// register adds the flags of o to flags.
func (o *scheduleOptions) register(flags *pflag.FlagSet) {
	flags.DurationVar(&o.every, "every", 0, "time from one cycle to the next, such as 30m or 1h")
	flags.DurationVar(&o.offset, "offset", 0,
		"with --every: how long after the full interval, such as 10m for ten past each hour")
	flags.StringVar(&o.hours, "hours", "",
		"with --every: only in these hours of the day, such as 7-22: the last cycle begins before the second one")
	flags.StringArrayVar(&o.cron, "cron", nil,
		"cron expression with 5 to 7 fields, or @daily and its like; can be repeated")
	flags.StringVar(&o.timezone, "timezone", "",
		"time zone, such as Europe/Berlin, with --cron (default UTC) or --hours (default this machine's); a time that "+
			"its clocks skip or repeat runs once")
	flags.DurationVar(&o.jitter, "jitter", 0, "start each cycle up to this much later, by chance")
	flags.StringVar(&o.overlap, "overlap", "skip", "what if the cycle before still runs: "+operations.OverlapNames())
	flags.DurationVar(&o.catchup, "catchup-window", defaultCatchup,
		"how late a cycle may still start after an outage of Temporal")
	flags.BoolVar(&o.pauseOnFailure, "pause-on-failure", false,
		"pause the schedule when a cycle's chain ends failed; rare with gates, see above")
	flags.BoolVar(&o.paused, "paused", false, "create it paused")
	flags.StringVar(&o.note, "note", "", "what it is for, for others to read")
	flags.StringVar(&o.actor, "actor", "", "who starts its chains, for the record (default: the name of your user)")
	o.Register(flags)
}

func (a *app) createSchedule(ctx context.Context, id string, o *scheduleOptions, given func(flag string) bool) error {
	input, err := o.Input(a.Stdin)
	if err == nil {
		err = o.check(id, given)
	}
	switch {
	case err != nil:
	case !given("every") && !given("cron"):
		err = errWhen
	case given("offset") && !given("every"):
		err = errOffset
	case given("timezone") && !given("cron"):
		err = errTimezone
	}
	if input.Actor = a.Actor(o.actor); err == nil {
		err = input.Validate() // again, because the actor was set after the first validation
	}
	if err != nil {
		return program.Misuse(err)
	}
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	o.note = a.Operations.MaskInput(o.note)
	options, err := o.schedule(id, cfg.Worker.TaskQueue, input)
	if err != nil {
		return program.Misuse(err)
	}
	if err := amend(id, &options.Spec, a.Clock()); err != nil {
		return err
	}
	schedule, err := c.ScheduleClient().Create(ctx, options)
	if err != nil {
		return operations.ScheduleError(id, err)
	}
	described, err := schedule.Describe(ctx)
	if err != nil {
		return operations.ScheduleError(id, err)
	}
	created := operations.DescribeSchedule(id, described, c.Converter)
	return a.Print(created, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Created schedule %s, %s. Its chains %s.\n", id, created.When,
			operations.ScheduleMay(created.Input, cfg.Chain.MaxTier))
		if cost := a.oftenCosts(ctx, cfg, o, input); cost != "" {
			_, _ = fmt.Fprintln(w, cost)
		}
		if len(created.Next) > 0 && !created.Paused {
			_, _ = fmt.Fprintf(w, "The next cycle is at %s.\n", localTime(created.Next[0]))
		}
	})
}

// often is the number of looks in a day above which a new schedule says what they cost.
const often = 100

// oftenCosts says what a month of looks costs if a schedule looks often; otherwise "".
func (a *app) oftenCosts(
	ctx context.Context, cfg config.Config, o *scheduleOptions, input workflows.ChainInput,
) string {
	timing := o.timing
	if o.every > 0 {
		timing.Every = o.every
	}
	if timing.Every == 0 || timing.PerDay() <= often || input.StartTier > escalation.TierObserve {
		return ""
	}
	var measured proposal.Measured
	if records, _, err := a.Operations.OpenRecords(ctx); err == nil {
		measured = console.MeasuredLooks(ctx, records)
	}
	look := proposal.EstimateLook(measured, proposal.Model{
		Alias:     cmp.Or(input.Models[escalation.TierObserve], cfg.Tiers.Tier1.Model),
		BudgetUSD: cfg.Tiers.Tier1.BudgetUSD,
	})
	return proposal.Month(timing, look, cfg.Limits.DayBudgetUSD,
		cfg.Chain.MaxTier > escalation.TierObserve && !input.DryRun && input.MaxTier != escalation.TierObserve)
}

var (
	errWhen     = errors.New("give either --every or --cron")
	errOffset   = errors.New("--offset goes with --every only")
	errTimezone = errors.New("--timezone goes with --cron or --hours only")
)

// withHours replaces --every and --hours by the cron expression that they stand for. It returns which flags count as
// given then.
func (o *scheduleOptions) withHours(
	given func(flag string) bool, environ []string,
) (func(flag string) bool, error) {
	if !given("hours") {
		return given, nil
	}
	if !given("every") || given("cron") || given("offset") {
		return nil, errors.New("--hours goes with --every, and neither with --cron nor with --offset")
	}
	o.timing = proposal.Timing{Every: o.every, Zone: cmp.Or(o.timezone, proposal.LocalZone(environ), "UTC")}
	var err error
	if o.timing.From, o.timing.To, err = proposal.ParseHours(o.hours); err != nil {
		return nil, fmt.Errorf("--hours is %q; it must %w", o.hours, err)
	}
	if err := o.timing.Check(); err != nil {
		return nil, fmt.Errorf("--every is %s; it must %w", o.every, err)
	}
	if o.timing.Cron() == "" { // the whole day
		return given, nil
	}
	o.every, o.cron, o.timezone = 0, []string{o.timing.Cron()}, o.timing.Zone
	return func(flag string) bool {
		if flag == "cron" || flag == "timezone" {
			return true
		}
		return flag != "every" && given(flag)
	}, nil
}

// marks tell what amend adds.
var marks = crontime.Marks{Comment: operations.OnceSkipped, Every: operations.OnceRepeated}

// amend lets a schedule start once in the nights in which the clocks skip or repeat one of its times.
func amend(id string, spec *client.ScheduleSpec, now time.Time) error {
	if err := crontime.Amend(spec, marks, now); err != nil {
		return operations.Invalid(fmt.Errorf("schedule %s: Temporal refuses it: %w", id, err))
	}
	return nil
}

// check returns the first error in the flags. It omits some checks that Temporal makes, for example of time zones.
func (o *scheduleOptions) check(id string, given func(flag string) bool) error {
	if err := operations.CheckID("schedule ID", id); err != nil {
		return err
	}
	switch {
	case given("every") && given("cron"):
		return errWhen
	case given("every") && (o.every < time.Second || o.every%time.Second != 0):
		return fmt.Errorf("--every %s must be one or more whole seconds", o.every)
	case o.every > longestEvery:
		return fmt.Errorf("--every %s must be at most %s", o.every, escalation.ShortDuration(longestEvery))
	case given("offset") && given("cron"):
		return errOffset
	case o.offset < 0 || given("every") && o.offset > 0 && o.offset >= o.every || o.offset%time.Second != 0:
		return fmt.Errorf("--offset %s must be whole seconds, and less than --every", o.offset)
	case given("timezone") && given("every"):
		return errTimezone
	case o.jitter < 0:
		return fmt.Errorf("--jitter %s must not be negative", o.jitter)
	case o.catchup < leastCatchup:
		return fmt.Errorf("--catchup-window %s must be at least %s, which is the shortest that Temporal knows",
			o.catchup, leastCatchup)
	}
	for _, expression := range o.cron {
		if strings.TrimSpace(expression) == "" {
			return errors.New("--cron must not be empty")
		}
	}
	policy, err := operations.OverlapPolicy(o.overlap)
	if err == nil && o.pauseOnFailure && policy == enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL {
		return errors.New("--pause-on-failure is of no use with --overlap allow_all: Temporal does not watch what " +
			"may overlap")
	}
	return err
}

// schedule returns the options with which Temporal creates the schedule.
func (o *scheduleOptions) schedule(id, queue string, input workflows.ChainInput) (client.ScheduleOptions, error) {
	overlap, err := operations.OverlapPolicy(o.overlap)
	if err != nil {
		return client.ScheduleOptions{}, err
	}
	spec := client.ScheduleSpec{TimeZoneName: o.timezone, Jitter: o.jitter}
	if o.every > 0 {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: o.every, Offset: o.offset}}
	}
	spec.CronExpressions = o.expressions()
	input.Trigger = escalation.TriggerScheduled
	return client.ScheduleOptions{
		ID:   id,
		Spec: spec,
		Action: &client.ScheduleWorkflowAction{
			ID:            workflows.CycleWorkflowID(id),
			Workflow:      workflows.CycleWorkflow,
			Args:          []any{input},
			TaskQueue:     queue,
			StaticSummary: "cycle of schedule " + id,
		},
		Overlap:        overlap,
		CatchupWindow:  o.catchup,
		PauseOnFailure: o.pauseOnFailure,
		Paused:         o.paused,
		Note:           o.note,
	}, nil
}

// expressions returns the cron expressions, each with a comment.
func (o *scheduleOptions) expressions() (expressions []string) {
	for _, expression := range o.cron {
		expressions = append(expressions, commented(expression))
	}
	return expressions
}

// commented appends to a cron expression a comment that repeats the expression. If the expression already has a
// comment, commented returns it unchanged. Temporal converts the expression to another form but keeps the comment, so
// that people can still read the expression.
func commented(expression string) string {
	if strings.Contains(expression, "#") {
		return expression
	}
	return expression + " # " + expression
}
