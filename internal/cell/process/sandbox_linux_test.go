package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// site is a directory like a worker's: a hidden state directory, with the agent's workspace in it.
type site struct {
	root, state, workspace, secret string
}

const secretText = "the key of the worker"

func newSite(t testing.TB) site {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := site{root: root, state: filepath.Join(root, "state")}
	s.workspace, s.secret = filepath.Join(s.state, "work"), filepath.Join(s.state, "claudeops.db")
	require.NoError(t, os.MkdirAll(s.workspace, 0o750))
	require.NoError(t, os.WriteFile(s.secret, []byte(secretText), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "open.txt"), []byte("open"), 0o644))
	return s
}

func (s site) sandbox() *process.Sandbox {
	return &process.Sandbox{Required: true, Hidden: []string{s.state}, Writable: []string{s.workspace}}
}

// inside runs a script in the sandbox and returns its exit and its output. It requires that the sandbox is in force.
func inside(t *testing.T, mode process.Mode, sandbox *process.Sandbox, script string) (process.Exit, string) {
	t.Helper()
	spec := shell(t, mode, script)
	spec.Sandbox = sandbox
	exit, printed := run(t, t.Context(), spec)
	require.NotZero(t, exit.Sandbox.ABI, "%s", exit.Sandbox)
	return exit, printed
}

// requireLandlock skips the test on a kernel without Landlock. The kernel of CI has Landlock.
func requireLandlock(t testing.TB) {
	t.Helper()
	found, err := process.ProbeSandbox(t.Context(), process.ModeAuto, &process.Sandbox{}, nil)
	require.NoError(t, err)
	if found.ABI == 0 {
		t.Skip(found)
	}
}

// attempts returns scripts that try actions which the sandbox does not permit. A script exits with 0 if it succeeds.
func attempts(s site) map[string]string {
	target, worker := filepath.Join(s.root, "made"), strconv.Itoa(os.Getpid())
	return map[string]string{
		"write elsewhere":                  `echo x > ` + target,
		"make a directory elsewhere":       `mkdir ` + target,
		"write in /etc":                    `t=/etc/claudeops-sandbox-test; touch $t && rm $t`,
		"write in /tmp":                    `t=/tmp/claudeops-sandbox-test; touch $t && rm $t`,
		"truncate a file":                  `truncate -s 0 ` + s.root + `/open.txt`,
		"remove a file":                    `rm -f ` + s.root + `/open.txt`,
		"move a file away":                 `mv ` + s.root + `/open.txt ` + s.workspace + `/stolen`,
		"read the state":                   `cat ` + s.secret,
		"write the state":                  `echo x >> ` + s.secret,
		"read through a link to the state": `cat ` + s.root + `/link/claudeops.db`,
		"read through a link of its own":   `cat ` + s.workspace + `/link`,
		"read through a new link":          `ln -s ` + s.secret + ` ` + s.workspace + `/new && cat ` + s.workspace + `/new`,
		"read through a hard link":         `ln ` + s.secret + ` ` + s.workspace + `/hard && cat ` + s.workspace + `/hard`,
		"move the state":                   `mv ` + s.secret + ` ` + s.workspace + `/moved`,
		"read through /proc/self/root":     `cat /proc/self/root` + s.secret,
		"read through /proc/self/cwd":      `cd ` + s.state + ` && cat /proc/self/cwd/claudeops.db`,
		"read through an open directory":   `exec 9< ` + s.state + `; cat /proc/self/fd/9/claudeops.db`,
		"read through the worker's root":   `cat /proc/` + worker + `/root` + s.secret,
		"the worker's environment":         `cat /proc/` + worker + `/environ`,
		"the worker's memory":              `: < /proc/` + worker + `/mem`,
		"the worker's files":               `readlink /proc/` + worker + `/fd/0 || cat /proc/` + worker + `/fd/*`,
		"the init's environment":           `cat /proc/$PPID/environ`,
		"kill the worker":                  `kill -0 ` + worker,
		"kill the init":                    `kill -0 $PPID`,
		"the kernel's memory":              `head -c 1 /proc/kcore`,
		"a disk":                           `for d in /dev/vd* /dev/sd* /dev/nvme* /dev/mem; do head -c 1 $d && exit; done; false`,
		"make a device":                    `mknod ` + s.workspace + `/disk b 8 0`,
		"mount":                            `mount --bind ` + s.state + ` ` + s.workspace,
		"mount in a namespace of its own":  `unshare -m mount --bind ` + s.state + ` ` + s.workspace,
		"change the kernel":                `cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname`,
		"a grandchild in another session":  `setsid -w sh -c 'cat ` + s.secret + `'`,
		"an orphan": `(setsid sh -c 'cat ` + s.secret + ` > ` + s.workspace + `/orphan; echo done > ` +
			s.workspace + `/over' &) ; while ! [ -e ` + s.workspace + `/over ]; do sleep 0.01; done; grep -q . ` + s.workspace + `/orphan`,
		"a new terminal":       `script -qec true /dev/null`,
		"somebody's terminal":  `for t in /dev/pts/*; do : > $t && exit; done; false`,
		"a program of its own": `cp /bin/cat ` + s.workspace + `/mine && ` + s.workspace + `/mine ` + s.secret,
	}
}

// TestSandboxRefuses runs the attempts. Each one must fail and change nothing.
func TestSandboxRefuses(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	for name := range attempts(site{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEveryTree(t, func(t *testing.T, mode process.Mode) {
				s := newSite(t)
				require.NoError(t, os.Symlink(s.state, filepath.Join(s.root, "link")))
				require.NoError(t, os.Symlink(s.secret, filepath.Join(s.workspace, "link")))
				exit, printed := inside(t, mode, s.sandbox(), attempts(s)[name])
				require.NotZero(t, exit.Code, printed)
				require.NotContains(t, printed, secretText)
				kept, err := os.ReadFile(s.secret)
				require.NoError(t, err)
				require.Equal(t, secretText, string(kept))
				require.FileExists(t, filepath.Join(s.root, "open.txt"))
				require.NoFileExists(t, filepath.Join(s.root, "made"))
			})
		})
	}
}

// TestSandboxLets runs scripts with actions that an agent needs. Each one must succeed.
func TestSandboxLets(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	s := newSite(t)
	require.NoError(t, os.Symlink("/var", filepath.Join(s.workspace, "var")))
	socket := filepath.Join(s.root, "docker.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	for name, script := range map[string]string{
		"write in the workspace":      `echo x > ` + s.workspace + `/$$ && rm ` + s.workspace + `/$$`,
		"move between directories":    `cd ` + s.workspace + ` && mkdir -p a$$ b$$ && echo x > a$$/f && ln a$$/f b$$/l && mv a$$/f b$$/f && rm -r a$$ b$$`,
		"run a program of its own":    `printf '#!/bin/sh\nexit 0\n' > ` + s.workspace + `/p$$ && chmod +x ` + s.workspace + `/p$$ && ` + s.workspace + `/p$$`,
		"devices":                     `echo x > /dev/null && head -c 4 /dev/urandom > /dev/null && : < /dev/zero`,
		"look at the host":            `cat /proc/meminfo /proc/1/stat /proc/1/cmdline /proc/loadavg > /dev/null && df > /dev/null && ls /sys/block > /dev/null`,
		"read logs":                   `ls /var/log > /dev/null && cat /etc/passwd /etc/hostname > /dev/null`,
		"list what it cannot read":    `ls / ` + s.state + ` > /dev/null`,
		"read beside what is hidden":  `cat ` + s.root + `/open.txt`,
		"process substitution":        `bash -c 'cat <(echo x)'`,
		"here-documents":              "TMPDIR=" + s.workspace + " bash -c 'cat <<E\nx\nE'",
		"signals within":              `sleep 300 & kill $!`,
		"a group of its own":          `setsid sleep 300 & p=$!; sleep 0.1; kill -- -$p || kill $p`,
		"git":                         `cd ` + s.workspace + ` && export HOME=$PWD && git init -q r$$ && cd r$$ && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && git gc -q && git status -s`,
		"a socket by its path":        `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("` + socket + `")'`,
		"the end of its own children": `sleep 0.01 & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEveryTree(t, func(t *testing.T, mode process.Mode) {
				spec := shell(t, mode, script)
				spec.Sandbox, spec.Stderr = s.sandbox(), t.Output()
				exit, printed := run(t, t.Context(), spec)
				require.Zero(t, exit.Code, printed)
			})
		})
	}
}

// TestSandboxIsRecorded checks Exit.Sandbox.
func TestSandboxIsRecorded(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		exit, _ := inside(t, mode, &process.Sandbox{}, "exit 3")
		require.Equal(t, 3, exit.Code)
		require.Regexp(t, `^landlock \(ABI \d+`, exit.Sandbox.String())
	})
	t.Run("group", func(t *testing.T) {
		t.Parallel()
		spec := shell(t, process.ModeGroup, "exit 3")
		spec.Sandbox = &process.Sandbox{}
		exit, _ := run(t, t.Context(), spec)
		require.Equal(t, 3, exit.Code)
		require.Equal(t, "none: it takes a containment other than group", exit.Sandbox.String())

		spec.Sandbox.Required = true
		_, err := process.Run(t.Context(), spec)
		required, ok := errors.AsType[*process.SandboxError](err)
		require.True(t, ok, err)
		require.ErrorContains(t, required, "the agent's sandbox is required, and not to be had here")
	})
}

// TestSandboxedProgramThatCannotRun checks that Run returns the same errors as without a sandbox.
func TestSandboxedProgramThatCannotRun(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		for path, want := range map[string]error{
			"/nowhere/at/all": syscall.ENOENT, "/etc/passwd": syscall.EACCES,
		} {
			_, err := process.Run(t.Context(), process.Spec{Path: path, Containment: mode, Sandbox: &process.Sandbox{}})
			require.ErrorIs(t, err, want)
		}
	})
}

// TestSandboxedTreeDiesWithItsInit kills an init from outside of the sandbox. The tree must end, too.
func TestSandboxedTreeDiesWithItsInit(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		mark := newMark(t)
		leader := make(chan int, 1)
		spec := shell(t, mode, `echo ready; sleep 300`)
		spec.Env, spec.Mark, spec.Sandbox = append(spec.Env, mark), mark, &process.Sandbox{}
		spec.Started = func(tree process.Tree) { leader <- tree.PID }
		spec.Stdout = onFirstWrite(func() { require.NoError(t, syscall.Kill(<-leader, syscall.SIGKILL)) })
		exit, _ := run(t, t.Context(), spec)
		require.Equal(t, syscall.SIGKILL, exit.Signal)
		require.Empty(t, living(t, mark))
	})
}

// TestSignalsMayBeGranted checks that with Sandbox.Signals a program can send its init a signal.
func TestSignalsMayBeGranted(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	exit, _ := inside(t, process.ModeSubreaper, &process.Sandbox{Signals: true}, `kill -0 $PPID`)
	require.Zero(t, exit.Code)
}

// TestSandboxDropsWhatLeadsAround checks that the program has no dangerous capabilities. It also checks that the
// program has no_new_privs if Sandbox.Setuid is false.
func TestSandboxDropsWhatLeadsAround(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser has capabilities to lose")
	}
	const status = `grep -E 'CapEff|NoNewPrivs' /proc/self/status`
	for _, keepsSetuid := range []bool{false, true} {
		_, printed := inside(t, process.ModeSubreaper, &process.Sandbox{Setuid: keepsSetuid}, status)
		var capabilities uint64
		var noNewPrivileges int
		_, err := fmt.Sscanf(printed, "CapEff: %x\nNoNewPrivs: %d\n", &capabilities, &noNewPrivileges)
		require.NoError(t, err, printed)
		const dacOverride, setuid, netRaw, sysModule, sysRawio, sysPtrace, sysAdmin = 1, 7, 13, 16, 17, 19, 21
		require.Zero(t, capabilities&(1<<netRaw|1<<sysModule|1<<sysRawio|1<<sysPtrace|1<<sysAdmin))
		require.Equal(t, keepsSetuid, capabilities&(1<<setuid) != 0)
		require.Equal(t, keepsSetuid, capabilities != 1<<dacOverride)
		require.Equal(t, keepsSetuid, noNewPrivileges == 0)
	}
}

// TestHiddenPlacesThatAreMountedTwice checks that files which are mounted twice are hidden in both places.
func TestHiddenPlacesThatAreMountedTwice(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser mounts")
	}
	s := newSite(t)
	for name, what := range map[string]string{"whole": s.root, "part": s.state} {
		point := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(point, 0o750))
		require.NoError(t, syscall.Mount(what, point, "", syscall.MS_BIND, ""))
		t.Cleanup(func() { _ = syscall.Unmount(point, syscall.MNT_DETACH) })
		again := filepath.Join(point, strings.TrimPrefix(s.secret, what))
		require.FileExists(t, again)
		exit, printed := inside(t, process.ModeSubreaper, s.sandbox(), `cat `+again)
		require.NotZero(t, exit.Code, printed)
	}
}

// TestGrantThatHoldsSomethingHidden covers a directory that is granted entry by entry, because a path below it is
// hidden.
func TestGrantThatHoldsSomethingHidden(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	s := newSite(t)
	keys := filepath.Join(s.workspace, ".ssh")
	require.NoError(t, os.MkdirAll(keys, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(s.workspace, "project"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(keys, "id"), []byte(secretText), 0o600))
	sandbox := s.sandbox()
	sandbox.Hidden = append(sandbox.Hidden, keys)
	exit, printed := inside(t, process.ModeSubreaper, sandbox, `echo x > `+s.workspace+`/project/file && ! cat `+keys+`/id`)
	require.Zero(t, exit.Code, printed)
	require.NotContains(t, printed, secretText)
}

// TestLinksGrantNothing covers an agent that replaces its workspace by a symbolic link before the next agent starts.
func TestLinksGrantNothing(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	s := newSite(t)
	require.NoError(t, os.Remove(s.workspace))
	require.NoError(t, os.Symlink(s.root, s.workspace))
	exit, _ := inside(t, process.ModeSubreaper, s.sandbox(), `touch `+s.root+`/made`)
	require.NotZero(t, exit.Code)
	sandbox := s.sandbox()
	sandbox.Writable = []string{s.workspace + "/."}
	exit, _ = inside(t, process.ModeSubreaper, sandbox, `touch `+s.root+`/made`)
	require.NotZero(t, exit.Code)
}

// TestDirectoryWithTooManyEntries checks that a directory with too many entries is not readable, and that Exit.Sandbox
// says so.
func TestDirectoryWithTooManyEntries(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes thousands of files; not with -short")
	}
	requireLandlock(t)
	s := newSite(t)
	for i := range 5000 {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, strconv.Itoa(i)), nil, 0o600))
	}
	exit, printed := inside(t, process.ModeSubreaper, s.sandbox(), `cat `+s.root+`/17; echo x > `+s.workspace+`/x && ! cat `+s.root+`/open.txt`)
	require.Zero(t, exit.Code, printed)
	require.Contains(t, exit.Sandbox.String(), "not readable, because they have too many entries: "+s.root)
}

// TestSandboxKeepsSudo checks that a setuid program changes the user only if Sandbox.Setuid is set.
func TestSandboxKeepsSudo(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser installs such a program")
	}
	dir := openDir(t)
	program := filepath.Join(dir, "id")
	original, err := exec.LookPath("id")
	require.NoError(t, err)
	content, err := os.ReadFile(original)
	require.NoError(t, err)
	require.NoError(t, process.WriteProgram(program, content))
	require.NoError(t, os.Chmod(program, 0o755|os.ModeSetuid))
	for _, keeps := range []bool{true, false} {
		spec := shell(t, process.ModeSubreaper, program+` -u`)
		spec.Sandbox, spec.User = &process.Sandbox{Required: true, Setuid: keeps}, otherUser()
		_, printed := run(t, t.Context(), spec)
		require.Equal(t, keeps, strings.TrimSpace(printed) == "0", printed)
	}
}

// otherUser returns a user that every system has.
func otherUser() *process.User { return &process.User{UID: nobody, GID: nobody} }

// openDir returns a directory that every user can pass through.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "process-test-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // for another user
	return dir
}

// TestAnotherUser runs a tree as another user. The tree must have no access to the worker's files and processes.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	dir := openDir(t)
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(secretText), 0o600))
	worker := strconv.Itoa(os.Getpid())
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		for name, script := range map[string]string{
			"is that user":             `[ "$(id -u) $(id -g) $(id -G)" = "65534 65534 65534 1" ]`,
			"has no capabilities":      `grep -q 'CapEff:.0000000000000000' /proc/self/status`,
			"cannot read":              `! cat ` + secret,
			"cannot look into":         `! cat /proc/` + worker + `/environ`,
			"cannot kill the worker":   `! kill -0 ` + worker,
			"cannot kill its own init": `! kill -STOP $PPID`,
		} {
			spec := shell(t, mode, script)
			spec.User = otherUser()
			spec.User.Groups = []int{65534, 1}
			exit, printed := run(t, t.Context(), spec)
			require.Zero(t, exit.Code, "%s: %s", name, printed)
			require.NotContains(t, printed, secretText)
		}
	})
}

// TestAnotherUsersTreeEnds stops a tree of another user, once with its init alive and once after its init was killed.
func TestAnotherUsersTreeEnds(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		for _, killsInit := range []bool{false, true} {
			endTreeOfAnotherUser(t, mode, killsInit)
		}
	})
}

// endTreeOfAnotherUser stops a tree, or kills its init and then stops it.
func endTreeOfAnotherUser(t *testing.T, mode process.Mode, killsInit bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mark := newMark(t)
	leader := make(chan int, 1)
	spec := shell(t, mode, shapes()["daemons"].script)
	spec.Env, spec.Mark, spec.User, spec.Sandbox = append(spec.Env, mark), mark, otherUser(), &process.Sandbox{}
	spec.Started = func(tree process.Tree) { leader <- tree.PID }
	spec.Stdout = onFirstWrite(func() {
		if killsInit {
			require.NoError(t, syscall.Kill(<-leader, syscall.SIGKILL))
		}
		cancel()
	})
	run(t, ctx, spec)
	require.Empty(t, living(t, mark))
}

// TestUserThatCannotBe checks that Run fails in ModeGroup if another user is requested.
func TestUserThatCannotBe(t *testing.T) {
	t.Parallel()
	spec := shell(t, process.ModeGroup, "exit 0")
	spec.User = otherUser()
	_, err := process.Run(t.Context(), spec)
	require.ErrorContains(t, err, "the agent cannot run as another user")
}
