package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

const (
	// proposedDayBudget is enough for hourly looks and a repair by Tier 2, in US dollars.
	proposedDayBudget = 5
	// proposedChainBudget is the sum of the budgets of Tiers 1 and 2.
	proposedChainBudget = 3
)

// unitSettings is the directory of the settings that the units of systemd read (docs/one-machine.md).
const unitSettings = "/etc/claudeops"

// unitVariables is the environment of the units of deploy/systemd.
var unitVariables = []string{
	envfile.Variable + "=" + unitSettings + "/claudeops.env", config.Prefix + "STATE_DIR=/var/lib/claudeops/state",
}

// present is what is set before init changes anything.
type present struct {
	cfg config.Config
	// outer is the environment without the variables of the file of settings, and environ with them.
	outer, environ []string
	files          proposal.Files
	// first reports that there are no settings yet.
	first bool
	// catalog lists the services of the services file; nil if there is none.
	catalog *escalation.Catalog
	// grants are those that init has granted before, and ownProjects are projects that the operator has granted.
	grants      proposal.Grants
	ownProjects []string
}

// readPresent reads the settings that are there. As root, on a machine with a unit of Claude Ops, it takes the file
// that the unit reads.
func readPresent(environ []string, machine discover.Machine) (present, error) {
	now := present{outer: withoutFile(environ)}
	if machine.Root && machine.Unit != "" && console.Variable(now.outer, envfile.Variable) == "" {
		now.outer = append(now.outer, unitVariables...)
	}
	path, _ := envfile.Find(now.outer)
	switch {
	case path == "":
		return now, errors.New("there is no place for the settings: set HOME, or CLAUDEOPS_ENV_FILE to an absolute " +
			"path")
	case !filepath.IsAbs(path):
		return now, fmt.Errorf("%s is %q; it must be an absolute path", envfile.Variable, path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator's own file
	now.first = errors.Is(err, fs.ErrNotExist) || err == nil && onlyComments(string(text))
	loaded := now.outer
	if now.first { // the variable may name a file that init is to create
		loaded = slices.DeleteFunc(slices.Clone(loaded),
			func(entry string) bool { return strings.HasPrefix(entry, envfile.Variable+"=") })
	}
	now.environ = config.Environ(loaded)
	if now.cfg, err = config.Load(loaded); err != nil {
		return now, err
	}
	now.files = proposal.Beside(path, now.cfg.Services.File, now.cfg.Guard.PolicyFile)
	now.catalog = now.cfg.Services.Catalog
	// left by an earlier installation
	if text, err := os.ReadFile(now.files.Services); err == nil && now.catalog == nil {
		if now.catalog, err = config.ParseServices(text, filepath.Dir(now.files.Services)); err != nil {
			return now, fmt.Errorf("%s: %w", now.files.Services, err)
		}
	}
	if text, err := os.ReadFile(now.files.Policy); err == nil {
		now.grants, now.ownProjects = proposal.ReadGrants(string(text))
	}
	return now, nil
}

// onlyComments reports that a file of settings has none, as the one that a package brings.
func onlyComments(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// withoutFile returns environ without the variables that come from the file of settings. Main has added them.
func withoutFile(environ []string) []string {
	file, err := envfile.Read(environ, func(string) bool { return false })
	if err != nil {
		return slices.Clone(environ)
	}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return file.Line(name, value) > 0
	})
}

// says reports whether a setting has a value in the environment or in the file of settings.
func (p present) says(name string) bool { return console.Variable(p.environ, config.Prefix+name) != "" }

// answers is what the operator wants: the content of the files, and the schedule.
type answers struct {
	proposal.Answers

	timing proposal.Timing // Every is 0 for no schedule
	// keepTiming leaves a schedule that is there as it is.
	keepTiming bool
}

// firstAnswers returns the answers before anybody is asked: what is set already or, on the first run, a proposal; the
// flags win.
func (s *setting) firstAnswers() (answers, error) {
	got := answers{
		Answers: proposal.Answers{
			Environment:    cmp.Or(s.now.cfg.Claude.Environment, proposal.Describe(s.machine)),
			MaxTier:        escalation.TierObserve,
			DayBudgetUSD:   proposedDayBudget,
			ChainBudgetUSD: proposedChainBudget,
			NotifyURLs:     console.Variable(s.now.environ, config.Prefix+"NOTIFY_URLS"),
			Login:          s.now.cfg.Claude.Login || s.usesLogin(),
			Grants:         s.now.grants,
		},
		timing:     proposal.Timing{Every: time.Hour, Zone: proposal.LocalZone(s.now.environ)},
		keepTiming: !s.now.first && !s.given("every") && !s.given("hours"),
	}
	if s.now.cfg.SaysMaxTier() {
		got.MaxTier = s.now.cfg.Chain.MaxTier
	}
	if s.now.says("DAY_BUDGET_USD") {
		got.DayBudgetUSD = s.now.cfg.Limits.DayBudgetUSD
	}
	if s.now.says("CHAIN_BUDGET_USD") {
		got.ChainBudgetUSD = s.now.cfg.Limits.ChainBudgetUSD
	}
	if s.now.first { // later runs add only what a person selects
		got.Services = s.newServices()
		got.Grants.Projects = s.runningProjects()
	}
	err := s.applyFlags(&got)
	return got, err
}

// usesLogin reports whether agents should use the login of this user without being asked: if there is nothing else.
// With a login of root, agents would run as root.
func (s *setting) usesLogin() bool {
	return s.cli.Credentials == "" && s.cli.Login != "" && !s.machine.Root
}

// applyFlags changes the answers that flags give.
func (s *setting) applyFlags(got *answers) error {
	o := s.options
	for flag, apply := range map[string]func(){
		"max-tier":     func() { got.MaxTier = o.maxTier },
		"day-budget":   func() { got.DayBudgetUSD = o.dayBudget },
		"chain-budget": func() { got.ChainBudgetUSD = o.perChain },
		"every":        func() { got.timing.Every = o.every },
		"notify":       func() { got.NotifyURLs = o.notify },
		"ssh":          func() { got.Grants.SSHHosts = o.ssh },
		"sudo":         func() { got.Grants.Sudo = o.sudo },
	} {
		if s.given(flag) {
			apply()
		}
	}
	var err error
	if got.timing.From, got.timing.To, err = proposal.ParseHours(o.hours); err != nil {
		return fmt.Errorf("--hours is %q; it must %w", o.hours, err)
	}
	if err := got.timing.Check(); err != nil && got.timing.Every != 0 {
		return fmt.Errorf("--every is %s; it must %w", o.every, err)
	}
	if err := checkTargets(got.NotifyURLs); err != nil && s.given("notify") {
		return fmt.Errorf("--notify is no place that can be notified: %w", err)
	}
	for _, host := range got.Grants.SSHHosts {
		if !discover.IsHostName(host) {
			return fmt.Errorf("--ssh is %q; it must be the name of a host", host)
		}
	}
	switch {
	case got.DayBudgetUSD < 0 || got.ChainBudgetUSD < 0:
		return errors.New("a budget must not be negative")
	case got.Grants.Sudo && !s.now.grants.Sudo && !s.machine.Sudo:
		return errors.New("--sudo is of no use here: this user has no sudo without a password")
	}
	return nil
}

// newServices returns the services that were found and are in no services file yet.
func (s *setting) newServices() []proposal.Service {
	return proposal.Unknown(proposal.Services(s.machine), s.now.catalog)
}

// projects returns the Compose projects that init can grant: those whose files were found, and those that it has
// granted.
func (s *setting) projects() []string {
	dirs := slices.Clone(s.now.grants.Projects)
	for _, project := range s.machine.Projects {
		if project.Dir != "" {
			dirs = append(dirs, project.Grant())
		}
	}
	slices.Sort(dirs)
	return slices.DeleteFunc(slices.Compact(dirs),
		func(dir string) bool { return slices.Contains(s.now.ownProjects, dir) })
}

// runningProjects returns the projects whose containers run, if agents may run the engine. Files of Compose that lie
// around may belong to nothing that runs here, so that a person selects them.
func (s *setting) runningProjects() []string {
	if s.outside[s.machine.Engine] != "" {
		return nil
	}
	return slices.DeleteFunc(s.projects(), func(grant string) bool {
		return !slices.ContainsFunc(s.machine.Projects,
			func(p discover.Project) bool { return p.Running && p.Grant() == grant })
	})
}

// sshHosts returns the hosts that init can grant.
func (s *setting) sshHosts(answers answers) []string {
	hosts := slices.Concat(s.machine.SSHHosts, answers.Grants.SSHHosts)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
