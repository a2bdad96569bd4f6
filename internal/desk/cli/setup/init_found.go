package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// foundNames limits the names in a line about what was found.
const foundNames = 6

// sayFound says what was found, a line for each kind.
func (s *setting) sayFound() {
	m, cli := s.machine, s.cli
	say := func(sign, what, text string) {
		label := fmt.Sprintf("%s %-12s ", sign, what)
		for _, line := range console.Labelled(label, console.Printable(text, 300), s.Width()) {
			s.Say("%s", line)
		}
	}
	if cli.Path == "" {
		say("✗", "claude", cli.Problem)
	} else {
		say("✓", "claude", "version "+cli.Version+" at "+cli.Path)
	}
	switch {
	case cli.Credentials != "":
		say("✓", "credentials", cli.Credentials)
	case cli.Login != "":
		say("✓", "credentials", "the login of this user, "+cli.Login)
	default:
		say("✗", "credentials", "no key of the model's API and no claude login")
	}
	list := func(what, thing string, names []string) {
		switch {
		case len(names) > foundNames:
			say("✓", what, plaintext.Count(len(names), thing)+": "+strings.Join(names[:foundNames], ", ")+", …")
		case len(names) > 0:
			say("✓", what, plaintext.Count(len(names), thing)+": "+strings.Join(names, ", "))
		}
	}
	list("containers", "container", names(m.Containers, func(c discover.Container) string { return c.Name }))
	list("projects", "Compose project", names(m.Projects, func(p discover.Project) string {
		return cmp.Or(p.Grant(), p.Name+" (its files are not here)")
	}))
	if problem := supervisor.DescribeOutside(s.outside); problem != "" {
		say("✗", "programs", problem)
	}
	list("units", "own unit", m.OwnUnits)
	if len(m.FailedUnits) > 0 {
		say("✗", "failed", strings.Join(m.FailedUnits, ", "))
	}
	open := slices.DeleteFunc(slices.Clone(m.Ports), func(p discover.Port) bool { return p.Local })
	list("ports", "open port", names(open, func(p discover.Port) string {
		return strings.TrimSpace(strconv.Itoa(p.Number) + " " + p.Program)
	}))
	list("kubectl", "context", m.Contexts)
	if len(m.Repositories) > 0 {
		say("✓", "git", "Compose files in "+strings.Join(m.Repositories, ", "))
	}
	list("ssh", "host", m.SSHHosts)
	if m.Sudo {
		say("✓", "sudo", "works without a password")
	}
	for _, problem := range m.Problems {
		say("–", "not seen", problem)
	}
}

func names[T any](all []T, name func(T) string) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = name(one)
	}
	return texts
}

// lookCost returns the cost of one look, from the records and from what the CLI names.
func (s *setting) lookCost(ctx context.Context) proposal.Look {
	tier := s.now.cfg.Tiers.Tier1
	return proposal.EstimateLook(s.measured(ctx), proposal.Model{
		Alias: tier.Model, FullName: s.cli.Model, CLI: s.cli.Version, BudgetUSD: tier.BudgetUSD,
	})
}

// measured returns what looks have cost; zero if the records cannot say it.
func (s *setting) measured(ctx context.Context) proposal.Measured {
	records, err := supervisor.OpenExisting(ctx, s.now.cfg.State)
	if err != nil {
		return proposal.Measured{} // there are no looks yet, or doctor says what is wrong with the database
	}
	defer func() { _ = records.Close() }()
	return console.MeasuredLooks(ctx, records)
}

// checkTargets checks the places that are notified, as config does.
func checkTargets(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	cfg, err := config.Load([]string{"HOME=/", config.Prefix + "NOTIFY_URLS=" + text})
	if invalid, is := errors.AsType[*config.Error](err); is && len(invalid.Problems) > 0 {
		problem := invalid.Problems[0].Sentence
		if _, short, found := strings.Cut(problem, "name services by URLs: "); found {
			problem = short
		}
		return console.PrintableError(errors.New(problem))
	}
	if err != nil {
		return console.PrintableError(err)
	}
	_, err = cfg.Notify.Targets()
	return err
}
