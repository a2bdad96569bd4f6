package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/redact"
)

// TestOutputText feeds the lines of a stream in which the model writes its output in pieces of one byte, and then
// again.
func TestOutputText(t *testing.T) {
	t.Parallel()
	const text = "Täglich um 3 \"nas\"\\😀 sk-secret-1 ok\n<b> end"
	document, err := json.Marshal(map[string]any{"aside": []any{1, "reply"}, "reply": text, "z": "more"})
	require.NoError(t, err)
	acc := accumulator{output: outputText{field: "reply", mask: redact.New([]string{"ANTHROPIC_API_KEY=sk-secret-1"})}}
	start := func(parent, tool string) {
		acc.line(fmt.Appendf(nil, `{"type":"stream_event","parent_tool_use_id":%q,"event":{"type":"content_block_start",`+
			`"content_block":{"type":"tool_use","name":%q}}}`, parent, tool))
	}
	add := func(piece string) {
		quoted, err := json.Marshal(piece)
		require.NoError(t, err)
		acc.line(fmt.Appendf(nil, `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"partial_json":%s}}}`, quoted))
	}
	start("", "Bash")
	add(`{"reply":"not this one "}`)
	start("toolu_1", structuredOutputTool)
	add(`{"reply":"nor a subagent's "}`)
	require.Empty(t, acc.output.text())
	for range 2 {
		start("", structuredOutputTool)
		shown := ""
		for _, piece := range strings.SplitAfter(string(document), "") {
			add(piece)
			now := acc.output.text()
			require.True(t, strings.HasPrefix(now, shown), "%q, then %q", shown, now)
			require.NotContains(t, now, "sk-s")
			require.NotContains(t, now, "\ufffd")
			shown = now
		}
		require.Equal(t, "Täglich um 3 \"nas\"\\😀 [masked: ANTHROPIC_API_KEY] ok\n<b> ", shown)
	}
	start("", structuredOutputTool)
	require.Empty(t, acc.output.text(), "it begins anew")
	add(`{"reply":"` + strings.Repeat("a word ", MaxText))
	require.Len(t, acc.output.text(), MaxText)
	for _, piece := range []string{"", "x", "[", "{}", `{"reply"`, `{"reply":`, `{"reply":7,`, `{"other":"x","reply`} {
		require.Empty(t, unfinishedField([]byte(piece), "reply"), piece)
	}
	acc.output.field = ""
	require.False(t, acc.output.wants([]byte(`{"event":{"type":"content_block_start"}}`)))
}
