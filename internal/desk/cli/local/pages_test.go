package local

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// harmlessPosts are the requests that need no more than viewing although they are no GET, because they change nothing.
var harmlessPosts = map[string]bool{"POST /api/v1/policy/check": true}

// publicRoutes need no login, and reveal nothing.
var publicRoutes = map[string]bool{
	"GET /login": true, "POST /login": true, "POST /logout": true, "GET /login.css": true, "GET /healthz": true,
	"GET /assets/{hash}/{name}": true, "GET /favicon.ico": true,
}

// TestEveryRouteOfTheServer walks all routes of the server as `up` and `web` serve it. Without a login, with a token of
// a lower role and with a token of another kind each refuses, also what a page of another site sends with a valid
// cookie. No GET needs a role that could change something.
func TestEveryRouteOfTheServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	environ := []string{"HOME=" + home, "PATH=" + home, simtest.WorkersUser, "TEMPORAL_ADDRESS=127.0.0.1:1", "CLAUDEOPS_STATE_DIR=" + home + "/state"}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	logger := slog.New(slog.DiscardHandler)
	does := operations.New(operations.Options{
		Environ: environ, Logger: logger, Clock: time.Now, Patience: time.Second, Masked: func() {},
	})
	p, err := openPages(t.Context(), cfg, pageOptions{listen: "127.0.0.1:0", logger: logger})
	require.NoError(t, err)
	require.NoError(t, p.prepare(does))
	t.Cleanup(func() { require.NoError(t, p.close()) })
	file := access.OpenTokens(filepath.Join(cfg.State.Dir, "web", "tokens.json"))
	tokens := map[access.Role]string{}
	for _, role := range access.Roles() {
		tokens[role], err = file.Create(access.Token{Name: string(role), Roles: []access.Role{role}})
		require.NoError(t, err)
	}
	ask := func(method, path string, edits ...func(*http.Request)) int {
		r := httptest.NewRequest(method, path, http.NoBody)
		r.Host = "127.0.0.1"
		for _, edit := range edits {
			edit(r)
		}
		w := httptest.NewRecorder()
		p.server.ServeHTTP(w, r)
		return w.Code
	}
	for _, route := range p.server.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		path = strings.NewReplacer("{$}", "", "{", "", "}", "", "...", "").Replace(path)
		if route.Role == "" {
			require.True(t, publicRoutes[route.Pattern], "%s is public, and this test does not know why", route.Pattern)
			continue
		}
		switch {
		case method == http.MethodGet && (strings.HasPrefix(path, "/talk") || strings.HasPrefix(path, "/api/v1/conversations")):
			require.Equal(t, access.ReadTalk, route.Role, route.Pattern)
		case strings.HasPrefix(path, "/talk"), strings.HasPrefix(path, "/api/v1/conversations"), strings.HasPrefix(path, "/v1/"):
			require.Equal(t, access.Talk, route.Role, route.Pattern)
		case method == http.MethodGet, harmlessPosts[route.Pattern]:
			require.Equal(t, access.View, route.Role, route.Pattern)
		default:
			require.NotEqual(t, access.View, route.Role, "%s may change something", route.Pattern)
		}
		wanted := http.StatusSeeOther // to the login page
		if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/") {
			wanted = http.StatusUnauthorized
		}
		require.Equal(t, wanted, ask(method, path), route.Pattern)
		for role, secret := range tokens {
			if !role.Includes(route.Role) {
				got := ask(method, path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) })
				refused := http.StatusForbidden
				if route.Pattern == "GET /{$}" && role == access.Talk {
					refused = http.StatusSeeOther // to the only page that this role has
				}
				require.Equal(t, refused, got, "%s with the role %s", route.Pattern, role)
			}
		}
		if method != http.MethodGet {
			require.Equal(t, http.StatusForbidden, ask(method, path, func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+tokens[access.Operate])
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}), "%s from a page of another site", route.Pattern)
		}
	}
}

// TestHostsOf checks by which names the server may be called.
func TestHostsOf(t *testing.T) {
	t.Parallel()
	loopback := []string{"127.0.0.1", "localhost", "::1"}
	for name, test := range map[string]struct {
		listen, url string
		want        []string
		refused     string
	}{
		"on this machine":              {"127.0.0.1:8230", "", loopback, "ops.example.org"},
		"by name":                      {"localhost:8230", "", loopback, "ops.example.org"},
		"behind a proxy of this host":  {"127.0.0.1:8230", "https://ops.example.org", append([]string{"ops.example.org"}, loopback...), "example.org"},
		"for others":                   {"0.0.0.0:8230", "https://ops.example.org", []string{"ops.example.org"}, "127.0.0.1"},
		"at one address":               {"10.0.0.5:8230", "https://ops.example.org", []string{"ops.example.org", "10.0.0.5"}, "127.0.0.1"},
		"in a container of this host":  {"0.0.0.0:8230", "http://127.0.0.1:8230", loopback, "ops.example.org"},
		"of all addresses, written so": {":8230", "https://ops.example.org", []string{"ops.example.org"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts := hostsOf(config.Web{URL: test.url}, test.listen)
			require.Subset(t, hosts, test.want)
			require.NotContains(t, hosts, test.refused)
		})
	}
}
