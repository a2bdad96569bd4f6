// Package proposal makes the first settings of an installation from what package discover has found and what the
// operator wants, and changes those that are there. It computes all changes first (Plan), so that they can be shown
// before Write makes them.
//
// The files belong to the operator. A change touches only the values and entries that `claudeops init` has written, or
// adds lines; all other lines stay as they are. Everything that it adds has a comment.
package proposal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

// Files holds the absolute paths of the files of an installation.
type Files struct {
	// Env is the file of settings, Services the services file, and Policy the policy.
	Env, Services, Policy string
}

// Beside returns files beside a file of settings. Paths that are set already win.
func Beside(env, services, policy string) Files {
	files := Files{Env: env, Services: services, Policy: policy}
	if services == "" {
		files.Services = filepath.Join(filepath.Dir(env), "services.yaml")
	}
	if policy == "" {
		files.Policy = filepath.Join(filepath.Dir(env), "policy.yaml")
	}
	return files
}

// Answers holds what the operator wants.
type Answers struct {
	// Environment describes the machine for agents, on one line.
	Environment string
	MaxTier     escalation.Tier
	// DayBudgetUSD and ChainBudgetUSD are in US dollars; 0 is no cap.
	DayBudgetUSD, ChainBudgetUSD float64
	// NotifyURLs has the form of CLAUDEOPS_NOTIFY_URLS.
	NotifyURLs string
	// APIKey is a key of the model's API to keep in the file of settings; empty to keep none.
	APIKey string
	// APIAddress is the address of the model's API to which APIKey belongs; empty for the usual one.
	APIAddress string
	// Login has agents use the claude login of this user.
	Login bool
	// Repositories lists the directories of repositories in which agents may work; empty to leave the setting as it is.
	Repositories []string
	// Services lists services to add to the services file.
	Services []Service
	Grants   Grants
}

// Plan returns the changes of the files for the answers; nil if nothing has to change.
func Plan(files Files, answers Answers) ([]Change, error) {
	services, err := planServices(files.Services, answers.Services)
	if err != nil {
		return nil, err
	}
	policy, err := planPolicy(files.Policy, answers.Grants)
	if err != nil {
		return nil, err
	}
	settings := answers.settings()
	if services.There() {
		settings = append(settings, envfile.Setting{
			Name: "CLAUDEOPS_SERVICES_FILE", Value: files.Services,
			Comment: "Your services, for you to complete (docs/services.md).",
		})
	}
	if policy.There() {
		settings = append(settings, envfile.Setting{
			Name: "CLAUDEOPS_POLICY_FILE", Value: files.Policy,
			Comment: "What agents may do beside the built-in policy (docs/policy.md).",
		})
	}
	env, err := planEnv(files.Env, settings)
	if err != nil {
		return nil, err
	}
	// The file of settings names the others, so it comes last: after a failure it names no file that is missing.
	var changes []Change
	for _, change := range []Change{services, policy, env} {
		if change.Old != change.New {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// envHead begins a new file of settings.
const envHead = `# Settings of Claude Ops (claudeops config lists all). The environment wins.
# Written by claudeops init: run it again to change what it asks for.
`

func planEnv(path string, settings []envfile.Setting) (Change, error) {
	change, err := read(path, 0o600)
	if err != nil {
		return change, err
	}
	change.private = true
	if change.New == "" {
		change.New = envHead
	}
	for _, setting := range settings {
		if change.New, err = envfile.Set(change.New, setting); err != nil {
			return change, fmt.Errorf("%s: %w", path, err)
		}
	}
	return change, nil
}

// settings returns the settings that do not depend on the other files, with the comments for new lines.
func (a Answers) settings() []envfile.Setting {
	dollars := func(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
	var settings []envfile.Setting
	set := func(name, value, comment string) {
		settings = append(settings, envfile.Setting{Name: name, Value: value, Comment: comment})
	}
	if a.APIKey != "" {
		set("ANTHROPIC_API_KEY", a.APIKey,
			"The key of the model's API. The supervisor keeps it: each session of an\nagent gets a key of its own in "+
				"its place.")
	}
	if a.APIAddress != "" {
		set("ANTHROPIC_BASE_URL", a.APIAddress, "The address of the model's API, to which the key belongs.")
	}
	if a.Login {
		set("CLAUDEOPS_CLAUDE_CONFIG_DIR", "login",
			"Agents use the claude login of this user, and their commands can read it.\n"+
				"Set ANTHROPIC_API_KEY instead to keep the credential with the worker.\n"+
				"With a login, agents of root run as root.")
	}
	set("CLAUDEOPS_ENVIRONMENT", a.Environment, "What runs here. It is part of every prompt, so write no credentials.")
	set("CLAUDEOPS_MAX_TIER", strconv.Itoa(int(a.MaxTier)),
		"Highest tier that may run: 1 looks, 2 makes safe repairs, 3 makes all repairs.")
	set("CLAUDEOPS_DAY_BUDGET_USD", dollars(a.DayBudgetUSD),
		"Most that all agents spend in a day (UTC), in US dollars; 0: no cap.")
	set("CLAUDEOPS_CHAIN_BUDGET_USD", dollars(a.ChainBudgetUSD),
		"Most that one chain spends, from look to repair; 0: no cap.")
	set("CLAUDEOPS_NOTIFY_URLS", a.NotifyURLs,
		"Where people are told, such as ntfy://ntfy.sh/your-topic\n(docs/notifications.md). Try it: claudeops notify "+
			"test")
	if len(a.Repositories) > 0 {
		set("CLAUDEOPS_REPOSITORIES", strings.Join(a.Repositories, ","),
			"Repositories in which agents may work, such as on plans (docs/repositories.md).")
	}
	return settings
}

// read returns the change of a file that changes nothing yet. If the file is missing, Old and New are empty.
func read(path string, mode fs.FileMode) (Change, error) {
	change := Change{Path: path, mode: mode}
	text, err := os.ReadFile(path) //nolint:gosec // the operator's own file
	if errors.Is(err, fs.ErrNotExist) {
		return change, nil
	}
	if err != nil {
		return change, fmt.Errorf("read what is there: %w", err)
	}
	change.exists, change.Old, change.New = true, string(text), string(text)
	return change, nil
}
