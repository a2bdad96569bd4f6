package embedded

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const apiRoot = "/api/v1/namespaces/" + DefaultNamespace

// ownersDoor returns the guard with which a `claudeops up` protects its Web UI.
func ownersDoor(t *testing.T) func(http.Handler) http.Handler {
	t.Helper()
	door, err := access.New(access.Options{
		Owner: access.Owner{Name: "ada", Secret: testToken}, KeyFile: filepath.Join(t.TempDir(), "key"), Port: 8230,
	})
	require.NoError(t, err)
	return door.OwnerOnly
}

// TestWithoutGuard checks that a server with a token and without a guard asks for the token in the header.
func TestWithoutGuard(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, startServer(t, Options{Token: testToken}).UIURL())
	require.Equal(t, http.StatusUnauthorized, b.get(t, "/").status)
	require.Equal(t, http.StatusUnauthorized, b.get(t, "/?token="+testToken).status)
	require.Equal(t, http.StatusOK, b.get(t, healthPath).status)
	authorized := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }
	require.Equal(t, http.StatusOK, b.do(t, http.MethodGet, apiRoot, authorized).status)
}

// TestLinkOpensTheWebUI follows the link like a browser, and changes a workflow through the API of the UI's
// pages.
func TestLinkOpensTheWebUI(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, Guard: ownersDoor(t)})
	c := dialWith(t, server.Address(), testToken)
	startWorker(t, c)
	run, err := c.ExecuteWorkflow(testContext(t), onTestQueue("by-hand"), waitForName)
	require.NoError(t, err)
	signal := apiRoot + "/workflows/by-hand/signal/name"

	b := newBrowser(t, server.UIURL())
	closed := b.get(t, "/namespaces/default/workflows")
	require.Equal(t, http.StatusUnauthorized, closed.status)
	require.Contains(t, closed.body, "claudeops env")
	require.Equal(t, http.StatusUnauthorized, b.get(t, apiRoot).status)
	require.Equal(t, http.StatusUnauthorized, b.do(t, http.MethodPost, signal, func(*http.Request) {}).status)
	require.Equal(t, http.StatusUnauthorized, b.get(t, "/?token=0000").status)
	require.Equal(t, http.StatusOK, b.get(t, healthPath).status, "the health check is open")

	var visited []string
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		visited = append(visited, r.URL.String())
		return nil
	}
	link := strings.TrimPrefix(access.Link(server.WorkflowURL(DefaultNamespace, "by-hand", ""), testToken), server.UIURL())
	opened := b.get(t, link)
	require.Equal(t, http.StatusOK, opened.status)
	require.Contains(t, opened.body, "<html")
	require.Equal(t, []string{server.UIURL() + "/namespaces/default/workflows/by-hand"}, visited, "the token is gone from the address")
	require.Equal(t, http.StatusOK, b.get(t, apiRoot).status)

	for name, edit := range map[string]func(*http.Request){
		"none": func(*http.Request) {}, "with a header of its own": func(r *http.Request) { r.Header.Set("Authorization", "x") },
	} {
		got := b.do(t, http.MethodPost, signal, edit)
		require.Contains(t, []int{http.StatusForbidden, http.StatusBadRequest}, got.status, "the token of the page is needed: %s", name)
	}
	require.Equal(t, http.StatusOK, b.do(t, http.MethodPost, signal, with(b.token(t), `{"input":{"payloads":[`+payload(`"Ada"`)+`]}}`)).status)
	requireName(t, run)
	history := b.get(t, apiRoot+"/workflows/by-hand/run/"+run.GetRunID()+"/history.json")
	require.Contains(t, history.body, "waitForName")
	require.NotContains(t, history.body, "error", "the download has a way of its own to the frontend")

	foreign := b.do(t, http.MethodPost, signal, func(r *http.Request) {
		b.token(t)(r)
		r.Header.Set("Sec-Fetch-Site", "same-site")
	})
	require.Equal(t, http.StatusUnauthorized, foreign.status, "a page of another port has the same cookies")
}

// TestScriptShowsTheToken uses the API of the Web UI like curl.
func TestScriptShowsTheToken(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, Guard: ownersDoor(t)})
	for header, want := range map[string]int{
		"Bearer " + testToken: http.StatusOK, "Bearer x": http.StatusUnauthorized, "x": http.StatusUnauthorized, testToken: http.StatusUnauthorized,
	} {
		b := newBrowser(t, server.UIURL())
		authorized := func(r *http.Request) { r.Header.Set("Authorization", header) }
		require.Equal(t, want, b.do(t, http.MethodGet, apiRoot, authorized).status, header)
		start := b.do(t, http.MethodPost, apiRoot+"/workflows/by-script-"+strconv.Itoa(want), with(authorized,
			`{"workflowType":{"name":"waitForName"},"taskQueue":{"name":"`+testQueue+`"}}`))
		require.Equal(t, want, start.status, "%s: %s", header, start.body)
	}
}

// TestCurlCannotStartOrAnswer makes the calls with which an agent could raise its own tier: by default the API
// skips its check of the page's token for any authorization header.
func TestCurlCannotStartOrAnswer(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, Guard: ownersDoor(t)})
	c := dialWith(t, server.Address(), testToken)
	waiting, err := c.ExecuteWorkflow(testContext(t), onTestQueue("at-its-gate"), waitForName)
	require.NoError(t, err)
	for path, body := range map[string]string{
		"/workflows/tier-3":                           `{"workflowType":{"name":"waitForName"},"taskQueue":{"name":"` + testQueue + `"}}`,
		"/workflows/at-its-gate/signal/name":          `{"input":{"payloads":[` + payload(`"agent"`) + `]}}`,
		"/workflows/at-its-gate/update/name":          `{"request":{"input":{"name":"name","args":{"payloads":[` + payload(`"agent"`) + `]}}}}`,
		"/workflows/at-its-gate/update/name?token=x":  `{}`,
		"/workflows/at-its-gate/signal/name?again=1":  `{}`,
		"/workflows/at-its-gate/../../../../healthz/": `{}`,
	} {
		b := newBrowser(t, server.UIURL())
		got := b.do(t, http.MethodPost, apiRoot+path, with(func(r *http.Request) {
			r.Header.Set("Authorization", "x")
			r.Header.Set("X-CSRF-Token", "y")
			r.AddCookie(&http.Cookie{Name: "_csrf", Value: "y"}) //nolint:gosec // the attacker's cookie
		}, body))
		require.Equal(t, http.StatusUnauthorized, got.status, "%s: %s", path, got.body)
	}
	_, err = c.DescribeWorkflow(testContext(t), "tier-3", "")
	require.ErrorContains(t, err, "not found")
	described, err := c.DescribeWorkflow(testContext(t), "at-its-gate", waiting.GetRunID())
	require.NoError(t, err)
	require.Equal(t, 2, described.HistoryLength, "it was started, and is asked nothing")
}

// with returns a function that applies edit to a request and then sets its body.
func with(edit func(*http.Request), body string) func(*http.Request) {
	return func(r *http.Request) {
		edit(r)
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	}
}

// payload encodes a value as the API expects.
func payload(value string) string {
	encoded, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings and bytes can always be encoded
		"metadata": map[string][]byte{"encoding": []byte("json/plain")}, "data": []byte(value),
	})
	return string(encoded)
}
