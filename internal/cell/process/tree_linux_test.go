package process_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// shape is a tree that is hard to end. Its script prints a line when the tree is complete, and then waits.
type shape struct {
	script string
	// size is the smallest number of its processes, including the program.
	size int
}

func shapes() map[string]shape {
	return map[string]shape{
		"a grandchild in a session of its own": {`setsid sleep 300 & setsid env setsid sleep 300 & sleep 0.2; echo ready; wait`, 3},
		"daemons": {
			`for i in 1 2 3; do (setsid sh -c '(trap "" HUP INT TERM; cd /; exec >/dev/null 2>&1 </dev/null; exec sleep 300) &' &); done
			sleep 0.3; echo ready; sleep 300`, 4,
		},
		"children that ignore every signal": {`trap '' INT TERM HUP QUIT; for i in 1 2 3; do setsid sleep 300 & done; sleep 0.2; echo ready; while :; do wait; sleep 1; done`, 4},
		"stopped children":                  {`for i in 1 2 3; do setsid sleep 300 & kill -STOP $!; done; setsid sh -c 'kill -STOP $$; sleep 300' & sleep 0.2; echo ready; wait`, 5},
		"hundreds of processes": {
			`grow() { [ $1 = 0 ] || { grow $(($1-1)) & grow $(($1-1)) & }; exec sleep 300; }; grow 7 & sleep 1.5; echo ready; wait`, 200,
		},
		"processes that keep on starting others": {
			`hop() { setsid sh -c 'while :; do sleep 0.01; (setsid sleep 0.05 &) ; done' & }; for i in 1 2 3 4 5; do hop; done; sleep 0.2; echo ready; wait`, 6,
		},
		"an orphan that holds the output": {`(setsid sh -c 'trap "" INT; sleep 300; sleep 300' &); sleep 0.2; echo ready; sleep 300`, 2},
	}
}

func TestTreeEndsCompletely(t *testing.T) {
	t.Parallel()
	for name, tree := range shapes() {
		for how, stop := range map[string]bool{"by itself": false, "stopped": true} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && !stop {
					t.Skip("ends the same way")
				}
				inEveryTree(t, func(t *testing.T, mode process.Mode) { endTree(t, mode, tree, stop) })
			})
		}
	}
}

// endTree waits until a tree is complete. If stop is set, it stops the tree. If not, it lets the program end. It checks
// that no process of the tree is left when Run returns.
func endTree(t *testing.T, mode process.Mode, tree shape, stop bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mark := newMark(t)
	end := filepath.Join(t.TempDir(), "end")
	script := tree.script
	if !stop { // the program ends; the processes that it has started stay
		script = fmt.Sprintf("(%s) & while ! [ -e %s ]; do sleep 0.05; done; exit 6", script, end)
	}
	spec := shell(t, mode, script)
	spec.Env = append(spec.Env, mark)
	spec.Grace = 200 * time.Millisecond
	spec.Stdout = onFirstWrite(func() {
		requireGrown(t, mark, tree.size)
		if stop {
			cancel()
			return
		}
		require.NoError(t, os.WriteFile(end, nil, 0o600))
	})

	exit, _ := run(t, ctx, spec)

	require.Empty(t, living(t, mark))
	if !stop {
		require.Equal(t, process.Exit{Code: 6}, exit)
	}
}

// requireGrown waits until at least size processes of a tree are alive at once.
func requireGrown(t testing.TB, mark string, size int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(living(t, mark)) >= size }, patience, 25*time.Millisecond)
}

// TestTreeDiesWithItsWorker kills a worker and checks that the worker's tree ends.
func TestTreeDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for name, tree := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEveryTree(t, func(t *testing.T, mode process.Mode) {
				t.Logf("the tree was gone after %s", killWorker(t, self, mode, tree).Round(time.Millisecond))
			})
		})
	}
}

// TestTreeDiesWithItsWorkerWhoseInitIsStopped covers a program that stops its init before the worker is killed.
func TestTreeDiesWithItsWorkerWhoseInitIsStopped(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	killWorker(t, self, process.ModeSubreaper, shape{`kill -STOP $PPID; setsid sleep 300 & echo ready; wait`, 2})
}

// killWorker starts a worker with a tree, kills the worker, and returns the time until the tree has ended. program is
// the test binary, which runs as the worker.
func killWorker(t testing.TB, program string, mode process.Mode, tree shape) time.Duration {
	t.Helper()
	mark := newMark(t)
	standing := make(chan struct{})
	worker := exec.CommandContext(t.Context(), program)
	worker.Env = []string{
		"PATH=" + os.Getenv("PATH"), workerScript + "=" + tree.script, workerMode + "=" + string(mode), workerMark + "=" + mark,
	}
	worker.Stdout = onFirstWrite(func() { close(standing) })
	worker.Stderr = t.Output()
	worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the worker must not outlive a test that fails
	runtime.LockOSThread()                                                // the signal comes when this thread ends
	defer runtime.UnlockOSThread()
	worker.WaitDelay = time.Millisecond // the tree has the output open, too
	require.NoError(t, worker.Start())
	select {
	case <-standing:
	case <-time.After(patience):
		t.Fatal("the tree does not stand")
	}
	init := initOf(t, worker.Process.Pid)
	requireGrown(t, mark, 1+tree.size)

	require.NoError(t, worker.Process.Kill())
	killed := time.Now()
	_ = worker.Wait()
	for len(living(t, mark)) > 0 || !gone(init) {
		require.Less(t, time.Since(killed), patience, "%d of the tree still live", len(living(t, mark)))
		time.Sleep(25 * time.Millisecond)
	}
	return time.Since(killed)
}

// initOf returns the process number of the only child of worker.
func initOf(t testing.TB, worker int) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, path := range paths {
		var pid int
		_, err := fmt.Sscan(filepath.Base(path), &pid)
		require.NoError(t, err)
		if _, parent, err := stat(pid); err == nil && parent == worker {
			return pid
		}
	}
	t.Fatal("the worker has no child")
	return 0
}

// TestTreeReapsItsOrphans checks that processes which end as orphans do not stay as zombies.
func TestTreeReapsItsOrphans(t *testing.T) {
	t.Parallel()
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mark := newMark(t)
		spec := shell(t, mode, `for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' &); done; sleep 1; echo ready; exec sleep 300`)
		spec.Env = append(spec.Env, mark)
		spec.Stdout = onFirstWrite(func() {
			var self []int
			require.Eventually(t, func() bool { self = living(t, mark); return len(self) == 1 }, patience, 25*time.Millisecond)
			_, init, err := stat(self[0])
			require.NoError(t, err)
			require.Eventually(t, func() bool { return childrenOf(t, init) == 1 }, patience, 25*time.Millisecond, "the program alone")
			cancel()
		})
		run(t, ctx, spec)
	})
}

// childrenOf counts the children of a process, including zombies that it has not reaped.
func childrenOf(t *testing.T, parent int) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	count := 0
	for _, path := range paths {
		var pid int
		_, err := fmt.Sscan(filepath.Base(path), &pid)
		require.NoError(t, err)
		if _, of, err := stat(pid); err == nil && of == parent {
			count++
		}
	}
	return count
}

// TestTreeHoldsAgainstItsProgram lets the program send its init every signal that a Go program can catch. The init must
// survive. A Go program cannot catch SIGKILL, SIGSTOP, and the signals 32 to 34, which Go leaves to the C library.
// TestTreeEndsWhoseInitIsGone covers SIGKILL and SIGSTOP.
func TestTreeHoldsAgainstItsProgram(t *testing.T) {
	t.Parallel()
	var numbers []string
	for sig := 1; sig <= 64; sig++ {
		if sig != int(syscall.SIGKILL) && sig != int(syscall.SIGSTOP) && (sig < 32 || sig > 34) {
			numbers = append(numbers, strconv.Itoa(sig))
		}
	}
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		var stderr strings.Builder
		spec := shell(t, mode, `for n in `+strings.Join(numbers, " ")+`; do kill -$n $PPID; kill -0 $PPID && echo $n; sleep 0.01; done; exit 9`)
		if mode == process.ModeNamespace {
			spec.Args[1] = strings.ReplaceAll(spec.Args[1], "$PPID", "1")
		}
		spec.Stderr = &stderr
		exit, stdout := run(t, t.Context(), spec)
		require.Equal(t, process.Exit{Code: 9}, exit, stdout)
		require.Equal(t, numbers, strings.Fields(stdout))
		require.Empty(t, stderr.String())
	})
}

// TestTreeEndsWhoseInitIsGone lets the program kill or stop its init. The tree must still end. In a namespace the
// program cannot do so.
func TestTreeEndsWhoseInitIsGone(t *testing.T) {
	t.Parallel()
	daemons := `for i in 1 2 3; do (setsid sleep 300 &); done; sleep 0.2; echo ready; `
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		mark := newMark(t)
		spec := shell(t, process.ModeSubreaper, daemons+`kill -9 $PPID; exec sleep 300`)
		spec.Env, spec.Mark = append(spec.Env, mark), mark
		exit, _ := run(t, t.Context(), spec)
		require.Equal(t, process.Exit{Code: -1, Signal: syscall.SIGKILL}, exit)
		require.Empty(t, living(t, mark))
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mark := newMark(t)
		spec := shell(t, process.ModeSubreaper, `kill -STOP $PPID; `+daemons+`exec sleep 300`)
		spec.Env = append(spec.Env, mark)
		spec.Grace = 100 * time.Millisecond
		spec.Stdout = onFirstWrite(cancel)
		exit, _ := run(t, ctx, spec)
		require.Equal(t, process.Exit{Code: -1, Signal: syscall.SIGKILL, StoppedBy: context.Canceled}, exit)
		require.Empty(t, living(t, mark))
	})
	t.Run("in a namespace", func(t *testing.T) {
		t.Parallel()
		if _, err := process.Probe(process.ModeNamespace); err != nil {
			t.Skip(err)
		}
		_, stdout := run(t, t.Context(), shell(t, process.ModeNamespace, `kill -9 1; kill -STOP 1; kill -9 -1; echo alive`))
		require.Equal(t, "alive\n", stdout)
	})
}

// TestTreeInheritsNoDescriptors opens files that children of this process would inherit, and checks the program's
// descriptors.
func TestTreeInheritsNoDescriptors(t *testing.T) {
	t.Parallel()
	leaky, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0) // without close-on-exec
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(leaky) })
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		_, stdout := run(t, t.Context(), shell(t, mode, `ls /proc/self/fd`))
		require.Equal(t, "0\n1\n2\n3\n", stdout, "3 is how ls reads that directory")
	})
}

// TestTreeHidesNothing checks that an agent sees the host's processes, including itself.
func TestTreeHidesNothing(t *testing.T) {
	t.Parallel()
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		_, stdout := run(t, t.Context(), shell(t, mode, fmt.Sprintf(`cat /proc/%d/comm /proc/self/comm`, os.Getpid())))
		self, err := os.ReadFile("/proc/self/comm")
		require.NoError(t, err)
		require.Equal(t, string(self)+"cat\n", stdout)
	})
}

// TestTreeInitHoldsNoSecrets checks that the init's environment is empty, and that its arguments are only its name and
// its mode.
func TestTreeInitHoldsNoSecrets(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	for _, mode := range trees(t) {
		ctx, cancel := context.WithCancel(t.Context())
		mark := newMark(t)
		spec := shell(t, mode, `echo ready; exec sleep 300`)
		spec.Env = append(spec.Env, mark)
		spec.Stdout = onFirstWrite(func() {
			requireGrown(t, mark, 1)
			_, init, err := stat(living(t, mark)[0])
			require.NoError(t, err)
			if os.Geteuid() == 0 { // other users may not read it at all
				environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", init))
				require.NoError(t, err)
				require.Empty(t, environ)
			}
			arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", init))
			require.NoError(t, err)
			require.Equal(t, "claudeops-init\x00"+string(mode)+"\x00", string(arguments))
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", init))
			require.NoError(t, err)
			require.Equal(t, "claudeops-init\n", string(name))
			cancel()
		})
		run(t, ctx, spec)
		cancel()
	}
}

// TestTreeIsNotStartedByAName starts this executable with an init's name, but without the descriptors that an init
// needs. It must end and print nothing.
func TestTreeIsNotStartedByAName(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for _, mode := range []string{"namespace", "subreaper", "group", "nonsense"} {
		command := exec.CommandContext(t.Context(), self)
		command.Args = []string{"claudeops-init", mode}
		output, err := command.CombinedOutput()
		require.NoError(t, err)
		require.Empty(t, output)
	}
}

func TestEndMarked(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	stray := exec.CommandContext(t.Context(), "sh", "-c", `setsid env -i sleep 300 & setsid sleep 300 & trap '' INT; sleep 300 & echo ready; wait`)
	stray.Env = []string{"PATH=" + os.Getenv("PATH"), mark}
	stray.WaitDelay = patience
	ready := make(chan struct{})
	stray.Stdout = onFirstWrite(func() { close(ready) })
	require.NoError(t, stray.Start())
	other := exec.CommandContext(t.Context(), "sleep", "300")
	other.Env = []string{mark + "0"}
	require.NoError(t, other.Start())
	t.Cleanup(func() { _, _ = other.Process.Kill(), other.Wait() })
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the stray does not stand")
	}

	ended, err := process.EndMarked(mark)
	require.NoError(t, err)
	require.Equal(t, 4, ended)
	_ = stray.Wait()
	require.Equal(t, []int{other.Process.Pid}, living(t, mark))

	ended, err = process.EndMarked(mark)
	require.NoError(t, err)
	require.Zero(t, ended)
	_, err = process.EndMarked("PATH=")
	require.Error(t, err)
}

// TestManyTreesAtOnce runs a hundred trees at once. It checks that no process and no open file of this process is left.
func TestManyTreesAtOnce(t *testing.T) {
	const count = 100
	for _, mode := range modes(t) {
		before := descriptors(t)
		mark := newMark(t)
		ended := make(chan error, count)
		for i := range count {
			spec := shell(t, mode, fmt.Sprintf(`cat; sleep 300 & exit %d`, i))
			spec.Env = append(spec.Env, mark)
			spec.Stdin = strings.NewReader("input")
			var stdout strings.Builder
			spec.Stdout = &stdout
			go func() {
				exit, err := process.Run(t.Context(), spec)
				if err == nil && (exit.Code != i || stdout.String() != "input") {
					err = fmt.Errorf("tree %d: %s, %q", i, exit, stdout.String())
				}
				ended <- err
			}()
		}
		for range count {
			require.NoError(t, <-ended)
		}
		require.Empty(t, living(t, mark))
		require.Eventually(t, func() bool { return descriptors(t) <= before }, patience, 25*time.Millisecond, "%s", mode)
	}
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestTreeCountsWhatItCannotKill covers a tree in which an unprivileged user starts a setuid program of the superuser,
// like sudo. The init cannot kill it, so it must count as a survivor.
func TestTreeCountsWhatItCannotKill(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("cannot install a program that becomes the superuser's")
	}
	dir := testsForNobody(t, os.ModeSetuid|0o750)
	mark := newMark(t)
	worker := exec.CommandContext(t.Context(), filepath.Join(testsForNobody(t, 0o750), "tests"))
	worker.Env = []string{
		"PATH=" + os.Getenv("PATH"), workerMode + "=" + string(process.ModeSubreaper), workerMark + "=" + mark,
		workerScript + "=" + fmt.Sprintf(`%s=%s %[2]s/tests >/dev/null 2>&1 &
			while [ -d /proc/$! ] && ! [ -e %[2]s/%[3]s ]; do sleep 0.05; done; exit 6`, superuserIn, dir, becameSuperuser),
	}
	var stderr strings.Builder
	worker.Stderr = &stderr
	worker.SysProcAttr = asNobody()

	err := worker.Run()

	require.EqualError(t, err, "exit status 6", stderr.String())
	if _, missing := os.Stat(filepath.Join(dir, becameSuperuser)); missing != nil {
		t.Skip("no program becomes its owner's on this file system")
	}
	said := strings.TrimSuffix(stderr.String(), "warning: GOCOVERDIR not set, no coverage data emitted\n") // of make cover
	require.Equal(t, "survivors: 1\n", said)
	require.Len(t, living(t, mark), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, endSuperuser), nil, 0o600))
	require.Eventually(t, func() bool { return len(living(t, mark)) == 0 }, patience, 25*time.Millisecond)
}

// TestTreeWaitsForASlowDeath covers trees that do not die at once when they are killed, because they wait for a disk or
// for a busy machine.
func TestTreeWaitsForASlowDeath(t *testing.T) {
	t.Parallel()
	killed := process.Exit{Code: -1, Signal: syscall.SIGKILL, StoppedBy: context.Canceled}
	for name, tt := range map[string]struct {
		before string
		// after is the time for which the tree cannot die; 0 means until Run has given up.
		after time.Duration
		want  process.Exit
	}{
		"later than another user's would be given up": {after: 7 * time.Second, want: killed},
		"never": {want: process.Exit{Code: -1, StoppedBy: context.Canceled, Survivors: 2}},
		"never, and the init is stopped": {
			before: "kill -STOP $PPID; ",
			want:   process.Exit{Code: -1, Signal: syscall.SIGKILL, StoppedBy: context.Canceled, Survivors: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && tt.after == 0 {
				t.Skip("takes half a minute")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			freeze, thaw := freezer(t)
			mark := newMark(t)
			spec := shell(t, process.ModeSubreaper, tt.before+`setsid sleep 300 & echo ready; wait`)
			spec.Env = append(spec.Env, mark)
			spec.Grace = 100 * time.Millisecond
			spec.Stdout = onFirstWrite(func() {
				requireGrown(t, mark, 2)
				freeze(living(t, mark))
				if tt.after > 0 {
					time.AfterFunc(tt.after, thaw)
				}
				cancel()
			})

			exit, err := process.Run(ctx, spec)

			require.NoError(t, err)
			require.Len(t, living(t, mark), exit.Survivors)
			exit.Containment = process.Containment{}
			require.Equal(t, tt.want, exit)
			thaw()
			require.Eventually(t, func() bool { return len(living(t, mark)) == 0 }, patience, 25*time.Millisecond)
		})
	}
}

// freezer returns two functions: freeze freezes processes, so that they can neither run nor die, and thaw lets them
// continue.
func freezer(t *testing.T) (freeze func(pids []int), thaw func()) {
	t.Helper()
	dir, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "process-test-") //nolint:usetesting // control groups are made there
	if err != nil {
		t.Skip("no processes can be frozen here:", err) // version 2 of control groups is no help: there, frozen processes can die
	}
	write := func(file, value string) error { return os.WriteFile(filepath.Join(dir, file), []byte(value), 0) }
	thaw = func() { _ = write("freezer.state", "THAWED") }
	t.Cleanup(func() {
		thaw()
		require.Eventually(t, func() bool { return os.Remove(dir) == nil }, patience, 25*time.Millisecond)
	})
	return func(pids []int) {
		for _, pid := range pids {
			require.NoError(t, write("cgroup.procs", strconv.Itoa(pid)))
		}
		require.NoError(t, write("freezer.state", "FROZEN"))
		require.Eventually(t, func() bool {
			state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
			return err == nil && string(state) == "FROZEN\n"
		}, patience, time.Millisecond)
	}, thaw
}

// TestTreeOfAnUnprivilegedUser runs the other short tests as a user with no rights.
func TestTreeOfAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("is one")
	}
	if testing.Short() {
		t.Skip("runs the tests of this package once more; not with -short")
	}
	dir := testsForNobody(t, 0o750)
	tests := exec.CommandContext(t.Context(), filepath.Join(dir, "tests"), "-test.timeout=10m", "-test.parallel=8", "-test.short")
	tests.Dir = dir
	tests.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	tests.SysProcAttr = asNobody()
	tests.WaitDelay = patience // after a panic, processes that the tests started may still have the output open
	output, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// testsForNobody returns a directory with a copy of this test binary, named "tests", with the given mode. Only the
// superuser and the user nobody may run it.
func testsForNobody(t *testing.T, mode os.FileMode) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "process-test-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // for another user
	program := filepath.Join(dir, "tests")
	binary, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, process.WriteProgram(program, binary))
	require.NoError(t, os.Chown(program, 0, nobody))
	require.NoError(t, os.Chmod(program, mode))
	return dir
}

// nobody is the number of an unprivileged user, and of its group.
const nobody = 65534

// asNobody returns the attributes that start a program as the user nobody.
func asNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
