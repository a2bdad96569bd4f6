package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/redact"
)

// TestNothingThatIsPassedOnHoldsCredentials checks that secrets are masked in all texts for heartbeats and histories.
func TestNothingThatIsPassedOnHoldsCredentials(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-0123456789"
	mask := redact.New([]string{"ANTHROPIC_API_KEY=" + secret})
	var reports []Progress
	observe := reporter{report: func(p Progress) { reports = append(reports, p) }}
	r := &run{cli: cliOf("2.1.332"), mask: mask, acc: accumulator{calls: toolCalls{mask: mask}}}
	for _, line := range []string{
		`{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"the key is ` + secret + `"},` +
			`{"type":"tool_use","id":"1","name":"Bash","input":{"command":"curl -H ` + secret + `"}},` +
			// In these inputs the secret crosses the position where the text is cut.
			`{"type":"tool_use","id":"2","name":"Bash","input":{"command":"` + strings.Repeat("x", previewRunes-10) + secret + `"}},` +
			`{"type":"tool_use","id":"4","name":"Say ` + secret + `","input":{"token":"x1y2z3"}},` +
			`{"type":"tool_use","id":"5","name":"Bash","input":{"command":"` + strings.Repeat("x", maxMaskedBytes-10) + secret + `"}},` +
			`{"type":"tool_use","id":"6","name":"Write","input":{"content":"` + strings.Repeat(secret+" ", maxMaskedBytes) + `"}},` +
			`{"type":"tool_use","id":"3","name":"Bash","input":{"command":"` + strings.Repeat("x", maxInputBytes-10) + secret + `"}}]}}`,
		`{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"1"}`,
		`{"type":"result","subtype":"success","structured_output":{"key":"` + secret + `"},"result":"done with ` + secret + `",` +
			`"permission_denials":[{"tool_name":"Bash","tool_use_id":"9","tool_input":{"command":"echo ` + secret + `"}}]}`,
	} {
		observe.see(r.acc.line([]byte(line)), &r.acc)
	}
	result := r.result(process.Exit{})
	require.Len(t, result.InFlight, 6)
	require.Len(t, result.Denials, 2)
	require.Len(t, reports[0].InFlight, 6)
	require.JSONEq(t, `{"command":"curl -H [masked: ANTHROPIC_API_KEY]"}`, string(reports[0].InFlight[0].Input))
	require.Equal(t, "done with [masked: ANTHROPIC_API_KEY]", result.Text)
	text, err := json.Marshal([]any{result, reports})
	require.NoError(t, err)
	require.NotContains(t, string(text), secret[:8])
	require.NotContains(t, string(text), "x1y2z3")
}

func TestClip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", maxInputBytes)
	cut := strings.Repeat("ä", maxInputBytes/2) + "…"
	for input, want := range map[string]string{
		`{"command":"docker restart web > log","timeout":7}`: `{"command":"docker restart web > log","timeout":7}`,
		`{"description":"` + long + `","command":"a > b"}`:   `{"command":"a > b"}`,
		`{"command":"` + long + `"}`:                         `{"command":"` + cut + `"}`,
		`["` + strings.Repeat("x", maxInputBytes) + `"]`:     `"[\"` + strings.Repeat("x", maxInputBytes-2) + `…"`,
		``: ``,
	} {
		require.Equal(t, want, string(clip([]byte(input))))
	}
}
