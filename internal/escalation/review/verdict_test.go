package review_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation/review"
)

func TestDecodeVerdict(t *testing.T) {
	t.Parallel()
	one := func(fields string) string {
		return `{"status":"not_ready","summary":"s","findings":[{"fingerprint":"a","priority":"P0","action":"auto_fix","text":"t",` + fields + `}]}`
	}
	for text, problem := range map[string]string{
		one(`"file":"a.yaml","line":3`):                                     "",
		one(`"output":"it fails"`):                                          "",
		`{"status":"ready","summary":"s","findings":[]}`:                    "",
		`{"status":"ready","summary":"s"}`:                                  "findings is missing",
		`{"status":"resolved","summary":"s","findings":[]}`:                 `status is "resolved", and must be ready`,
		`{"status":"ready","summary":" ","findings":[]}`:                    "summary is empty",
		`{"status":"ready","summary":"s","findings":[],"approved":true}`:    "unknown field",
		`{"status":"ready","summary":"s","findings":[]} {}`:                 "something follows",
		one(`"file":"a.yaml"`):                                              "findings[0].file and line, or output, must show the problem",
		one(`"line":3`):                                                     "findings[0].file and line, or output, must show the problem",
		strings.Replace(one(`"output":"x"`), "P0", "P3", 1):                 "findings[0].priority must be P0, P1 or P2",
		strings.Replace(one(`"output":"x"`), "auto_fix", "later", 1):        "findings[0].action must be auto_fix or human_required",
		strings.Replace(one(`"output":"x"`), `:"a"`, `:"Wrong port"`, 1):    "findings[0].fingerprint must be a short name",
		`{"status":"ready","summary":"` + strings.Repeat("x", 70<<10) + `"`: "bytes, and at most",
	} {
		got, err := review.DecodeVerdict([]byte(text))
		if problem == "" {
			require.NoError(t, err, text)
			require.Equal(t, "s", got.Summary)
			continue
		}
		require.ErrorIs(t, err, review.ErrInvalidVerdict)
		require.ErrorContains(t, err, problem)
	}
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(review.Schema), &schema))
}
