package embedded

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWebUI(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Namespace: "ops"})

	t.Run("serves its page and assets", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		page := browser.get(t, "/namespaces/ops/workflows/any/any/history")
		require.Equal(t, http.StatusOK, page.status)
		assets := regexp.MustCompile(`/_app/[^"]+\.(?:js|css)`).FindAllString(page.body, -1)
		require.NotEmpty(t, assets)
		for _, asset := range assets {
			require.Equal(t, http.StatusOK, browser.get(t, asset).status, asset)
		}
	})

	t.Run("passes calls on to the frontend", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		answer := browser.get(t, "/api/v1/namespaces")
		require.Equal(t, http.StatusOK, answer.status)
		require.Contains(t, answer.body, `"name": "ops"`)
	})

	t.Run("lets people act and tells nobody outside", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		var settings map[string]any
		require.NoError(t, json.Unmarshal([]byte(browser.get(t, "/api/v1/settings").body), &settings))
		require.Equal(t, "ops", settings["DefaultNamespace"])
		require.Equal(t, false, settings["DisableWriteActions"])
		require.Equal(t, true, settings["DisableNewsFetch"])
		require.Empty(t, settings["Codec"].(map[string]any)["Endpoint"])
	})

	t.Run("refuses other host names", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		for host, want := range map[string]int{
			"localhost:1234":          http.StatusOK,
			"127.0.0.1":               http.StatusOK,
			"[::1]:80":                http.StatusOK,
			"attacker.example":        http.StatusForbidden,
			"127.0.0.1.attacker.test": http.StatusForbidden,
			"localhost@attacker.test": http.StatusForbidden,
		} {
			got := browser.do(t, http.MethodGet, "/api/v1/namespaces", func(r *http.Request) { r.Host = host })
			require.Equal(t, want, got.status, host)
		}
	})

	t.Run("refuses what another site's page sends", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		for name, edit := range map[string]func(*http.Request){
			"cross-site":                 func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"without token":              func(*http.Request) {},
			"with an authorization only": func(r *http.Request) { r.Header.Set("Authorization", "x") },
		} {
			got := browser.do(t, http.MethodPost, "/api/v1/namespaces/ops/workflows/none/signal/name", edit)
			require.Contains(t, []int{http.StatusForbidden, http.StatusBadRequest}, got.status, name)
			require.NotContains(t, got.body, "workflow", "%s: the call came through", name)
		}
		got := browser.do(t, http.MethodGet, "/api/v1/namespaces", func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") })
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	})

	t.Run("accepts what its own page sends", func(t *testing.T) {
		t.Parallel()
		browser := newBrowser(t, server.UIURL())
		got := browser.do(t, http.MethodPost, "/api/v1/namespaces/ops/workflows/none/signal/name", browser.token(t))
		require.Equal(t, http.StatusNotFound, got.status, got.body)
		require.Contains(t, got.body, "workflow", "the frontend answered that it has no such workflow")
	})
}

// TestWebUIAdmits checks that Admit is called once for each connection, not for each request.
func TestWebUIAdmits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := startServer(t, Options{Admit: func(conn Connection) error {
		if asked.Add(1) > 1 {
			return fmt.Errorf("%s is not welcome", conn.RemoteAddr().Network())
		}
		return nil
	}})
	first, second := newBrowser(t, server.UIURL()), newBrowser(t, server.UIURL())
	for _, b := range []*browser{first, second} {
		b.client.Transport = &http.Transport{MaxConnsPerHost: 1}
		t.Cleanup(b.client.CloseIdleConnections)
	}
	for range 2 {
		require.Equal(t, http.StatusOK, first.get(t, "/api/v1/namespaces").status)
	}
	for _, path := range []string{"/api/v1/namespaces", "/", "/healthz"} {
		refused := second.get(t, path)
		require.Equal(t, http.StatusForbidden, refused.status, path)
		require.Equal(t, "tcp is not welcome\n", refused.body)
	}
	require.EqualValues(t, 2, asked.Load())
}

func TestWorkflowURL(t *testing.T) {
	t.Parallel()
	ui, err := listenUI(t.Context(), 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ui.close()) })

	for want, id := range map[string][2]string{
		"/namespaces/ops/workflows/chain-1":                     {"chain-1", ""},
		"/namespaces/ops/workflows/chain-1/run-1/history":       {"chain-1", "run-1"},
		"/namespaces/ops/workflows/a%2Fb%20c%3Fd/run-1/history": {"a/b c?d", "run-1"},
	} {
		require.Equal(t, ui.url()+want, ui.workflowURL("ops", id[0], id[1]))
	}
}

// browser is an HTTP client that stores cookies like a browser.
type browser struct {
	client *http.Client
	root   string
}

type page struct {
	status int
	header http.Header
	body   string
}

func newBrowser(t *testing.T, root string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &browser{client: &http.Client{Jar: jar, Timeout: testTimeout}, root: root}
}

func (b *browser) get(t *testing.T, path string) page {
	t.Helper()
	return b.do(t, http.MethodGet, path, func(*http.Request) {})
}

func (b *browser) do(t *testing.T, method, path string, edit func(*http.Request)) page {
	t.Helper()
	request, err := http.NewRequestWithContext(testContext(t), method, b.root+path, strings.NewReader("{}"))
	require.NoError(t, err)
	edit(request)
	response, err := b.client.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return page{status: response.StatusCode, header: response.Header, body: string(body)}
}

// token loads the UI's page. It returns a function that adds the token from the page's cookie as a header, as
// the page does.
func (b *browser) token(t *testing.T) func(*http.Request) {
	t.Helper()
	b.get(t, "/")
	return func(r *http.Request) {
		for _, cookie := range b.client.Jar.Cookies(r.URL) {
			if cookie.Name == "_csrf" {
				r.Header.Set("X-CSRF-Token", cookie.Value)
			}
		}
	}
}
