package proxy

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLimitOf checks what the headers of an answer say of the account's limit.
func TestLimitOf(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_895_000_000, 0)
	reset := func(after time.Duration) string { return strconv.FormatInt(now.Add(after).Unix(), 10) }
	const status, until, claim, retry = "Anthropic-Ratelimit-Unified-Status", "Anthropic-Ratelimit-Unified-Reset",
		"Anthropic-Ratelimit-Unified-Representative-Claim", "Retry-After"
	for name, tt := range map[string]struct {
		code   int
		header map[string]string
		after  time.Duration // 0: no limit
		kind   string
	}{
		"of the account":     {429, map[string]string{status: "rejected", until: reset(time.Hour), claim: "five_hour", retry: "9000"}, time.Hour, "five_hour"},
		"of a model":         {429, map[string]string{status: "rejected", until: reset(time.Hour), claim: "seven_day_opus"}, time.Hour, "seven_day_opus"},
		"without a kind":     {429, map[string]string{status: "rejected", until: reset(time.Hour)}, time.Hour, ""},
		"over already":       {429, map[string]string{status: "rejected", until: reset(-time.Hour), claim: "five_hour", retry: "9000"}, 9000 * time.Second, "five_hour"},
		"over, and no retry": {429, map[string]string{status: "rejected", until: reset(-time.Hour), claim: "five_hour"}, -time.Hour, "five_hour"},
		"of a key":           {429, map[string]string{retry: "9000"}, 9000 * time.Second, ""},
		"too many at a time": {429, map[string]string{retry: "60"}, 0, ""},
		"allowed":            {429, map[string]string{status: "allowed", until: reset(time.Hour)}, 0, ""},
		"a page":             {429, map[string]string{retry: "soon"}, 0, ""},
		"an answer":          {200, map[string]string{status: "rejected", until: reset(time.Hour)}, 0, ""},
	} {
		response := &http.Response{StatusCode: tt.code, Header: http.Header{}}
		for key, value := range tt.header {
			response.Header.Set(key, value)
		}
		got, kind := limitOf(response, now)
		require.Equal(t, tt.after != 0, !got.IsZero(), name)
		if tt.after != 0 {
			require.Equal(t, now.Add(tt.after), got, name)
		}
		require.Equal(t, tt.kind, kind, name)
	}
}
