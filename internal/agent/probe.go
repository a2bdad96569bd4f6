package agent

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// ProbeSandbox starts a process in the sandbox of each tier that has a sandbox. It returns a description of the level of
// protection on this host, and of what this level leaves open. If the configuration requires more, ProbeSandbox fails.
func ProbeSandbox(ctx context.Context, cfg config.Config, environ []string) (string, error) {
	if err := CheckLevel(cfg); err != nil {
		return "", err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	boxes := newSandboxes(cfg, policy, environ)
	var said []string
	separate := cfg.Claude.HasAgentUser()
	weakest, files, connections := levelOf(true, separate), true, true
	for _, tier := range []escalation.Tier{escalation.TierObserve, escalation.TierSafeRepair} {
		sandbox, why := boxes.of(activities.AgentRun{
			Tier: tier, Directory: cfg.Claude.WorkDir,
		}, nil)
		var found process.Sandboxed
		if sandbox != nil {
			sandbox.Opens = fileRules(policy.FileRules(int(tier)), nil, nil, nil)
			var err error
			if found, err = claude.ProbeSandbox(ctx, ClaudeOptions(cfg.Claude, environ), sandbox); err != nil {
				return "", err
			}
			why = found.String()
		}
		if found.ABI == 0 {
			weakest = levelOf(false, separate)
		}
		files, connections = files && found.Opens, connections && found.Connects
		said = append(said, fmt.Sprintf("%s: %s", tier, why))
	}
	open := weakest.open()
	if !files {
		open += "; " + openFiles
	}
	if !connections {
		open += "; " + openConnections
	}
	return fmt.Sprintf("%s (%s): %s", weakest, strings.Join(said, "; "), open), nil
}

// openFiles says what is open at Tiers 1 and 2 where the kernel does not ask before files are opened.
const openFiles = "granted programs can read secret files of their user, and change protected ones, if options or links name them " +
	"in a way that the guard does not see"

// openConnections says what is open at Tiers 1 and 2 where the kernel does not ask before programs connect.
const openConnections = "granted programs can connect to the supervisor's ports and to metadata services, if a name or a notation hides " +
	"these from the guard"

// ProbeRepositories says in which directories of agents sessions may not commit, or commits cannot be pushed; nil if nobody must review
// commits.
func ProbeRepositories(cfg config.Config, environ []string) ([]string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return nil, err
	}
	return reviewProblems(cfg, checkoutOptions(cfg, environ, newSandboxes(cfg, policy, environ))), nil
}

// ProbeCell says how checks and previews run on this host, or why they do not run.
func ProbeCell(ctx context.Context, cfg config.Config, environ []string) (string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	cell := newSandboxes(cfg, policy, environ).cell(cfg.Claude.ConfigDir)
	found, err := claude.ProbeSandbox(ctx, ClaudeOptions(cfg.Claude, environ), cell)
	if err != nil {
		return "", fmt.Errorf("checks and previews do not run here, so every change is for a person: %w", err)
	}
	if policy.Checks.Network {
		return "checks and previews run in a cell with the network, as the policy says: " + found.String(), nil
	}
	return "checks and previews run in a cell without the network: " + found.String(), nil
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
			return fmt.Errorf("%sAGENT_USER=%s cannot get at a directory of the agents: %w; give that user the rights to it and to "+
				"pass through those above it, or name another directory", config.Prefix, account.Name, err)
		}
	}
	return nil
}
