package cell

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// TestCheckAccess holds CheckAccess against what an API can answer. Only refused credentials are a problem, and only a
// key or a token of the worker's own is used.
func TestCheckAccess(t *testing.T) {
	t.Parallel()
	const refused = "the model's API refuses the credentials in "
	for name, tt := range map[string]struct {
		environ []string
		status  int
		want    string
		asks    bool
	}{
		"accepted":             {[]string{"ANTHROPIC_API_KEY=k"}, http.StatusOK, "", true},
		"a refused key":        {[]string{"ANTHROPIC_API_KEY=k"}, http.StatusUnauthorized, refused + "ANTHROPIC_API_KEY (401): correct the variable", true},
		"a refused token":      {[]string{"ANTHROPIC_AUTH_TOKEN=k"}, http.StatusUnauthorized, refused + "ANTHROPIC_AUTH_TOKEN (401): correct the variable", true},
		"a gateway without it": {[]string{"ANTHROPIC_API_KEY=k"}, http.StatusNotFound, "", true},
		"a firewall":           {[]string{"ANTHROPIC_API_KEY=k"}, http.StatusForbidden, "", true},
		"busy":                 {[]string{"ANTHROPIC_API_KEY=k"}, http.StatusTooManyRequests, "", true},
		"the token of a login": {[]string{"CLAUDE_CODE_OAUTH_TOKEN=k"}, http.StatusUnauthorized, "", false},
		"a cloud":              {[]string{"CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_API_KEY=k"}, http.StatusUnauthorized, "", false},
		"nothing":              {nil, http.StatusUnauthorized, "agents find no credentials in this environment, and none in /none", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan *http.Request, 10)
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r
				w.WriteHeader(tt.status)
			}))
			t.Cleanup(api.Close)
			options := claude.Options{Environ: append(tt.environ, "ANTHROPIC_BASE_URL="+api.URL+"/gateway"), ConfigDir: "/none"}
			got := CheckAccess(t.Context(), options)
			if tt.want == "" {
				require.Empty(t, got)
			}
			require.Contains(t, got, tt.want)
			require.Equal(t, tt.asks, len(asked) == 1)
			if tt.asks {
				request := <-asked
				require.Equal(t, "/gateway/v1/messages/count_tokens", request.URL.Path, "which is free")
				require.Equal(t, "k", request.Header.Get("X-Api-Key")+strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "))
			}
			api.Close()
			require.NotContains(t, CheckAccess(t.Context(), options), refused, "an API that is away refuses nothing")
		})
	}
}
