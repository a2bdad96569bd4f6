package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/process"
)

// patience bounds what should take a moment.
const patience = 20 * time.Second

// shell returns a Spec for a script.
func shell(t *testing.T, script string) process.Spec {
	t.Helper()
	path, err := exec.LookPath("sh")
	require.NoError(t, err)
	return process.Spec{Path: path, Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// run runs spec to its end, within patience, and returns what it printed.
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
	return exit, stdout.String()
}

func TestRunReportsHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		want   process.Exit
		text   string
	}{
		"success": {"exit 0", process.Exit{}, "exit code 0"},
		"failure": {"exit 7", process.Exit{Code: 7}, "exit code 7"},
		"signal":  {"kill -9 $$", process.Exit{Code: -1, Signal: syscall.SIGKILL}, "ended by signal 9 (killed)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, _ := run(t, t.Context(), shell(t, tc.script))
			require.Equal(t, tc.want, exit)
			require.Equal(t, tc.text, exit.String())
		})
	}
}

func TestRunGivesTheProgramOnlyWhatTheSpecSays(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	dir := t.TempDir()
	spec := shell(t, `echo "secret=$PROCESS_TEST_SECRET given=$GIVEN dir=$(pwd -P)"; echo complaint >&2; cat`)
	spec.Env = append(spec.Env, "GIVEN=yes")
	spec.Dir = dir
	spec.Stdin = strings.NewReader("from stdin")
	var stderr bytes.Buffer
	spec.Stderr = &stderr

	exit, stdout := run(t, t.Context(), spec)

	resolved, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.Equal(t, process.Exit{}, exit)
	require.Equal(t, "secret= given=yes dir="+resolved+"\nfrom stdin", stdout)
	require.Equal(t, "complaint\n", stderr.String())
}

func TestRunInheritsNothingWhenTheEnvironmentIsNil(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	spec := shell(t, `echo "secret=$PROCESS_TEST_SECRET"`)
	spec.Env = nil
	_, stdout := run(t, t.Context(), spec)
	require.Equal(t, "secret=\n", stdout)
}

func TestRunFeedsALargeInput(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	for name, tc := range map[string]struct{ script, want string }{
		"that is read":     {"wc -c | tr -d ' '", strconv.Itoa(size) + "\n"},
		"that is not read": {"echo busy", "busy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := shell(t, tc.script)
			spec.Stdin = bytes.NewReader(make([]byte, size))
			exit, stdout := run(t, t.Context(), spec)
			require.Equal(t, process.Exit{}, exit)
			require.Equal(t, tc.want, stdout)
		})
	}
}

func TestRunStopsTheProgram(t *testing.T) {
	t.Parallel()
	cause := errors.New("changed my mind")
	for name, tc := range map[string]struct {
		script string
		want   process.Exit
	}{
		"that obeys":   {`trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done`, process.Exit{Code: 3, StoppedBy: cause}},
		"that refuses": {`trap '' INT; echo ready; while :; do sleep 0.05; done`, process.Exit{Code: -1, Signal: syscall.SIGKILL, StoppedBy: cause}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			spec := shell(t, tc.script)
			spec.Grace = 300 * time.Millisecond
			spec.Stdout = onFirstWrite(func() { cancel(cause) })
			exit, _ := run(t, ctx, spec)
			require.Equal(t, tc.want, exit)
		})
	}
}

// onFirstWrite is a writer that calls act once, when the program says that it is ready.
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

func TestRunLeavesNothingOfTheGroupBehind(t *testing.T) {
	t.Parallel()
	// The child holds the output open and does not heed SIGINT.
	const child = `sh -c "trap '' INT; sleep 60" & echo $!; `
	for name, tc := range map[string]struct {
		script string
		stop   bool
	}{
		"when the leader ends by itself": {script: child + `exit 0`},
		"when the leader is stopped":     {script: child + `wait`, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			spec := shell(t, tc.script)
			spec.Grace = 300 * time.Millisecond
			output := onFirstWrite(func() {
				if tc.stop {
					cancel()
				}
			})
			spec.Stdout = output
			exit, _ := run(t, ctx, spec)
			require.Equal(t, tc.stop, exit.StoppedBy != nil)

			pid, err := strconv.Atoi(strings.TrimSpace(output.buf.String()))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return gone(pid) }, patience, 10*time.Millisecond)
		})
	}
}

// gone reports whether pid has ended: there is none, or only what its parent has not collected.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestRunDoesNotWaitForAStrangerWhoHoldsTheOutput(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes the whole drain time-out")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	const held = 12 * time.Second
	// The shell stays until the stranger has left its group, or it would be killed with the group.
	started := time.Now()
	exit, stdout := run(t, t.Context(), shell(t, `setsid sh -c 'echo done; exec sleep 12' & sleep 0.5`))
	require.Less(t, time.Since(started), held-2*time.Second, "it waited for the stranger")
	require.Equal(t, process.Exit{}, exit)
	require.Equal(t, "done\n", stdout)
}

func TestRunStartsNothing(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))

	for name, tc := range map[string]struct {
		ctx  context.Context
		path string
		want string
	}{
		"that is missing":        {t.Context(), "/does/not/exist", "start /does/not/exist: "},
		"that is not executable": {t.Context(), plain, "start " + plain + ": "},
		"after the context":      {ended, "/bin/sh", "not starting /bin/sh: too late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := process.Run(tc.ctx, process.Spec{Path: tc.path})
			require.ErrorContains(t, err, tc.want)
		})
	}
}
