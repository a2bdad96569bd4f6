package cell

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

func TestAPIUpstream(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		environ []string
		host    string // "" if no upstream is expected
		problem string
	}{
		"a login":             {environ: []string{"HTTPS_PROXY=http://proxy"}},
		"a key":               {environ: []string{"ANTHROPIC_API_KEY=k"}, host: "api.anthropic.com"},
		"a gateway":           {environ: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://gateway:4000/x"}, host: "gateway:4000"},
		"no address":          {environ: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=gateway:4000"}, problem: "must be an http or https address"},
		"no such file":        {environ: []string{"ANTHROPIC_API_KEY=k", "NODE_EXTRA_CA_CERTS=/nowhere"}, problem: "NODE_EXTRA_CA_CERTS"},
		"no certificate":      {environ: []string{"ANTHROPIC_API_KEY=k", "NODE_EXTRA_CA_CERTS=" + file}, problem: "holds no certificate"},
		"no client's":         {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_CLIENT_CERT=" + file}, problem: "CLAUDE_CODE_CLIENT_CERT"},
		"an encrypted key":    {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_CLIENT_KEY=" + file, "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE=p"}, problem: "without a passphrase"},
		"files of a login's":  {environ: []string{"NODE_EXTRA_CA_CERTS=/nowhere"}},
		"a cloud beside keys": {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_BEDROCK=1"}},
	} {
		upstream, found, err := APIUpstream(claude.Options{Environ: tc.environ})
		if tc.problem != "" {
			require.ErrorContains(t, err, tc.problem, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.host != "", found, name)
		if found {
			require.Equal(t, tc.host, upstream.Upstream.Host, name)
		}
	}
}

// TestAPITransport checks that the worker reaches the API as the CLI would: with the operator's certificates, and
// through the operator's proxy.
func TestAPITransport(t *testing.T) {
	t.Parallel()
	get := func(t *testing.T, address string, environ ...string) (string, error) {
		t.Helper()
		transport, err := apiTransport(environ)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		require.NoError(t, answer.Body.Close())
		return answer.Header.Get("Asked"), nil
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Asked", r.URL.String()) })
	secure, proxy := httptest.NewTLSServer(echo), httptest.NewServer(echo)
	t.Cleanup(secure.Close)
	t.Cleanup(proxy.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, text, 0o600))

	_, err := get(t, secure.URL+"/v1")
	require.ErrorContains(t, err, "certificate")
	said, err := get(t, secure.URL+"/v1", "NODE_EXTRA_CA_CERTS="+authority)
	require.NoError(t, err)
	require.Equal(t, "/v1", said)
	said, err = get(t, "http://api.example/v1", "http_proxy="+proxy.URL)
	require.NoError(t, err)
	require.Equal(t, "http://api.example/v1", said, "the proxy got the whole address")
}
