package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// choices limits the lines of a list to choose from, and titleLines are those above it.
	choices, titleLines = 8, 5
	// descriptionLines is the height of the field for the description.
	descriptionLines = 5
	// monthLines is the height of the text about the cost of a month, with the title.
	monthLines = 5
	// asItIs is the interval that leaves the schedule as it is.
	asItIs = time.Duration(-1)
)

// access says how agents get at the model.
type access string

// The accesses.
const (
	accessAsIs  access = "" // as it is set
	accessLogin access = "login"
	accessKey   access = "key"
	accessKeep  access = "keep" // put the key of the environment into the file
)

// form holds the answers while a person types them.
type form struct {
	answers *answers
	setting *setting

	access           access
	key              string
	day, chain       string
	every            time.Duration
	hours            string
	services         []string
	projects, remote []string
	repositories     []string
}

// ask asks for the answers. The argument has the defaults.
func (s *setting) ask(ctx context.Context, got *answers) error {
	f := &form{
		answers: got, setting: s,
		day: number(got.DayBudgetUSD), chain: number(got.ChainBudgetUSD), hours: s.options.hours,
		every: got.timing.Every, projects: got.Grants.Projects, remote: got.Grants.SSHHosts,
	}
	for _, service := range got.Services {
		f.services = append(f.services, service.Name)
	}
	groups := slices.Concat(f.modelGroups(), f.machineGroups(), f.limitGroups(), f.grantGroups())
	if err := s.Ask(ctx, s.place, groups...); err != nil {
		return err
	}
	return f.apply()
}

// modelGroups asks how agents get at the model, if that is not settled.
func (f *form) modelGroups() []*huh.Group {
	cli, inFile := f.setting.cli, f.setting.now.keyInFile()
	options := []huh.Option[access]{}
	switch {
	case cli.Credentials != "" && (inFile || cli.Credentials != "ANTHROPIC_API_KEY"):
		return nil
	case cli.Credentials != "":
		f.access = accessKeep
		options = append(options,
			huh.NewOption("Keep the key of this terminal in the file of settings", accessKeep),
			huh.NewOption("Leave it: each terminal that runs claudeops has the key itself", accessAsIs))
	default:
		if cli.Login != "" {
			f.access = accessLogin
			warning := ""
			if f.setting.machine.Root {
				f.access, warning = accessKey, ": agents then run as root"
			}
			options = append(options, huh.NewOption("Use the claude login of this user"+warning, accessLogin))
		}
		options = append(options,
			huh.NewOption("Enter a key of the API; the file of settings keeps it", accessKey),
			huh.NewOption("Later", accessAsIs))
		if cli.Login == "" {
			f.access = accessKey
		}
	}
	how := huh.NewSelect[access]().Value(&f.access).Title("How do agents get at the model?").Options(options...)
	key := huh.NewInput().Value(&f.key).Title("The key").EchoMode(huh.EchoModePassword).
		Description("The supervisor keeps it: each session of an agent gets a key of its own in its place.").
		Validate(f.setting.Valid(func(text string) error {
			if strings.TrimSpace(text) == "" || !plaintext.IsLine(text) {
				return errors.New("paste the key, or go back (shift+tab) and choose another answer")
			}
			return nil
		}))
	return []*huh.Group{
		huh.NewGroup(how),
		huh.NewGroup(key).WithHideFunc(func() bool { return f.access != accessKey }),
	}
}

// machineGroups asks what the machine is.
func (f *form) machineGroups() []*huh.Group {
	describe := huh.NewText().Value(&f.answers.Environment).Lines(descriptionLines).ExternalEditor(false).
		Title("What should agents know of this machine?").
		Description("It is part of every prompt. Write no credentials.")
	groups := []*huh.Group{huh.NewGroup(describe)}
	found := f.setting.newServices()
	if len(found) == 0 {
		return groups
	}
	options := make([]huh.Option[string], len(found))
	for i, service := range found {
		origin, _, _ := strings.Cut(service.Origin, " of the project") // short, for a narrow terminal
		options[i] = huh.NewOption(service.Name+"  ("+origin+")", service.Name)
	}
	choose := multiSelect(&f.services, options).Title("Which of these are services to look after?").
		Description("They go into the services file, for you to complete. x selects.")
	return append(groups, huh.NewGroup(choose))
}

// limitGroups asks for the limits and the schedule.
func (f *form) limitGroups() []*huh.Group {
	got := f.answers
	intervals := []time.Duration{
		15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
		24 * time.Hour,
	}
	if !slices.Contains(intervals, got.timing.Every) && got.timing.Every > 0 {
		intervals = append(intervals, got.timing.Every)
		slices.Sort(intervals)
	}
	var options []huh.Option[time.Duration]
	for _, every := range intervals {
		options = append(options, huh.NewOption(proposal.Timing{Every: every}.String(), every))
	}
	options = append(options, huh.NewOption("not by the clock", time.Duration(0)))
	if got.keepTiming {
		f.every = asItIs
		keep := huh.NewOption("as it is now, hours and all; every 1h if there is no schedule yet", asItIs)
		options = append([]huh.Option[time.Duration]{keep}, options...)
	}
	return []*huh.Group{
		huh.NewGroup(console.TierQuestion(&got.MaxTier).
			Description("The policy says what each tier may do. A person is asked about the rest.")),
		huh.NewGroup(
			huh.NewInput().Value(&f.day).Title("Most dollars in a day, for all agents").Description("0 is no limit.").
				Validate(f.setting.Valid(budget)),
			huh.NewInput().Value(&f.chain).Title("Most dollars for one chain, from look to repair").
				Validate(f.setting.Valid(budget)),
		),
		huh.NewGroup(
			huh.NewSelect[time.Duration]().Value(&f.every).Title("How often should Tier 1 look?").Options(options...).
				Height(len(options)+monthLines).DescriptionFunc(f.month, &f.every),
		),
		huh.NewGroup(
			huh.NewInput().Value(&f.hours).
				Title("Only in some hours of the day? For example 7-22, before 22:00; empty: all day").
				DescriptionFunc(f.month, &f.hours).Validate(f.setting.Valid(f.checkHours)),
		).WithHideFunc(func() bool { return f.every <= 0 }),
		huh.NewGroup(
			huh.NewInput().Value(&got.NotifyURLs).Title("Where are you notified?").
				Description("For example ntfy://ntfy.sh/your-topic, or discord://token@id. A test is sent there. " +
					"Empty: nowhere.").
				Validate(f.setting.Valid(checkTargets)),
		),
	}
}

// month says what a month of looks costs with the answers so far.
func (f *form) month() string {
	timing := f.answers.timing
	timing.Every = f.every
	if f.every == 0 {
		return "Then only people start looks, with: claudeops run"
	}
	if f.every == asItIs {
		return "The schedule `" + scheduleID + "` keeps its times. See them with: claudeops schedule list"
	}
	timing.From, timing.To, _ = proposal.ParseHours(f.hours)
	usd, _ := strconv.ParseFloat(strings.TrimSpace(f.day), 64)
	return proposal.Month(timing, f.setting.look, usd, f.answers.MaxTier > escalation.TierObserve)
}

func (f *form) checkHours(text string) error {
	timing := f.answers.timing
	timing.Every = f.every
	var err error
	if timing.From, timing.To, err = proposal.ParseHours(text); err == nil {
		err = timing.Check()
	}
	if err != nil {
		return fmt.Errorf("it must %w", err)
	}
	return nil
}

// grantGroups asks what agents may use beside the built-in policy. Hosts and sudo are never selected by themselves.
func (f *form) grantGroups() (groups []*huh.Group) {
	s, grants := f.setting, &f.answers.Grants
	if dirs := s.projects(); len(dirs) > 0 {
		groups = append(groups, huh.NewGroup(multiSelect(&f.projects, huh.NewOptions(dirs...)).
			Title("With which Compose projects may agents use docker compose?").
			Description("Tier 1 sees containers and logs, which can hold secrets. Tier 2 starts and restarts "+
				"services.")))
	}
	repositories := slices.DeleteFunc(slices.Clone(s.machine.Repositories),
		func(dir string) bool { return slices.Contains(s.now.cfg.Claude.Repositories, dir) })
	if len(repositories) > 0 {
		groups = append(groups, huh.NewGroup(multiSelect(&f.repositories, huh.NewOptions(repositories...)).
			Title("In which repositories may agents work?").
			Description("They work on plans there, and on what `claudeops run --repository` names.")))
	}
	if hosts := s.sshHosts(*f.answers); len(hosts) > 0 {
		groups = append(groups, huh.NewGroup(multiSelect(&f.remote, huh.NewOptions(hosts...)).
			Title("On which other hosts may agents work, with ssh?").
			Description("Each tier may run there what it may run here, without a sandbox. They need a key of their "+
				"own.")))
	}
	if s.machine.Sudo || grants.Sudo {
		groups = append(groups, huh.NewGroup(huh.NewConfirm().Value(&grants.Sudo).
			Title("May Tier 2 use sudo, which works here without a password?").
			Description("It costs Tier 2 the kernel's sandbox: only the guard then holds what runs as root.").
			Affirmative("Yes").Negative("No")))
	}
	return groups
}

func multiSelect(chosen *[]string, options []huh.Option[string]) *huh.MultiSelect[string] {
	return huh.NewMultiSelect[string]().Options(options...).Value(chosen).
		Height(min(len(options), choices) + titleLines).Filterable(len(options) > choices)
}

// apply puts what was typed into the answers.
func (f *form) apply() error {
	got := f.answers
	var err error
	if got.DayBudgetUSD, err = strconv.ParseFloat(strings.TrimSpace(f.day), 64); err != nil {
		return err
	}
	if got.ChainBudgetUSD, err = strconv.ParseFloat(strings.TrimSpace(f.chain), 64); err != nil {
		return err
	}
	if got.keepTiming = f.every == asItIs; !got.keepTiming {
		got.timing.Every = f.every
		got.timing.From, got.timing.To, err = proposal.ParseHours(f.hours)
	}
	got.Environment = plaintext.Compact(got.Environment)
	got.NotifyURLs = strings.TrimSpace(got.NotifyURLs)
	got.Grants.Projects, got.Grants.SSHHosts = f.projects, f.remote
	if len(f.repositories) > 0 {
		got.Repositories = slices.Concat(f.setting.now.cfg.Claude.Repositories, f.repositories)
	}
	got.Services = slices.DeleteFunc(f.setting.newServices(),
		func(s proposal.Service) bool { return !slices.Contains(f.services, s.Name) })
	if f.access != accessAsIs || f.setting.cli.Credentials == "" {
		got.Login = f.access == accessLogin
	}
	switch f.access {
	case accessKey:
		got.APIKey = strings.TrimSpace(f.key)
	case accessKeep:
		got.APIKey = console.Variable(f.setting.now.outer, "ANTHROPIC_API_KEY")
		got.APIAddress = console.Variable(f.setting.now.outer, "ANTHROPIC_BASE_URL")
	case accessAsIs, accessLogin:
	}
	return err
}

// keyInFile reports whether the file of settings has the key of the model's API.
func (p present) keyInFile() bool {
	const name = "ANTHROPIC_API_KEY"
	return console.Variable(p.environ, name) != "" && console.Variable(p.outer, name) == ""
}

func budget(text string) error {
	if usd, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil || usd < 0 || usd > 1e6 {
		return errors.New("it must be a number of dollars, such as 5 or 2.50")
	}
	return nil
}

func number(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
