package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

func TestRunReportsHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		for _, tc := range []struct {
			script string
			want   process.Exit
			text   string
		}{
			{"exit 0", process.Exit{}, "exit code 0"},
			{"exit 7", process.Exit{Code: 7}, "exit code 7"},
			{"exit 255", process.Exit{Code: 255}, "exit code 255"},
			{"kill -9 $$", process.Exit{Code: -1, Signal: syscall.SIGKILL}, "ended by signal 9 (killed)"},
			{"kill -TERM $$", process.Exit{Code: -1, Signal: syscall.SIGTERM}, "ended by signal 15 (terminated)"},
			{"kill -SEGV $$", process.Exit{Code: -1, Signal: syscall.SIGSEGV}, "ended by signal 11 (segmentation fault)"},
			{"kill -INT $$", process.Exit{Code: -1, Signal: syscall.SIGINT}, "ended by signal 2 (interrupt)"},
		} {
			exit, _ := run(t, t.Context(), shell(t, mode, tc.script))
			require.Equal(t, tc.want, exit, tc.script)
			require.Equal(t, tc.text, exit.String())
		}
	})
}

// TestRunTellsTheProcess compares the process number that Spec.Started gets with the number of the program, or of its
// init.
func TestRunTellsTheProcess(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		var pid int
		spec := shell(t, mode, `echo $PPID $$`)
		spec.Started = func(tree process.Tree) { pid = tree.PID }
		_, stdout := run(t, t.Context(), spec)
		require.Positive(t, pid)
		want := map[process.Mode]string{
			process.ModeGroup: fmt.Sprintf("%d %d\n", os.Getpid(), pid), process.ModeSubreaper: fmt.Sprintf("%d ", pid),
			process.ModeNamespace: "1 ", // the init's number inside the namespace
		}
		require.Contains(t, stdout, want[mode])
	})
}

func TestRunGivesTheProgramOnlyWhatTheSpecSays(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	dir := t.TempDir()
	resolved, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	for _, mode := range modes(t) {
		spec := shell(t, mode, `echo "secret=$PROCESS_TEST_SECRET given=$GIVEN dir=$(pwd -P)"; echo complaint >&2; cat`)
		spec.Env = append(spec.Env, "GIVEN=yes")
		spec.Dir = dir
		spec.Stdin = strings.NewReader("from stdin")
		var stderr bytes.Buffer
		spec.Stderr = &stderr

		exit, stdout := run(t, t.Context(), spec)

		require.Equal(t, process.Exit{}, exit)
		require.Equal(t, "secret= given=yes dir="+resolved+"\nfrom stdin", stdout)
		require.Equal(t, "complaint\n", stderr.String())
	}
}

func TestRunInheritsNothingWhenTheEnvironmentIsNil(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	env, err := exec.LookPath("env")
	require.NoError(t, err)
	for _, mode := range modes(t) {
		_, stdout := run(t, t.Context(), process.Spec{Path: env, Containment: mode})
		require.Empty(t, stdout)
	}
}

// TestRunPassesBytesOn covers arguments and variables that are not valid UTF-8, and long variables.
func TestRunPassesBytesOn(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		spec := shell(t, mode, `printf '%s|%s|%s|%s' "$ODD" "$1" "$2" "${#LONG}"`)
		spec.Args = append(spec.Args, "sh", "\xff\x01", "")
		spec.Env = append(spec.Env, "ODD=\xfe\n", "LONG="+strings.Repeat("x", 100_000), "MORE="+strings.Repeat("x", 100_000))
		_, stdout := run(t, t.Context(), spec)
		require.Equal(t, "\xfe\n|\xff\x01||100000", stdout)
	})
}

func TestRunFeedsALargeInput(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		for script, want := range map[string]string{
			"wc -c | tr -d ' '":       strconv.Itoa(size) + "\n",
			"echo busy":               "busy\n",
			"exec <&-; sleep 1; echo": "\n",
		} {
			spec := shell(t, mode, script)
			spec.Stdin = bytes.NewReader(make([]byte, size))
			exit, stdout := run(t, t.Context(), spec)
			require.Equal(t, process.Exit{}, exit)
			require.Equal(t, want, stdout)
		}
	})
}

func TestRunReadsALargeOutput(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		exit, stdout := run(t, t.Context(), shell(t, mode, `head -c 20000000 /dev/zero`))
		require.Equal(t, process.Exit{}, exit)
		require.Len(t, stdout, 20_000_000)
	})
}

// stoppedScript is a program that stops itself with SIGSTOP. Another process waits until /proc shows the program as
// stopped, and then prints a line. Without /proc it only waits a moment. The script reads the program's number from
// /proc, because in a namespace it is not $$.
const stoppedScript = `trap 'exit 5' INT; read pid rest </proc/self/stat
(sleep 0.3; while [ "$pid" ] && ! grep -q ') T ' /proc/$pid/stat; do sleep 0.05; done; echo ready) &
kill -STOP $$; while :; do sleep 0.05; done`

func TestRunStopsTheProgram(t *testing.T) {
	t.Parallel()
	cause := errors.New("changed my mind")
	killed := process.Exit{Code: -1, Signal: syscall.SIGKILL, StoppedBy: cause}
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		for name, tc := range map[string]struct {
			script string
			want   process.Exit
		}{
			"that obeys":           {`trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done`, process.Exit{Code: 3, StoppedBy: cause}},
			"whose child obeys":    {`trap : INT; (trap 'exit 4' INT; echo ready; while :; do sleep 0.05; done); exit $?`, process.Exit{Code: 4, StoppedBy: cause}},
			"that is stopped":      {stoppedScript, process.Exit{Code: 5, StoppedBy: cause}},
			"that refuses":         {`trap '' INT TERM; echo ready; while :; do sleep 0.05; done`, killed},
			"that stays stopped":   {`trap '' INT; echo ready; while :; do kill -STOP $$; done`, killed},
			"that knows no signal": {`echo ready; exec sleep 60`, process.Exit{Code: -1, Signal: syscall.SIGINT, StoppedBy: cause}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				spec := shell(t, mode, tc.script)
				spec.Grace = patience
				if tc.want == killed {
					spec.Grace = 500 * time.Millisecond
				}
				spec.Stdout = onFirstWrite(func() { cancel(cause) })
				exit, _ := run(t, ctx, spec)
				require.Equal(t, tc.want, exit)
			})
		}
	})
}

func TestRunLeavesNothingOfTheGroupBehind(t *testing.T) {
	t.Parallel()
	// The child holds the output open and ignores SIGINT.
	const child = `sh -c "trap '' INT; sleep 60" & echo ready; `
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
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
				mark := newMark(t)
				spec := shell(t, mode, tc.script)
				spec.Env = append(spec.Env, mark)
				spec.Grace = 300 * time.Millisecond
				spec.Stdout = onFirstWrite(func() {
					if tc.stop {
						cancel()
					}
				})
				exit, _ := run(t, ctx, spec)
				require.Equal(t, tc.stop, exit.StoppedBy != nil)
				require.Eventually(t, func() bool { return len(living(t, mark)) == 0 }, patience, 25*time.Millisecond)
			})
		}
	})
}

func TestRunDoesNotWaitForAStrangerWhoHoldsTheOutput(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes the whole drain time-out")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	exit, stdout := run(t, t.Context(), shell(t, process.ModeGroup, `setsid sleep 12 & echo done`))
	require.Equal(t, process.Exit{}, exit)
	require.Equal(t, "done\n", stdout)
}

func TestRunStartsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, broken := filepath.Join(dir, "plain"), filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	require.NoError(t, process.WriteProgram(broken, []byte{0, 1}))
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))

	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		for want, tc := range map[string]struct {
			ctx  context.Context
			spec process.Spec
			is   error
		}{
			"start /does/not/exist: ": {t.Context(), process.Spec{Path: "/does/not/exist"}, os.ErrNotExist},
			"start " + plain + ": ":   {t.Context(), process.Spec{Path: plain}, os.ErrPermission},
			"start " + broken + ": ":  {t.Context(), process.Spec{Path: broken}, syscall.ENOEXEC},
			"/no/such/place":          {t.Context(), process.Spec{Path: "/bin/sh", Dir: "/no/such/place"}, os.ErrNotExist},
			"too late":                {ended, process.Spec{Path: "/bin/sh"}, nil},
		} {
			tc.spec.Containment = mode
			_, err := process.Run(tc.ctx, tc.spec)
			require.ErrorContains(t, err, want)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
		}
	})
}

func TestRunRefusesAnUnknownContainment(t *testing.T) {
	t.Parallel()
	_, err := process.Run(t.Context(), process.Spec{Path: "/bin/sh", Containment: "jail"})
	require.ErrorContains(t, err, `containment "jail" is none of auto, namespace, subreaper and group`)
	_, err = process.Probe("jail")
	require.Error(t, err)
}

// TestProbe checks that Probe returns the containment that a run then gets. On Linux ModeAuto must mean ModeSubreaper.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, choice := range append(modes(t), process.ModeAuto, "") {
		found, err := process.Probe(choice)
		require.NoError(t, err)
		spec := shell(t, choice, "exit 0")
		exit, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, found, exit.Containment)
		require.Contains(t, found.String(), string(found.Mode))
		if runtime.GOOS == "linux" && (choice == "" || choice == process.ModeAuto) {
			require.Equal(t, process.ModeSubreaper, found.Mode)
		}
	}
}

// TestWriteProgram executes a program right after it was written, while other goroutines fork children. A child that is
// forked during the write would keep the file open.
func TestWriteProgram(t *testing.T) {
	t.Parallel()
	var forks sync.WaitGroup
	defer forks.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		forks.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run()
			}
		})
	}
	content := append([]byte("#!/bin/sh\nexit 0\n"), bytes.Repeat([]byte("#\n"), 100_000)...)
	path := filepath.Join(t.TempDir(), "program")
	for range 100 {
		require.NoError(t, process.WriteProgram(path, content))
		require.NoError(t, exec.CommandContext(t.Context(), path).Run())
		require.NoError(t, os.Remove(path))
	}
}
