package claude

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

func TestLineWriter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	for _, writes := range [][]string{
		{"one\ntwo\n"},
		{"o", "ne", "\n", "two", "\n"},
		{"one\n", "two"},
		{"\n\none\ntwo\n\n"},
		{long[:100], long[100:], "\ntwo\n"},
	} {
		var got []string
		w := &lineWriter{handle: func(line []byte) {
			if len(line) > 0 {
				got = append(got, string(line))
			}
		}}
		for _, text := range writes {
			n, err := w.Write([]byte(text))
			require.NoError(t, err)
			require.Equal(t, len(text), n)
		}
		w.flush()
		require.Equal(t, strings.Fields(strings.Join(writes, "")), got)
	}
}

func TestLineWriterLeavesOutWhatIsTooLong(t *testing.T) {
	t.Parallel()
	for _, writes := range [][]string{
		{"one\n", "12345", "67890", "1\ntwo\n"},
		{"one\n12345678901\ntwo\n"},
		{"one\n", "1234567890123\n", "two\n", "12345678901"},
	} {
		var got []string
		w := &lineWriter{limit: 10, handle: func(line []byte) { got = append(got, string(line)) }}
		for _, text := range writes {
			_, err := w.Write([]byte(text))
			require.NoError(t, err)
		}
		w.flush()
		require.Equal(t, []string{"one", "two"}, got)
		require.True(t, w.overran)
	}
}

func TestTailWriter(t *testing.T) {
	t.Parallel()
	w := &tailWriter{limit: 5}
	for _, text := range []string{"", "ab", "cde", "f", "0123456789", "x"} {
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	require.Equal(t, "6789x", string(w.kept))
}

func TestPreview(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"curl -s\n  http://x","description":"look"}`: "curl -s http://x",
		`{"file_path":"/etc/hosts","limit":3}`:                   "/etc/hosts",
		`{"status":"healthy"}`:                                   `{"status":"healthy"}`,
		`{"command":7}`:                                          `{"command":7}`,
		`not json`:                                               "not json",
		``:                                                       "",
	} {
		require.Equal(t, want, preview([]byte(input)))
	}
	long := preview([]byte(`{"command":"` + strings.Repeat("ä", 5000) + `"}`))
	require.Equal(t, strings.Repeat("ä", previewRunes-1)+"…", long)
}

func TestNumbersAreBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]count{
		"5": 5, "5.0": 5, "-1": 0, "1e400": 0, "1e13": 0, `"7"`: 0, "null": 0, "[]": 0, "true": 0,
	} {
		var got count
		require.NoError(t, got.UnmarshalJSON([]byte(text)))
		require.Equal(t, want, got, text)
	}
}

// FuzzAccumulator reads lines that no CLI would print. The sums must stay valid.
func FuzzAccumulator(f *testing.F) {
	for _, version := range measured() {
		streams, err := filepath.Glob(filepath.Join("testdata", "streams", version, "*.jsonl"))
		require.NoError(f, err)
		require.NotEmpty(f, streams)
		for _, path := range streams {
			stream, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(stream, uint(len(stream)/3))
		}
	}
	f.Add([]byte(`{"type":"assistant","message":{"usage":{"input_tokens":1e300,"output_tokens":-5}}}`), uint(1))
	f.Add([]byte(`{"type":"result","total_cost_usd":1e999,"model_usage_since_last_result":{"m":{"costUSD":-1}}}`), uint(9))
	f.Add([]byte(`{"type":"user","message":"a text","parent_tool_use_id":7}`), uint(3))

	f.Fuzz(func(t *testing.T, stream []byte, cut uint) {
		var progress Progress
		observe := reporter{report: func(p Progress) { progress = p }, prices: newPrices()}
		r := &run{cli: cliOf("2.1.332")}
		lines := &lineWriter{handle: func(line []byte) { observe.see(r.acc.line(line), &r.acc) }}
		at := min(int(cut%(1<<20)), len(stream))
		for _, part := range [][]byte{stream[:at], stream[at:]} {
			n, err := lines.Write(part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		lines.flush()

		result := r.result(process.Exit{})
		failed := r.judge(process.Exit{}, nil)
		require.GreaterOrEqual(t, result.CostUSD, 0.0)
		require.Less(t, result.CostUSD, 1e15)
		require.GreaterOrEqual(t, progress.CostUSD, 0.0)
		require.LessOrEqual(t, len(progress.Recent), RecentCalls)
		require.GreaterOrEqual(t, result.Tokens.Total(), 0)
		require.GreaterOrEqual(t, result.Turns, 0)
		if len(r.acc.results) == 0 {
			require.NotNil(t, failed, "no run is good without a result")
		}
		if failed != nil {
			require.NotEmpty(t, failed.Message)
			require.NotContains(t, failed.Message, "\n")
		}
		require.True(t, result.Structured == nil || bytes.ContainsAny(result.Structured, "{[\"0123456789tfn"))
	})
}

func BenchmarkAccumulator(b *testing.B) {
	stream, err := os.ReadFile(filepath.Join("testdata", "streams", "2.1.332", "background.jsonl"))
	require.NoError(b, err)
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		var counts accumulator
		lines := &lineWriter{handle: func(line []byte) { counts.line(line) }}
		_, _ = lines.Write(stream)
	}
}

// TestTheWindowIsTheMainThreads covers a subagent whose message is the last one. Subagents have their own context
// window, which must not be reported.
func TestTheWindowIsTheMainThreads(t *testing.T) {
	t.Parallel()
	message := func(id, parent, tokens string) string {
		return `{"type":"assistant","parent_tool_use_id":` + parent + `,"message":{"id":"` + id +
			`","model":"claude-haiku-5-5","content":[],"usage":{"input_tokens":` + tokens + `,"output_tokens":1}}}`
	}
	var counts accumulator
	for _, line := range []string{message("a", "null", "100"), message("b", "null", "200"), message("c", `"toolu_1"`, "9000")} {
		counts.line([]byte(line))
	}
	require.Equal(t, 201, counts.usage.context())
	require.Equal(t, 302, counts.usage.mainTokens().Total())
	require.Equal(t, 2, counts.usage.turns())
	require.Greater(t, newPrices().sum(counts.usage.calls), newPrices().estimate("claude-haiku-5-5", usage{Input: 9000}), "its cost counts")
}
