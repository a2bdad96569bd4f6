package cell

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/files"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// tierGrants holds the permissions of a tier in the policy. The sandbox of the tier must not deny any of these
// permissions.
type tierGrants struct {
	// Sudo reports that the agent is permitted to run programs that change the user.
	Sudo bool
	// Signals reports that the agent is permitted to send signals to processes of the host.
	Signals bool
	// Readable and Writable list additional paths that the agent is permitted to read or write.
	Readable, Writable []string
}

// grantsOf reads the grants of a tier from the policy. A path below a hidden directory is granted only if the policy
// names the path.
func grantsOf(policy *guard.Policy, tier int, hidden []string) tierGrants {
	limits := policy.Tiers[tier]
	grants := tierGrants{Sudo: policy.Runs(tier, "sudo"), Signals: limits.Anything || limits.Signals}
	for _, path := range slices.Concat(limits.Read, limits.Write, policy.Projects) {
		if slices.ContainsFunc(hidden, holds(path)) {
			grants.Readable = append(grants.Readable, resolved(path)...)
		}
	}
	for _, path := range limits.Write {
		if filepath.IsAbs(path) { // a path that is not absolute is one of the agent's own directories
			grants.Writable = append(grants.Writable, resolved(path)...)
		}
	}
	return grants
}

// Sandbox says whether agents of Tiers 1 and 2 run in a sandbox of the kernel.
type Sandbox int

// The values of Sandbox.
const (
	SandboxIfPossible Sandbox = iota
	SandboxRequired
	SandboxOff
)

// The tiers that the sandbox distinguishes: the first can write nothing but its own files, and the last has no sandbox.
const observe, repair, unconfined = 1, 2, 3

// sandboxes creates the sandboxes of sessions.
type sandboxes struct {
	choice Sandbox
	// hidden lists the paths that the sandbox hides from its agents. Paths that the policy names are not hidden.
	hidden []string
	policy *guard.Policy
}

func newSandboxes(options Options, hidden ...string) sandboxes {
	all := append(hiddenPaths(options), hidden...)
	slices.Sort(all)
	return sandboxes{choice: options.Sandbox, hidden: slices.Compact(all), policy: options.Policy}
}

// of returns the sandbox of a session that works in dir, and may write the directories in own. If the session gets no
// sandbox, of returns nil and the reason.
//
// Tier 3 has no sandbox, because its repairs may need to mount, install, inspect processes and write anywhere. A
// sandbox that hides the worker's files, and restricts nothing else, is not possible, because Landlock grants paths and
// cannot deny them. A sandbox that grants everything except the worker's files would also deny mounts, and new files
// beside the worker's files. To protect the worker's files from Tier 3, agents need a user of their own.
func (s sandboxes) of(tier int, dir string, own []string) (sandbox *claude.Sandbox, why string) {
	switch {
	case s.choice == SandboxOff:
		return nil, "off"
	case tier >= unconfined:
		return nil, fmt.Sprintf("none at tier %d", tier)
	}
	grants := grantsOf(s.policy, tier, s.hidden)
	sandbox = &claude.Sandbox{
		Required: s.choice == SandboxRequired,
		Hidden:   slices.Concat(s.hidden, tempDirs()),
		Readable: append(resolved(dir), grants.Readable...),
		Writable: slices.Concat(own, grants.Writable),
		Signals:  grants.Signals,
		Setuid:   grants.Sudo,
	}
	if tier != observe {
		sandbox.Writable = append(sandbox.Writable, resolved(dir)...)
	}
	if executables := s.policy.Executables(tier); executables != nil {
		sandbox.Executable = except(executables.All(), sandbox.Writable)
	}
	return sandbox, ""
}

// sealed returns the sandbox of programs that can execute what an author has written. It does not depend on the setting
// for agents, and it is required: without it these programs do not run. The argument home holds the operator's files
// for the home of agents.
func (s sandboxes) sealed(home string) *claude.Sandbox {
	return &claude.Sandbox{
		Required: true, Offline: !s.policy.Checks.Network,
		Hidden: append(slices.Concat(s.hidden, tempDirs()), home),
	}
}

// GitSandbox returns the sandbox of the git that the supervisor runs: it writes nothing, and the supervisor's files are
// hidden as from agents, because what it reads may be an agent's work. Package checkout adds the repository.
func (h *Host) GitSandbox() *claude.Sandbox { return h.sandboxes.git() }

// GitSandbox is Host.GitSandbox for a process without a Host.
func GitSandbox(options Options) *claude.Sandbox { return newSandboxes(options).git() }

func (s sandboxes) git() *claude.Sandbox {
	if s.choice == SandboxOff {
		return nil
	}
	return &claude.Sandbox{Required: s.choice == SandboxRequired, Hidden: slices.Clone(s.hidden)}
}

// except returns the paths of files that are in none of the directories. An agent that can write a program must not
// execute it.
func except(paths, directories []string) []string {
	kept := []string{} // not nil, because nil is no limit
	for _, file := range paths {
		if !slices.ContainsFunc(directories, holds(file)) {
			kept = append(kept, file)
		}
	}
	return kept
}

// hiddenPaths lists the paths of the supervisor and of other users, the home directories, and the credential files that
// the environment names.
func hiddenPaths(options Options) []string {
	hidden := append(slices.Clone(options.Hidden), sharedTempDir(os.Getuid()))
	if user := options.Driver.User; user != nil {
		hidden = append(hidden, sharedTempDir(user.UID))
	}
	hidden = append(hidden, credentialFiles(options.Driver.Environ)...)
	for _, home := range homes(options.Driver.Environ) {
		hidden = append(hidden, home)
		if slices.ContainsFunc(append(resolved(options.Directories...), options.Directories...), holds(home)) {
			for _, name := range secretNames() { // agents work in the home or above it, so they may read it
				hidden = append(hidden, filepath.Join(home, name))
			}
		}
	}
	return hidden
}

// sharedTempDir returns the directory in which the CLI keeps the output of commands. All of a user's sessions without a
// sandbox share this directory.
func sharedTempDir(uid int) string { return filepath.Join("/tmp", "claude-"+strconv.Itoa(uid)) }

// holds returns a function that reports whether path equals the directory dir or lies below dir.
func holds(path string) func(dir string) bool {
	return func(dir string) bool {
		relative, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(relative)
	}
}

// secretNames lists the files and directories that hold keys in a home directory.
func secretNames() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local", ".netrc", ".git-credentials",
		".pgpass", ".claude", ".claude.json", ".bash_history", ".zsh_history", ".npmrc", ".vault-token",
		".password-store",
	}
}

// credentialFiles returns the absolute paths that environ contains as values. It considers only the variables of
// Temporal, AWS, Google and Azure, and systemd's CREDENTIALS_DIRECTORY.
func credentialFiles(environ []string) []string {
	var found []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		ours := name == "CREDENTIALS_DIRECTORY" || slices.ContainsFunc(
			[]string{"TEMPORAL_", "AWS_", "GOOGLE_", "AZURE_"},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if ours && filepath.IsAbs(value) {
			found = append(found, value)
		}
	}
	return found
}

// firstPerson is the lowest user id of a person on all usual systems.
const firstPerson = 1000

// homes lists the home directories of all persons, of root, and of this process's user.
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
		if uid, err := strconv.Atoi(entry[number]); err == nil &&
			(uid >= firstPerson && uid < 65534 || uid == os.Getuid()) {
			found = append(found, entry[home])
		}
	}
	return found
}

// resolved returns the paths without symbolic links, and leaves out those that do not exist.
func resolved(paths ...string) (all []string) {
	for _, path := range paths {
		if path, err := filepath.EvalSymlinks(path); err == nil {
			all = append(all, path)
		}
	}
	return all
}

// tempPrefix begins the names of all directories that workers create below the system's temporary directory. Among
// these are the directories for temporary files of each session, and the sockets of the guard.
const tempPrefix = "claudeops-"

// tempDirs lists the directories of this and other workers below the system's temporary directory. They are hidden from
// every session. Only its own one is granted again.
func tempDirs() []string {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*")) // it fails for a bad pattern only
	return found
}

// tempDir is an agent's own directory for temporary files, below the system's temporary directory. The directory's path
// must be short: the CLI passes the path to commands only if there is room for the name of a socket. The system limits
// the length of a socket's path.
type tempDir struct{ path string }

func newTempDir(owner *claude.User) (tempDir, error) {
	parent, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return tempDir{}, err
	}
	dir, err := os.MkdirTemp(parent, tempPrefix)
	if err != nil {
		return tempDir{}, err
	}
	if owner != nil {
		if err := os.Lchown(dir, owner.UID, owner.GID); err != nil {
			return tempDir{}, errors.Join(err, os.Remove(dir))
		}
	}
	return tempDir{dir}, nil
}

// remove removes the directory with everything that the agent has left in it.
func (d tempDir) remove() error {
	if d.path == "" {
		return nil
	}
	parent, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return err
	}
	return errors.Join(files.RemoveAll(parent, filepath.Base(d.path)), parent.Close())
}
