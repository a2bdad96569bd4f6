package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// patience limits short waits, with a margin for a busy machine.
const patience = 2 * time.Minute

// The variables that make the test binary a worker: the script that it runs, the containment mode, and the mark.
const (
	workerScript = "PROCESS_TEST_WORKER_SCRIPT"
	workerMode   = "PROCESS_TEST_WORKER_MODE"
	workerMark   = "PROCESS_TEST_WORKER_MARK"
)

// superuserIn is a variable that makes a test binary with the setuid bit run as the superuser. No other user can kill
// it. The value is a directory. The program creates the file becameSuperuser there when it has started. It ends when
// the file endSuperuser exists.
const (
	superuserIn     = "PROCESS_TEST_SUPERUSER_IN"
	becameSuperuser = "became"
	endSuperuser    = "end"
)

// becomeSuperuser runs as the superuser until endSuperuser exists in dir, at most for patience. It returns the exit
// code.
func becomeSuperuser(dir string) int {
	if syscall.Setreuid(0, 0) != nil { // change the real user, too, because that user could kill this process
		return 1
	}
	if os.WriteFile(filepath.Join(dir, becameSuperuser), nil, 0o600) != nil {
		return 1
	}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, endSuperuser)); err == nil {
			break
		}
	}
	return 0
}

// work runs a script as a worker would, prints the number of survivors, and returns the exit code.
func work(script string) int {
	mark := os.Getenv(workerMark)
	exit, err := process.Run(context.Background(), process.Spec{
		Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), mark}, Mark: mark,
		Stdout: os.Stdout, Containment: process.Mode(os.Getenv(workerMode)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "survivors:", exit.Survivors)
	return exit.Code
}

// modes lists the modes that are available here, with ModeGroup last.
func modes(t testing.TB) []process.Mode {
	t.Helper()
	var found []process.Mode
	for _, mode := range []process.Mode{process.ModeNamespace, process.ModeSubreaper, process.ModeGroup} {
		if _, err := process.Probe(mode); err == nil {
			found = append(found, mode)
		} else {
			t.Logf("without %s: %v", mode, err)
		}
	}
	return found
}

// trees lists the available modes that end a whole tree: all modes except ModeGroup. Every Linux has at least one.
func trees(t testing.TB) []process.Mode {
	t.Helper()
	found := slices.DeleteFunc(modes(t), func(mode process.Mode) bool { return mode == process.ModeGroup })
	require.NotEmpty(t, found)
	return found
}

// inEveryMode runs test once in each mode that is available.
func inEveryMode(t *testing.T, test func(t *testing.T, mode process.Mode)) {
	t.Helper()
	in(t, modes(t), test)
}

// inEveryTree runs test once in each available mode except ModeGroup, which does not end a whole tree.
func inEveryTree(t *testing.T, test func(t *testing.T, mode process.Mode)) {
	t.Helper()
	in(t, trees(t), test)
}

func in(t *testing.T, modes []process.Mode, test func(t *testing.T, mode process.Mode)) {
	t.Helper()
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

// shell returns a Spec for a script.
func shell(t testing.TB, mode process.Mode, script string) process.Spec {
	t.Helper()
	path, err := exec.LookPath("sh")
	require.NoError(t, err)
	return process.Spec{
		Path: path, Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Containment: mode,
	}
}

// run runs spec to its end, within patience, and returns the exit and the output. It requires that the tree had spec's
// containment and has no survivors.
func run(t *testing.T, ctx context.Context, spec process.Spec) (process.Exit, string) {
	t.Helper()
	guarded, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the test lost patience"))
	defer cancel()
	var stdout bytes.Buffer
	if spec.Stdout == nil {
		spec.Stdout = &stdout
	}
	exit, err := process.Run(guarded, spec)
	require.NoError(t, err)
	require.Equal(t, spec.Containment, exit.Containment.Mode)
	require.Zero(t, exit.Survivors)
	exit.Containment = process.Containment{}
	return exit, stdout.String()
}

// onFirstWrite returns a writer that calls act at the first write. Programs print their first line when they are ready.
func onFirstWrite(act func()) *trigger { return &trigger{act: act} }

type trigger struct {
	act func()
	buf bytes.Buffer
}

func (w *trigger) Write(p []byte) (int, error) {
	if w.buf.Len() == 0 {
		w.act()
	}
	return w.buf.Write(p)
}

// newMark returns an environment entry that no other process on this host has.
func newMark(t testing.TB) string {
	t.Helper()
	return "PROCESS_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-") + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// living lists the processes that have mark in their environment and have not ended. It reads /proc itself, without the
// code under test.
func living(t testing.TB, mark string) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []int
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte(mark)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && !gone(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// stat returns the state and the parent of a process.
func stat(pid int) (state string, parent int, err error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err
}

// gone reports whether the process pid has ended. It may still be a zombie.
func gone(pid int) bool {
	state, _, err := stat(pid)
	return err != nil || state == "Z" || state == "X"
}
