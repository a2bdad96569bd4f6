package agent

import (
	"bufio"
	"errors"
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

// tierGrants lists what the policy of a tier grants, so that its sandbox must not deny it.
type tierGrants struct {
	// Sudo says that the agent may run programs that change the user.
	Sudo bool
	// Signals says that the agent may send signals to processes of the host.
	Signals bool
	// Readable and Writable are further paths.
	Readable, Writable []string
}

// grantsOf reads the grants of a tier from the policy. A hidden path is granted only if the policy names it.
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
	// hidden lists what no tier with a sandbox may read, unless the policy names it.
	hidden []string
	policy *guard.Policy
}

func newSandboxes(cfg config.Config, policy *guard.Policy, environ []string, hidden ...string) sandboxes {
	return sandboxes{choice: cfg.Claude.Sandbox, hidden: append(hiddenPaths(cfg, environ), hidden...), policy: policy}
}

// of returns the sandbox of a session, or nil and why there is none.
//
// Tier 3 has none: it mounts, installs, inspects processes and writes wherever a repair needs it. Landlock can only grant,
// so hiding just the worker's files would also deny mounts, and new files beside the hidden ones. To keep the worker's files
// from Tier 3, set CLAUDEOPS_AGENT_USER.
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

// hiddenPaths lists the paths of the worker and of other users: the state with the records, the archive, the homes, and
// the files of credentials that the environment names.
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

// sharedTempDir returns the directory in which the CLI keeps the output of commands, for all sessions of a user that have no
// sandbox.
func sharedTempDir(uid int) string { return filepath.Join("/tmp", "claude-"+strconv.Itoa(uid)) }

// holds returns a function that reports whether a directory is path, or path lies below it.
func holds(path string) func(dir string) bool {
	return func(dir string) bool {
		relative, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(relative)
	}
}

// secretNames lists the files and directories of a home that hold keys.
func secretNames() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local", ".netrc", ".git-credentials", ".pgpass",
		".claude", ".claude.json", ".bash_history", ".zsh_history", ".npmrc", ".vault-token", ".password-store",
	}
}

// credentialFiles lists the files that the variables of Temporal and of the clouds name.
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

// firstPerson is the lowest user ID of people, on all usual systems.
const firstPerson = 1000

// homes lists the home directories of people, of root and of this process's user.
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

// resolved returns the real path of a directory; none if it does not exist.
func resolved(dir string) []string {
	place, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	return []string{place}
}

// newTempDir makes an agent's own directory for temporary files, below the system's: the CLI passes it on to commands only
// if its path is short enough for the names of sockets. The system removes what a killed worker leaves there.
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
