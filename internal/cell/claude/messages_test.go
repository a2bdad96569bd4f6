package claude

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readAll returns the messages of a transcript as lines: role, model and content.
func readAll(t *testing.T, transcript string) (lines, ids []string, unreadable int) {
	t.Helper()
	unreadable, err := ReadMessages(strings.NewReader(transcript), func(message TranscriptMessage) {
		ids = append(ids, message.UUID)
		text := strings.TrimSpace(string(message.Role) + " " + message.Model)
		for _, block := range message.Blocks {
			switch {
			case block.Text != nil:
				text += " says " + *block.Text
			case block.Call != nil:
				text += " calls " + block.Call.Name + " " + string(block.Call.Input)
			case block.Result.IsError:
				text += " fails " + block.Result.Text
			default:
				text += " gets " + block.Result.Text
			}
		}
		lines = append(lines, text)
	})
	require.NoError(t, err)
	return lines, ids, unreadable
}

// TestReadMessages reads transcripts of the real CLI: a conversation, and its fork, which repeats it with the same
// UUIDs.
func TestReadMessages(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		read := func(name string) (lines, ids []string) {
			text, err := os.ReadFile(filepath.Join("testdata", "transcripts", version+"-"+name+".jsonl"))
			require.NoError(t, err)
			lines, ids, unreadable := readAll(t, string(text))
			require.Zero(t, unreadable)
			return lines, ids
		}
		parent, inherited := read("parent")
		require.Len(t, parent, 5)
		require.Equal(t, "user says look around", parent[0])
		require.Regexp(t, `^assistant claude-haiku-\S+ says looking$`, parent[1])
		require.Regexp(t, `^assistant claude-haiku-\S+ calls Bash \{"command":"echo hello",.*\}$`, parent[2])
		require.Equal(t, "user gets hello", parent[3])
		fork, ids := read("fork")
		require.Equal(t, parent, fork[:5])
		require.Equal(t, inherited, ids[:5])
		require.Equal(t, "user says second tier", fork[5])
		require.Len(t, fork, 10)
	}
}

func TestReadMessagesOfAllKinds(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image"}]}]}}`: "user fails a\n[image]",
		`{"type":"user","message":{"content":[{"type":"tool_result","content":{"a":1}}]}}`:                                                       `user gets {"a":1}`,
		`{"type":"user","message":{"content":[{"type":"tool_result"}]}}`:                                                                         "user gets ",
		`{"type":"user","isMeta":true,"message":{"content":"a caveat"}}`:                                                                         "system says a caveat",
		`{"type":"system","subtype":"compact_boundary"}`:                                                                                         "system says A summary replaces the conversation up to here.",
		`{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}`:                                  "assistant says API Error",
		`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}`:                                                       "",
		`{"type":"system","subtype":"init","message":7}`:                                                                                         "",
		`{"type":"mode","mode":"normal"}`:                                                                                                        "",
		`   `:                                                                                                                                    "",
	} {
		lines, _, unreadable := readAll(t, line+"\n")
		require.Zero(t, unreadable, line)
		require.Equal(t, want, strings.Join(lines, ""), line)
	}
	for _, line := range []string{"garbage", `{"type":"user","message":7}`, `{"type":"user","message":{"content":7}}`, `{"type":"user","mess`, "[]"} {
		lines, _, unreadable := readAll(t, line)
		require.Equal(t, 1, unreadable, line)
		require.Empty(t, lines)
	}
}

func TestReadMessageDetails(t *testing.T) {
	t.Parallel()
	var got []TranscriptMessage
	_, err := ReadMessages(strings.NewReader(`{"type":"assistant","uuid":"u","timestamp":"2026-03-01T12:00:00.5Z","isSidechain":true,`+
		`"message":{"id":"m","model":"haiku","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,`+
		`"cache_creation_input_tokens":-4},"content":"said"}}`), func(message TranscriptMessage) { got = append(got, message) })
	require.NoError(t, err)
	text := "said"
	require.Equal(t, []TranscriptMessage{{
		UUID: "u", At: time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC), Role: TranscriptAssistant, ID: "m", Model: "haiku",
		Tokens: Tokens{Input: 1, Output: 2, CacheRead: 3}, Subagent: true, Blocks: []TranscriptBlock{{Text: &text}},
	}}, got)
}

func TestReadLine(t *testing.T) {
	t.Parallel()
	lines := bufio.NewReaderSize(strings.NewReader("short\n"+strings.Repeat("x", 100)+"\nlast"), 16)
	for _, want := range []struct {
		line string
		long bool
	}{{"short\n", false}, {"", true}, {"last", false}} {
		line, long, _ := readLine(lines, 60)
		require.Equal(t, want.line, string(line))
		require.Equal(t, want.long, long)
	}
}
