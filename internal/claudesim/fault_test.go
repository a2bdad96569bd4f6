package claudesim_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// faulty runs the stand-in once with a fault and returns its output.
func faulty(t *testing.T, fault claudesim.Fault) output {
	t.Helper()
	s := claudesim.Play(claudesim.Always(claudesim.Bash("echo worked"), claudesim.Conclude(map[string]any{"status": "healthy"})).Failing(fault))
	return runOnce(t, simtest.Install(t, s), t.TempDir())
}

func runOnce(t *testing.T, path, home string) output {
	t.Helper()
	return subject{path: path}.launch(t, place{home: home, dir: t.TempDir()},
		launch{prompt: "hi", args: []string{"--model", "haiku", "--tools", "Bash", "--allowedTools", "Bash", "--json-schema", verdictSchema}})
}

// decoded returns the lines of a stream that are JSON objects, and the number of other lines.
func decoded(stdout string) (lines []map[string]any, garbage int) {
	for text := range strings.Lines(stdout) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) != nil {
			garbage++
			continue
		}
		lines = append(lines, line)
	}
	return lines, garbage
}

func resultsOf(lines []map[string]any) []map[string]any {
	var results []map[string]any
	for _, line := range lines {
		if line["type"] == "result" {
			results = append(results, line)
		}
	}
	return results
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault claudesim.Fault
		want  func(t *testing.T, out output, lines []map[string]any, garbage int)
	}{
		{"none", claudesim.Fault{}, func(t *testing.T, out output, lines []map[string]any, garbage int) {
			require.Equal(t, 0, out.exit, out.stderr)
			require.Zero(t, garbage)
			require.Len(t, resultsOf(lines), 1)
			require.Contains(t, resultsOf(lines)[0], "structured_output")
		}},
		{"crash at once", claudesim.Fault{Crash: &claudesim.Crash{Code: 7, Stderr: "boom\n"}}, func(t *testing.T, out output, lines []map[string]any, _ int) {
			require.Equal(t, 7, out.exit)
			require.Equal(t, "boom\n", out.stderr)
			require.Empty(t, resultsOf(lines))
		}},
		{"killed in the middle", claudesim.Fault{Crash: &claudesim.Crash{Code: claudesim.KilledBySelf, After: 1}}, func(t *testing.T, out output, lines []map[string]any, _ int) {
			require.Equal(t, -1, out.exit)
			require.Contains(t, out.stdout, "worked")
			require.Empty(t, resultsOf(lines))
		}},
		{"garbage", claudesim.Fault{Garbage: []string{"npm warn something", "{broken"}}, func(t *testing.T, _ output, lines []map[string]any, garbage int) {
			require.Equal(t, len(lines), garbage)
			require.Len(t, resultsOf(lines), 1)
		}},

		{"no session id", claudesim.Fault{OmitSessionID: true}, func(t *testing.T, out output, _ []map[string]any, _ int) {
			require.NotContains(t, out.stdout, `"session_id":`)
		}},
		{"no result", claudesim.Fault{OmitResult: true}, func(t *testing.T, out output, lines []map[string]any, _ int) {
			require.Equal(t, 0, out.exit)
			require.Empty(t, resultsOf(lines))
		}},
		{"failure after a good result", claudesim.Fault{ExitCode: 1}, func(t *testing.T, out output, lines []map[string]any, _ int) {
			require.Equal(t, 1, out.exit)
			require.Equal(t, false, resultsOf(lines)[0]["is_error"])
		}},
		{"several results", claudesim.Fault{RepeatResult: 2}, func(t *testing.T, _ output, lines []map[string]any, _ int) {
			results := resultsOf(lines)
			require.Len(t, results, 3)
			require.NotEmpty(t, results[0]["model_usage_since_last_result"])
			require.Empty(t, results[2]["model_usage_since_last_result"])
			require.Equal(t, results[0]["total_cost_usd"], results[2]["total_cost_usd"])
		}},
		{"no structured output", claudesim.Fault{OmitStructured: true}, func(t *testing.T, _ output, lines []map[string]any, _ int) {
			require.NotContains(t, resultsOf(lines)[0], "structured_output")
		}},
		{"no window", claudesim.Fault{OmitWindow: true}, func(t *testing.T, out output, _ []map[string]any, _ int) {
			require.NotContains(t, out.stdout, "contextWindow")
		}},
		{"slow", claudesim.Fault{LineDelay: claudesim.Duration(time.Millisecond), Stderr: "slow today\n"}, func(t *testing.T, out output, lines []map[string]any, _ int) {
			require.Equal(t, "slow today\n", out.stderr)
			require.Len(t, resultsOf(lines), 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := faulty(t, c.fault)
			lines, garbage := decoded(out.stdout)
			c.want(t, out, lines, garbage)
		})
	}
}

func TestHugeLinesReachTheirSize(t *testing.T) {
	t.Parallel()
	s := claudesim.Play(claudesim.Always(claudesim.Say("big")).Failing(claudesim.Fault{PadLines: 3 << 20}))
	out := subject{path: simtest.Install(t, s)}.launch(t, place{home: t.TempDir(), dir: t.TempDir()}, launch{prompt: "hi"})
	longest := 0
	for text := range strings.Lines(out.stdout) {
		longest = max(longest, len(text))
	}
	require.Greater(t, longest, 3<<20)
}

func TestStrikesAsOftenAsToldThenPasses(t *testing.T) {
	t.Parallel()
	s := claudesim.Play(claudesim.Always(claudesim.Say("hi")).Failing(claudesim.Fault{Times: 2, Crash: &claudesim.Crash{Code: 3}}))
	path, home := simtest.Install(t, s), t.TempDir()
	var exits []int
	for range 3 {
		exits = append(exits, subject{path: path}.launch(t, place{home: home, dir: t.TempDir()}, launch{prompt: "hi"}).exit)
	}
	require.Equal(t, []int{3, 3, 0}, exits)
}

func TestHangEndsWithASignalUnlessIgnored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   claudesim.Fault
		printed string // printed before the output hangs
		ends    bool
	}{
		{"at start", claudesim.Fault{Hang: claudesim.HangAtStart, Stderr: "."}, "", true},
		{"after init", claudesim.Fault{Hang: claudesim.HangAfterInit, Stderr: "."}, `"init"`, true},
		{"after a reply", claudesim.Fault{Hang: claudesim.HangAfterReply, Stderr: "."}, `"tool_use"`, true},
		{"after the result", claudesim.Fault{Hang: claudesim.HangAfterResult, Stderr: "."}, `"result"`, true},
		{"deaf", claudesim.Fault{Hang: claudesim.HangAtStart, IgnoreInterrupt: true, Stderr: "."}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := claudesim.Play(claudesim.Always(claudesim.Bash("true"), claudesim.Say("hi")).Failing(c.fault))
			command := exec.CommandContext(t.Context(), simtest.Install(t, s), append(baseArgs(), "--allowedTools", "Bash")...)
			command.Env = []string{"HOME=" + t.TempDir()}
			command.Stdin = strings.NewReader("hi")
			stdout, stderr := newWatcher(c.printed), newWatcher(".")
			command.Stdout, command.Stderr = stdout, stderr
			require.NoError(t, command.Start())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = command.Wait() }()
			stderr.await(t)
			stdout.await(t)
			require.NoError(t, command.Process.Signal(syscall.SIGINT))
			if c.ends {
				awaitEnd(t, ended)
				return
			}
			select {
			case <-ended:
				require.Fail(t, "it heard the signal")
			case <-time.After(300 * time.Millisecond):
			}
			require.NoError(t, command.Process.Kill())
			awaitEnd(t, ended)
		})
	}
}

func awaitEnd(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		require.Fail(t, "it did not end")
	}
}

// watcher is a writer that closes a channel once it has seen a text.
type watcher struct {
	text string
	seen chan struct{}
	data bytes.Buffer
	done bool
}

func newWatcher(text string) *watcher {
	w := &watcher{text: text, seen: make(chan struct{})}
	if text == "" {
		w.done = true
		close(w.seen)
	}
	return w
}

// Write implements io.Writer.
func (w *watcher) Write(p []byte) (int, error) {
	w.data.Write(p)
	if !w.done && strings.Contains(w.data.String(), w.text) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}

func (w *watcher) await(t *testing.T) {
	t.Helper()
	awaitEnd(t, w.seen)
}

func TestCostModeOverridesTheRelease(t *testing.T) {
	t.Parallel()
	for mode, cumulative := range map[claudesim.CostMode]bool{claudesim.CostCumulative: true, claudesim.CostPerProcess: false} {
		s := claudesim.Play(claudesim.Always(claudesim.Say("hi")).Failing(claudesim.Fault{Cost: mode}))
		sub := standIn(t, s, claudesim.VersionNew)
		o := sub.observe(t, []launch{fresh("hi"), {prompt: "again", args: []string{"--model", "haiku", "--resume", idA}}})
		require.Equal(t, cumulative, o[1].Results[0].TotalCost > o[0].Results[0].TotalCost, mode)
	}
}

// TestLaunchIsReadWhenItIsWhole reads records whose last line is not complete, because another process is writing it.
func TestLaunchIsReadWhenItIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "claude.launches.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"pid\":1}\n{\"pi"), 0o600))
	launches, err := claudesim.Launches(dir)
	require.NoError(t, err)
	require.Equal(t, []claudesim.Launch{{PID: 1}}, launches)

	require.NoError(t, os.WriteFile(file, []byte("{\"pi\n{\"pid\":2}\n"), 0o600))
	_, err = claudesim.Launches(dir)
	require.ErrorContains(t, err, file)
}

func TestLaunchesAreRecorded(t *testing.T) {
	t.Parallel()
	path := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("hi"))))
	runOnce(t, path, t.TempDir())
	launches := simtest.Launches(t, path)
	require.Len(t, launches, 1)
	require.Equal(t, "hi", launches[0].Stdin)
	require.Subset(t, launches[0].Args, []string{"--model", "haiku"})
	require.Equal(t, "not-a-key", launches[0].Env["ANTHROPIC_API_KEY"])
}
