package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
)

// tierGrants is what a tier's policy grants that its sandbox must not withhold.
type tierGrants struct {
	// Sudo says that the agent may run programs that change the user.
	Sudo bool
	// Signals says that the agent may send signals to processes of the host.
	Signals bool
	// Readable and Writable are further paths.
	Readable, Writable []string
}

// grantsOf reads a tier's grants off the policy. What is hidden, the policy must name to grant it.
func grantsOf(policy *guard.Policy, tier escalation.Tier, hidden []string) tierGrants {
	limits := policy.Tiers[int(tier)]
	grants := tierGrants{Sudo: policy.Runs(int(tier), "sudo"), Signals: limits.Anything || limits.Signals}
	for _, path := range slices.Concat(limits.Read, limits.Write) {
		if slices.ContainsFunc(hidden, holds(path)) {
			grants.Readable = append(grants.Readable, resolved(path)...)
		}
	}
	for _, path := range limits.Write {
		if filepath.IsAbs(path) { // the others are the agent's own directories
			grants.Writable = append(grants.Writable, resolved(path)...)
		}
	}
	return grants
}

// sandboxes makes the sandboxes of sessions.
type sandboxes struct {
	choice config.Sandbox
	// hidden is what no tier with a sandbox may read.
	hidden []string
	policy *guard.Policy
}

func newSandboxes(cfg config.Config, policy *guard.Policy, environ []string, hidden ...string) sandboxes {
	return sandboxes{choice: cfg.Claude.Sandbox, hidden: append(hiddenPaths(cfg, environ), hidden...), policy: policy}
}

// of returns the sandbox of a session, or nil and why there is none.
//
// Tier 3 has none: it mounts, installs, looks into processes and writes wherever a repair takes it. Landlock grants
// only, so to keep just the worker's files from it would keep it from making anything beside them, and from all
// mounts. CLAUDEOPS_AGENT_USER is what keeps them from tier 3.
func (s sandboxes) of(run activities.AgentRun, own []string) (sandbox *claude.Sandbox, why string) {
	if s.choice == config.SandboxOff {
		return nil, "off"
	}
	tier := tierOf(run)
	if tier == escalation.TierFullRepair {
		return nil, "none at tier 3"
	}
	grants := grantsOf(s.policy, tier, s.hidden)
	sandbox = &claude.Sandbox{
		Required: s.choice == config.SandboxRequire,
		Hidden:   s.hidden,
		Readable: append(resolved(run.Directory), grants.Readable...),
		Writable: slices.Concat(own, grants.Writable),
		Signals:  grants.Signals,
		Setuid:   grants.Sudo,
	}
	if tier != escalation.TierObserve {
		sandbox.Writable = append(sandbox.Writable, resolved(run.Directory)...)
	}
	return sandbox, ""
}

// hiddenPaths lists what is the worker's, or another user's: the state with the records in it, the archive, the homes,
// and the files of credentials that its environment names.
func hiddenPaths(cfg config.Config, environ []string) []string {
	hidden := []string{cfg.State.Dir, cfg.AgentsDir(), "/etc/claudeops", sharedTempDir(os.Getuid())}
	if account := cfg.Claude.Account; account != nil {
		hidden = append(hidden, sharedTempDir(account.UID))
	}
	if file := cfg.State.DatabaseFile(); file != "" {
		hidden = append(hidden, file, file+"-wal", file+"-shm", file+"-journal")
	}
	if archive := cfg.State.TranscriptsDir(); archive != "" {
		hidden = append(hidden, archive)
	}
	hidden = append(hidden, credentialFiles(environ)...)
	for _, home := range homes(environ) {
		hidden = append(hidden, home)
		if slices.ContainsFunc(append(resolved(cfg.Claude.WorkDir), cfg.Claude.Repositories...), holds(home)) {
			for _, name := range secretNames() { // agents work in the home itself
				hidden = append(hidden, filepath.Join(home, name))
			}
		}
	}
	return hidden
}

// sharedTempDir is where the CLI keeps what commands print, of all sessions of a user that are in no sandbox.
func sharedTempDir(uid int) string { return filepath.Join("/tmp", "claude-"+strconv.Itoa(uid)) }

// holds returns a function that reports whether a directory is path, or path lies below it.
func holds(path string) func(dir string) bool {
	return func(dir string) bool {
		relative, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(relative)
	}
}

// secretNames are what holds keys in a home.
func secretNames() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local", ".netrc", ".git-credentials", ".pgpass",
		".claude", ".claude.json", ".bash_history", ".zsh_history", ".npmrc", ".vault-token", ".password-store",
	}
}

// credentialFiles are the files that variables of this process name, of Temporal's and of the clouds.
func credentialFiles(environ []string) []string {
	var files []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		ours := name == "CREDENTIALS_DIRECTORY" || slices.ContainsFunc(
			[]string{"TEMPORAL_", "AWS_", "GOOGLE_", "AZURE_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if ours && filepath.IsAbs(value) {
			files = append(files, value)
		}
	}
	return files
}

// firstPerson is the number from which on users are people, on all usual systems.
const firstPerson = 1000

// homes are the home directories of people, root and this process's user.
func homes(environ []string) []string {
	found := []string{"/home", "/root"}
	for _, variable := range environ {
		if home, is := strings.CutPrefix(variable, "HOME="); is {
			found = append(found, home)
		}
	}
	file, err := os.Open("/etc/passwd")
	if err != nil {
		return found
	}
	defer func() { _ = file.Close() }()
	const number, home, columns = 2, 5, 7
	for lines := bufio.NewScanner(file); lines.Scan(); {
		entry := strings.Split(lines.Text(), ":")
		if len(entry) != columns {
			continue
		}
		if uid, err := strconv.Atoi(entry[number]); err == nil && (uid >= firstPerson && uid < 65534 || uid == os.Getuid()) {
			found = append(found, entry[home])
		}
	}
	return found
}

// resolved returns the real path of a directory that the operator named; none if it does not exist.
func resolved(dir string) []string {
	place, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	return []string{place}
}

// SandboxFinding says which sandbox agents get here, and what is missing; it fails where the configuration cannot be
// fulfilled. It tries with the grants of the tiers that have one.
func SandboxFinding(ctx context.Context, cfg config.Config, environ []string) (string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	boxes := newSandboxes(cfg, policy, environ)
	var said []string
	for _, tier := range []escalation.Tier{escalation.TierObserve, escalation.TierSafeRepair} {
		sandbox, why := boxes.of(activities.AgentRun{
			Tier: tier, Directory: cfg.Claude.WorkDir,
		}, nil)
		if sandbox != nil {
			var err error
			if why, err = claude.ProbeSandbox(ctx, ClaudeOptions(cfg.Claude, environ), sandbox); err != nil {
				return "", err
			}
		}
		said = append(said, fmt.Sprintf("%s: %s", tier, why))
	}
	return strings.Join(said, "; "), nil
}

// CheckAgentUser tries whether agents can run as the user that is configured, and get at their directories.
func CheckAgentUser(ctx context.Context, cfg config.Config, environ []string) error {
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

// newTempDir makes an agent's own directory for temporary files, in that of the system: the CLI passes on to commands
// only a path that is short enough for the names of sockets. What a killed worker leaves there is the system's to remove.
func newTempDir(owner *config.Account) (dir string, err error) {
	parent, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(parent, "claudeops-"); err != nil {
		return "", err
	}
	if owner != nil {
		if err := os.Lchown(dir, owner.UID, owner.GID); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
	}
	return dir, nil
}
