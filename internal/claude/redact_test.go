package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/process"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	redact := redactor([]string{
		"ANTHROPIC_API_KEY=sk-secret-1", "GITHUB_TOKEN=ghp_secret", "HTTPS_PROXY=http://u:p@proxy", "PATH=/usr/bin", "SHORT_KEY=1",
		"DB_PASS=hunter22", "REPORTS_DSN=ops:pw@tcp(db)/x", "ANTHROPIC_BASE_URL=https://ops:s%40fe-word@gateway.example/v1?a=b@c",
		"FLEET_URL=https://tokentoken@fleet.example", "PLAIN_URL=https://plain.example/user:pass@x", "LONG_TOKEN=ghp_secret-and-more",
		"QUOTED_SECRET=say \"friend\"",
	})
	for text, want := range map[string]string{
		"key sk-secret-1, ghp_secret via http://u:p@proxy in /usr/bin, 1 time": "key [ANTHROPIC_API_KEY], [GITHUB_TOKEN] via [HTTPS_PROXY] in /usr/bin, 1 time",
		"hunter22 to ops:pw@tcp(db)/x":                                         "[DB_PASS] to [REPORTS_DSN]",
		"curl https://ops:s%40fe-word@gateway.example/v1":                      "curl https://[ANTHROPIC_BASE_URL]@gateway.example/v1",
		"curl -u ops:s@fe-word gateway.example":                                "curl -u ops:[ANTHROPIC_BASE_URL] gateway.example",
		"it is tokentoken":                                                     "it is [FLEET_URL]",
		"https://plain.example/user:pass@x":                                    "https://plain.example/user:pass@x",
		"ghp_secret-and-more":                                                  "[LONG_TOKEN]",
		`{"command":"echo say \"friend\""}`:                                    `{"command":"echo [QUOTED_SECRET]"}`,
	} {
		require.Equal(t, want, redact(text))
	}
}

func TestRedactedJSONStaysJSON(t *testing.T) {
	t.Parallel()
	redact := redactor([]string{`ODD_KEY=":"value`})
	require.JSONEq(t, `"{\"a[ODD_KEY]\"}"`, string(redactJSON([]byte(`{"a":"value"}`), redact)))
	require.Nil(t, redactJSON(nil, redact))
}

// TestNothingThatIsPassedOnHoldsCredentials covers whatever ends up in heartbeats and histories.
func TestNothingThatIsPassedOnHoldsCredentials(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-0123456789"
	redact := redactor([]string{"ANTHROPIC_API_KEY=" + secret})
	var reports []Progress
	observe := reporter{report: func(p Progress) { reports = append(reports, p) }}
	r := &run{cli: cliOf("2.1.330"), redact: redact, tally: tally{calls: ledger{redact: redact}}}
	for _, line := range []string{
		`{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"the key is ` + secret + `"},` +
			`{"type":"tool_use","id":"1","name":"Bash","input":{"command":"curl -H ` + secret + `"}},` +
			// The secret lies across the places where a preview and an input are cut.
			`{"type":"tool_use","id":"2","name":"Bash","input":{"command":"` + strings.Repeat("x", previewRunes-10) + secret + `"}},` +
			`{"type":"tool_use","id":"3","name":"Bash","input":{"command":"` + strings.Repeat("x", maxInputBytes-10) + secret + `"}}]}}`,
		`{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"1"}`,
		`{"type":"result","subtype":"success","structured_output":{"key":"` + secret + `"},"result":"done with ` + secret + `",` +
			`"permission_denials":[{"tool_name":"Bash","tool_use_id":"9","tool_input":{"command":"echo ` + secret + `"}}]}`,
	} {
		observe.see(r.tally.line([]byte(line)), &r.tally)
	}
	result := r.result(process.Exit{})
	require.Len(t, result.InFlight, 3)
	require.Len(t, result.Denials, 2)
	require.Len(t, reports[0].InFlight, 3)
	require.JSONEq(t, `{"command":"curl -H [ANTHROPIC_API_KEY]"}`, string(reports[0].InFlight[0].Input))
	require.Equal(t, "done with [ANTHROPIC_API_KEY]", result.Text)
	text, err := json.Marshal([]any{result, reports})
	require.NoError(t, err)
	require.NotContains(t, string(text), secret[:8])
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
