package embedded

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const apiRoot = "/api/v1/namespaces/" + DefaultNamespace

// TestLinkOpensTheWebUI follows the link like a browser, and changes a workflow through the API of the UI's
// pages.
func TestLinkOpensTheWebUI(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken})
	c := dialWith(t, server.Address(), testToken)
	startWorker(t, c)
	run, err := c.ExecuteWorkflow(testContext(t), onTestQueue("by-hand"), waitForName)
	require.NoError(t, err)
	signal := apiRoot + "/workflows/by-hand/signal/name"

	b := newBrowser(t, server.UIURL())
	closed := b.get(t, "/namespaces/default/workflows")
	require.Equal(t, http.StatusUnauthorized, closed.status)
	require.Contains(t, closed.body, "starter env")
	require.Equal(t, http.StatusUnauthorized, b.get(t, apiRoot).status)
	require.Equal(t, http.StatusUnauthorized, b.do(t, http.MethodPost, signal, func(*http.Request) {}).status)
	require.Equal(t, http.StatusUnauthorized, b.get(t, "/?token=0000").status)
	require.Equal(t, http.StatusOK, b.get(t, healthPath).status, "the health check is open")

	var visited []string
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		visited = append(visited, r.URL.String())
		return nil
	}
	link := strings.TrimPrefix(Link(server.WorkflowURL(DefaultNamespace, "by-hand", ""), testToken), server.UIURL())
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
	server := startServer(t, Options{Token: testToken})
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
	server := startServer(t, Options{Token: testToken})
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

// TestDoorCookie tries cookies that were not set by the door, and an expired one.
func TestDoorCookie(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := door{testToken, 8233}
	good := d.newCookie(now)
	require.True(t, good.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, good.SameSite)
	require.NotContains(t, good.Value, testToken)
	later := strconv.FormatInt(now.Add(100*doorOpen).Unix(), 10)
	_, signature, _ := strings.Cut(good.Value, ".")
	for value, want := range map[string]bool{
		good.Value:                            true,
		d.newCookie(now.Add(-doorOpen)).Value: false,
		later + "." + signature:               false,
		later + ".":                           false,
		later:                                 false,
		"":                                    false,
		testToken:                             false,
		door{"another", 8233}.newCookie(now).Value:   false,
		"x." + d.sign("x"):                           false,
		good.Value + "0":                             false,
		strings.Replace(good.Value, ".", ".0", 1):    false,
		strings.ToUpper(strings.Clone(good.Value)):   strings.ToUpper(good.Value) == good.Value,
		d.newCookie(now.Add(time.Minute)).Value + "": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Cookie", good.Name+"="+value)
		require.Equal(t, want, d.hasCookie(r, now), value)
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.AddCookie(good)
	require.False(t, door{testToken, 8234}.hasCookie(r, now), "another server's")
}

// TestDoorAfterAnotherSite opens a link in a page of another site. A browser omits a strict cookie from that
// request and from the redirected one. It sends the cookie when the page reloads itself.
func TestDoorAfterAnotherSite(t *testing.T) {
	t.Parallel()
	d := door{testToken, 8233}
	handler := d.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Inside", r.URL.String())
	}))
	ask := func(address, site string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, address, http.NoBody)
		r.Header.Set("Sec-Fetch-Site", site)
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	const crossSite, sameOrigin = "cross-site", "same-origin"

	entered := ask("/a%2Fb/?x=1&token="+testToken, crossSite)
	require.Equal(t, http.StatusSeeOther, entered.Code)
	require.Equal(t, "/a%2Fb/?x=1", entered.Header().Get("Location"))
	require.Equal(t, "no-store", entered.Header().Get("Cache-Control"))
	require.Equal(t, "no-referrer", entered.Header().Get("Referrer-Policy"))
	cookies := entered.Result().Cookies()
	require.Len(t, cookies, 1)

	redirected := ask("/a%2Fb/?x=1", crossSite)
	require.Equal(t, http.StatusUnauthorized, redirected.Code)
	require.Contains(t, redirected.Body.String(), `<meta http-equiv="refresh" content="0; url=/a%2Fb/?again=1&amp;x=1">`)
	again := ask("/a%2Fb/?again=1&x=1", sameOrigin, cookies...)
	require.Equal(t, http.StatusSeeOther, again.Code)
	require.Equal(t, "/a%2Fb/?x=1", again.Header().Get("Location"))
	require.Equal(t, "/a%2Fb/?x=1", ask("/a%2Fb/?x=1", sameOrigin, cookies...).Header().Get("X-Inside"))

	for _, address := range []string{"/?again=1", "/?token=wrong"} {
		require.NotContains(t, ask(address, crossSite).Body.String(), "refresh", "it does not go round in circles")
	}
	require.NotContains(t, ask("/", "none").Body.String(), "refresh")
	hostile := ask(`/"><script>alert(1)</script>`+url.PathEscape("\"><b>"), crossSite)
	require.NotContains(t, hostile.Body.String(), "<script>")
	require.NotContains(t, hostile.Body.String(), "<b>")
	outside := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	outside.URL = &url.URL{Path: "//attacker.example/", RawQuery: "token=" + testToken}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, outside)
	require.Equal(t, "/attacker.example/", w.Header().Get("Location"))
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
