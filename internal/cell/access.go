package cell

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// accessLimit limits the time of CheckAccess. Nobody waits longer for an API that is away, which is another problem.
const accessLimit = 3 * time.Second

// CheckAccess says in one sentence why agents cannot call their model; "" if nothing shows it. If the worker holds a
// key or a token, CheckAccess uses it for one request that is free: it counts tokens. The token of a login is for the
// CLI alone.
func CheckAccess(ctx context.Context, options claude.Options) string {
	if problem := claude.AccessProblem(options, 0); problem != "" {
		return problem
	}
	access, _ := claude.FindAccess(options)
	upstream, found, err := APIUpstream(options)
	if err != nil || !found || slices.Contains(access.Variables, "CLAUDE_CODE_OAUTH_TOKEN") {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, accessLimit)
	defer cancel()
	address := upstream.Upstream.JoinPath("/v1/messages/count_tokens")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), strings.NewReader(
		`{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return ""
	}
	request.Header = upstream.Header.Clone()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	answer, err := upstream.Transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	_ = answer.Body.Close()                           // nothing is left to write
	if answer.StatusCode != http.StatusUnauthorized { // others need not concern the credentials
		return ""
	}
	return claude.AccessProblem(options, http.StatusUnauthorized)
}
