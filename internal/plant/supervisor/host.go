package supervisor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// EnsureUser returns the configuration with the account that agents run as. If the account is missing, EnsureUser
// creates it and reports so. An account that the operator has named is never missing.
func EnsureUser(ctx context.Context, cfg config.Config) (_ config.Config, created bool, err error) {
	if !cfg.Claude.HasAgentUser() || cfg.Claude.Account != nil {
		return cfg, false, nil
	}
	failure := claude.CreateUser(ctx, cfg.Claude.AgentUser)
	if err := cfg.Claude.FindAccount(); err != nil { // another worker may have created it in the meantime
		if failure == nil {
			failure = err
		}
		return cfg, false, fmt.Errorf("create the user %s, as whom agents run: %w; create it, or set %sAGENT_USER to "+
			"another user "+
			"(or to none: then agents are root)", cfg.Claude.AgentUser, failure, config.Prefix)
	}
	return cfg, failure == nil, nil
}

// CheckUser returns an error if agents cannot run as the configured user, or if that user cannot read the agents'
// directories.
func CheckUser(ctx context.Context, cfg config.Config, environ []string) error {
	account := cfg.Claude.Account
	if account == nil {
		return nil
	}
	options := ClaudeOptions(cfg.Claude, environ)
	if _, err := claude.ProbeSandbox(ctx, options, nil); err != nil {
		return fmt.Errorf("%sAGENT_USER=%s: %w; run the worker as root, or unset it", config.Prefix, account.Name, err)
	}
	for _, dir := range append([]string{cfg.Claude.ConfigDir, cfg.Claude.WorkDir}, cfg.Claude.Repositories...) {
		err := claude.AsUser(options.User, func() error {
			_, err := os.ReadDir(dir)
			return err
		})
		if err != nil {
			return fmt.Errorf("%sAGENT_USER=%s cannot get at a directory of the agents: %w; give that user the "+
				"rights to it and to "+
				"pass through those above it, or name another directory", config.Prefix, account.Name, err)
		}
	}
	return nil
}

// CheckLevel returns an error if agents have less protection than CLAUDEOPS_SANDBOX requires, because they have the
// worker's user. Whether the kernel's sandbox is available is known when a session starts.
func CheckLevel(cfg config.Config) error {
	asked := cfg.Claude.Sandbox
	separate := asked == config.SandboxRequireFull || asked == config.SandboxRequire && os.Geteuid() == 0
	if !separate || cfg.Claude.HasAgentUser() {
		return nil
	}
	return fmt.Errorf("%sSANDBOX=%s: agents would run as the worker's user, which is %s: set %sAGENT_USER, or take %s",
		config.Prefix, asked, ownUser(), config.Prefix, config.SandboxRequireKernel)
}

// RootAlone reports whether agents run as root, because the worker does and they have no other user.
func RootAlone(cfg config.Config) bool { return os.Geteuid() == 0 && !cfg.Claude.HasAgentUser() }

func ownUser() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return fmt.Sprint("user ", os.Geteuid())
}

// ProbeSandbox starts a process in the sandbox of each tier that has a sandbox. It returns a description of the level
// of protection on this host, and of what this level leaves open. If the configuration requires more, ProbeSandbox
// fails.
func ProbeSandbox(ctx context.Context, cfg config.Config, environ []string) (string, error) {
	if err := CheckLevel(cfg); err != nil {
		return "", err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	found, err := cell.Probe(ctx, CellOptions(cfg, environ, policy), cfg.Claude.WorkDir, cfg.Claude.HasAgentUser())
	if err != nil {
		return "", err
	}
	open := []string{found.Open}
	if found.Level == cell.LevelKernel {
		open = append(open, "set "+config.Prefix+"AGENT_USER to give them a user of their own")
	}
	return fmt.Sprintf("%s (%s): %s", found.Level, found.Sandboxes, strings.Join(append(open, found.Gaps...), "; ")),
		nil
}

// ProbeRepositories says in which directories of agents sessions may not commit, or commits cannot be pushed; nil if
// nobody must review commits.
func ProbeRepositories(cfg config.Config, environ []string) ([]string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return nil, err
	}
	return agent.ReviewProblems(AgentOptions(cfg, environ, policy)), nil
}

// ProbeCell says how checks and previews run on this host, or why they do not run.
func ProbeCell(ctx context.Context, cfg config.Config, environ []string) (string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	found, err := cell.ProbeSealed(ctx, CellOptions(cfg, environ, policy))
	if err != nil {
		return "", fmt.Errorf("checks and previews do not run here, so every change is for a person: %w", err)
	}
	if policy.Checks.Network {
		return "checks and previews run in a cell with the network, as the policy says: " + found.String(), nil
	}
	return "checks and previews run in a cell without the network: " + found.String(), nil
}
