package claude

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

var update = flag.Bool("update", false, "write the golden files anew")

// measured returns the versions whose streams were recorded.
func measured() []string { return []string{oldest, "2.1.332"} }

// oldest is the oldest of these versions.
const oldest = "2.1.286"

// recording has the facts about a recorded run that its stream does not contain.
type recording struct {
	exit   process.Exit
	schema string
	stderr string
	// resumes is the conversation that the run continues.
	resumes string
}

// recordings returns the recordings below testdata/streams by name. Each version has a stream of every name. The
// streams were made with the real CLI and a scripted API (see takes). Paths and addresses were replaced.
func recordings() map[string]recording {
	failed := process.Exit{Code: 1}
	stopped := func(code int) process.Exit { return process.Exit{Code: code, StoppedBy: errIdle} }
	return map[string]recording{
		"fresh":                     {},
		"parent":                    {},
		"fork":                      {resumes: parentID},
		"resume":                    {resumes: parentID},
		"long_tool":                 {},
		"background":                {},
		"subagent":                  {},
		"denied":                    {},
		"slash_command":             {},
		"schema":                    {schema: "{}"},
		"schema_ignored":            {schema: "{}"},
		"schema_not_met":            {schema: "{}", exit: failed},
		"unauthorized":              {exit: failed},
		"overloaded":                {exit: failed},
		"connection_refused":        {exit: failed},
		"prompt_too_long":           {exit: failed},
		"bad_request":               {exit: failed},
		"max_turns":                 {exit: failed},
		"budget":                    {exit: failed},
		"unknown_session":           {exit: failed, resumes: parentID, stderr: "No conversation found with session ID: " + parentID},
		"interrupted_in_tool":       {exit: stopped(0)},
		"interrupted_in_answer":     {exit: stopped(0)},
		"interrupted_before_answer": {exit: stopped(0)},
		"killed_in_tool":            {exit: process.Exit{Code: -1, Signal: 9}},
	}
}

// replay processes a recorded stream like the output of a run, without starting a process.
func replay(t testing.TB, version, name string, rec recording) *run {
	t.Helper()
	stream, err := os.ReadFile(filepath.Join("testdata", "streams", version, name+".jsonl"))
	require.NoError(t, err)
	number, err := parseVersion(version)
	require.NoError(t, err)
	r := &run{
		cli:        &CLI{version: number, profile: profileOf(number)},
		invocation: Invocation{Schema: rec.schema, Resume: rec.resumes, Limits: Limits{Idle: time.Minute}},
		stderr:     tailWriter{limit: maxStderrBytes},
		started:    time.Now(),
	}
	_, _ = r.stderr.Write([]byte(rec.stderr))
	lines := &lineWriter{handle: func(line []byte) { r.acc.line(line) }}
	for chunk := range bytes.SplitAfterSeq(stream, []byte("e")) { // split inside lines, too
		_, _ = lines.Write(chunk)
	}
	lines.flush()
	return r
}

// TestRecordedStreams compares the outcome of every recorded stream with a golden file.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		for name, rec := range recordings() {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := replay(t, version, name, rec)
				outcome := struct {
					Result Result
					Error  *Error
				}{r.result(rec.exit), r.judge(rec.exit, nil)}
				outcome.Result.Duration = 0
				if outcome.Error != nil {
					outcome.Error.Err = nil // it cannot be written as JSON
				}
				got, err := json.MarshalIndent(outcome, "", "  ")
				require.NoError(t, err)
				requireGolden(t, filepath.Join("testdata", "streams", version, name+".golden.json"), append(got, '\n'))
			})
		}
	}
}

func requireGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), string(got))
}

// TestOwnCostOfAFamily adds up the costs of a conversation, its fork and its resumption. Every call was recorded with
// the same four token counts, so the exact costs are known. The oldest version does not report what a resumed
// conversation has cost since then.
func TestOwnCostOfAFamily(t *testing.T) {
	t.Parallel()
	call := usage{Input: 100, Output: 42, CacheRead: 1000, CacheCreation: 50}
	for version, models := range map[string]struct{ observer, repairer string }{
		oldest:    {"claude-haiku-4-5-20251001", "claude-sonnet-5-5"},
		"2.1.332": {"claude-haiku-5-5", "claude-sonnet-5-5"},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			estimate := cliOf(version).profile.prices.estimate
			parent := 2 * estimate(models.observer, call)
			for name, want := range map[string]float64{
				"parent": parent,
				"resume": estimate(models.observer, call),
				"fork":   estimate(models.repairer, call),
				// Three calls in two results.
				"background": 3 * estimate(models.observer, call),
			} {
				rec := recordings()[name]
				got := replay(t, version, name, rec).result(process.Exit{})
				require.InDelta(t, want, got.CostUSD, 1e-12, name)
				require.Equal(t, version == oldest && rec.resumes != "", got.CostEstimated, name)
				require.Equal(t, 1192, got.ContextTokens, name)
				if rec.resumes != "" {
					require.InDelta(t, parent+got.CostUSD, got.ReportedTotalUSD, 1e-12, "the total goes on from the parent's")
				}
			}
		})
	}
}

// TestEstimateAgreesWithTheCLI checks the price lists. The estimate from the API calls in a stream must be equal to the
// cost in the stream's results.
func TestEstimateAgreesWithTheCLI(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		for _, name := range []string{"fresh", "background", "denied", "budget"} {
			if version == oldest && name == "budget" {
				continue // its stream ends before it tells the output tokens
			}
			r := replay(t, version, name, recording{})
			exact := r.result(process.Exit{})
			require.False(t, exact.CostEstimated)

			r.acc.results, r.acc.usage.reported = nil, 0
			estimated := r.result(process.Exit{})
			require.True(t, estimated.CostEstimated)
			require.InEpsilon(t, exact.CostUSD, estimated.CostUSD, 1e-9, "%s %s", version, name)
			require.Positive(t, estimated.Tokens.Total())
		}
	}
}

// TestCallsAfterTheLastResultAreEstimated covers a CLI that is killed while it continues after a result.
func TestCallsAfterTheLastResultAreEstimated(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		r := replay(t, version, "background", recording{})
		whole := r.result(process.Exit{})

		first := r.acc.results[:1]
		r.acc.results, r.acc.usage.reported = first, 2
		cut := r.result(process.Exit{})
		require.True(t, cut.CostEstimated)
		require.InEpsilon(t, whole.CostUSD, cut.CostUSD, 1e-9)
	}
}

// TestAnInterruptedCallStaysInFlight covers a CLI that gets SIGINT. The CLI reports the running call as rejected,
// though the call's command ran.
func TestAnInterruptedCallStaysInFlight(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		stream, err := os.ReadFile(filepath.Join("testdata", "streams", version, "interrupted_in_tool.jsonl"))
		require.NoError(t, err)
		var counts accumulator
		for line := range bytes.Lines(stream) {
			counts.calls.frozen = counts.calls.frozen || bytes.Contains(line, []byte("doesn't want to proceed")) ||
				bytes.Contains(line, []byte(`"status":"stopped"`))
			counts.line(line)
		}
		calls := counts.calls.inFlight()
		require.Len(t, calls, 1)
		require.Equal(t, "Bash", calls[0].Tool)
		require.JSONEq(t, `{"command":"./slow.sh"}`, string(calls[0].Input))
	}
}
