package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/proxy"
)

const (
	realKey  = "sk-real-4f0c2b7a9d"
	question = `{"model":"claude-haiku-5-5","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	patience = 2 * time.Minute
)

// started is the beginning of a streamed answer, and ended is the rest.
const (
	started = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-haiku-5-5\",\"usage\":" +
		`{"input_tokens":100,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_1h_input_tokens":5},"output_tokens":1}}}` + "\n\n"
	ended = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":40,\"server_tool_use\":{\"web_search_requests\":2}}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	whole = `{"type":"message","model":"claude-haiku-5-5","usage":{"input_tokens":7,"output_tokens":3}}`
)

// site is a proxy in front of an API that the test provides.
type site struct {
	t     *testing.T
	proxy *proxy.Proxy
	api   *httptest.Server
	// reached counts the requests that reached the API.
	reached atomic.Int32
}

// newSite starts the proxy and the API. The API answers with handler.
func newSite(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{t: t}
	s.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.reached.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.api.Close)
	s.proxy = startProxy(t, s.api.URL)
	return s
}

func startProxy(t *testing.T, upstream string) *proxy.Proxy {
	t.Helper()
	address, err := url.Parse(upstream)
	require.NoError(t, err)
	started, err := proxy.Start(t.Context(), proxy.Options{
		Upstream: address,
		Header:   http.Header{"x-api-key": {realKey}, "X-Team": {"ops"}},
		Logger:   slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Close()) })
	return started
}

// session returns a session that permits haiku. Each token costs one dollar. A token that is cached for an hour costs
// one dollar more, and a web search costs 1000 dollars.
func session() proxy.Session {
	return proxy.Session{
		ID:      "s-1",
		Permits: func(model string) bool { return strings.Contains(model, "haiku") },
		Price: func(model string, used proxy.Usage) float64 {
			if !strings.Contains(model, "haiku") {
				return -1
			}
			return float64(used.Input + used.Output + used.CacheRead + used.CacheCreation + used.Creation.OneHour + 1000*used.ServerTools.WebSearches)
		},
	}
}

// reply is a completely read answer.
type reply struct {
	status int
	header http.Header
	text   string
	// trailer holds the headers after the text, early those of answers before the final one.
	trailer, early http.Header
}

// ask calls the model with key and body, and reads the answer to its end.
func (s *site) ask(key, body string) reply {
	s.t.Helper()
	return s.send(http.MethodPost, "/v1/messages?beta=true", body, http.Header{"X-Api-Key": {key}})
}

func (s *site) send(method, path, body string, header http.Header) reply {
	s.t.Helper()
	early := http.Header{}
	ctx := httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
		maps.Copy(early, http.Header(header))
		return nil
	}})
	answer, err := s.trySend(ctx, method, path, body, header)
	require.NoError(s.t, err)
	text, _ := io.ReadAll(answer.Body) // the text of an interrupted answer is incomplete
	require.NoError(s.t, answer.Body.Close())
	return reply{answer.StatusCode, answer.Header, string(text), answer.Trailer, early}
}

// trySend sends a request and returns when the answer begins.
func (s *site) trySend(ctx context.Context, method, path, body string, header http.Header) (*http.Response, error) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.proxy.URL()+path, strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header = header
	return http.DefaultClient.Do(request)
}

// begin calls the model with key and returns when the answer begins.
func (s *site) begin(key string) io.ReadCloser {
	s.t.Helper()
	answer, err := s.trySend(s.t.Context(), http.MethodPost, "/v1/messages", question, http.Header{"X-Api-Key": {key}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.Body
}

// stream returns a handler that answers with parts as server-sent events.
func stream(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, part := range parts {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestCredentialsAreTheWorkers(t *testing.T) {
	t.Parallel()
	var seen http.Header
	var path, body string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		seen, path, body = r.Header.Clone(), r.URL.String(), string(sent)
		w.Header().Set("Set-Cookie", "early=1")
		w.WriteHeader(http.StatusEarlyHints)
		for name, value := range map[string]string{
			"Request-Id": "req_1", "Anthropic-Ratelimit-Unified-Status": "allowed", "Set-Cookie": "a=b", "Anthropic-Organization-Id": "org-1", "Trailer": "X-Late",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, whole)
		w.Header().Set("X-Late", "1")
	})
	for name, value := range map[string]string{"X-Api-Key": "%s", "Authorization": "Bearer %s"} {
		lease := s.proxy.Open(session())
		header := http.Header{
			name: {fmt.Sprintf(value, lease.Key())}, "X-Team": {"agents"}, "Cookie": {"a=b"}, "Anthropic-Beta": {"x,y"},
			"Connection": {"Upgrade"}, "Upgrade": {"tunnel"}, "Accept-Encoding": {"gzip"}, "X-Forwarded-For": {"10.0.0.1"},
			"X-Portkey-Provider": {"other"}, "X-Stainless-Lang": {"js"}, "Proxy-Authorization": {"x"}, "Te": {"trailers"},
		}
		answer := s.send(http.MethodPost, "/v1/messages?beta=true", question, header)
		require.Equal(t, http.StatusOK, answer.status)
		require.JSONEq(t, whole, answer.text)
		require.Equal(t, "req_1", answer.header.Get("Request-Id"))
		require.JSONEq(t, question, body)
		require.Equal(t, "/v1/messages?beta=true", path)
		require.Equal(t, []string{realKey}, seen.Values("X-Api-Key"))
		require.Equal(t, []string{"ops"}, seen.Values("X-Team"))
		require.Equal(t, "x,y", seen.Get("Anthropic-Beta"))
		require.Equal(t, "identity", seen.Get("Accept-Encoding"))
		require.Equal(t, "js", seen.Get("X-Stainless-Lang"))
		for _, gone := range []string{"Authorization", "Cookie", "Upgrade", "X-Forwarded-For", "X-Portkey-Provider", "Proxy-Authorization", "Te"} {
			require.Empty(t, seen.Values(gone), gone)
		}
		require.Equal(t, "allowed", answer.header.Get("Anthropic-Ratelimit-Unified-Status"))
		for _, gone := range []string{"Set-Cookie", "Anthropic-Organization-Id", "Trailer"} {
			require.Empty(t, answer.header.Values(gone), gone)
		}
		require.Empty(t, answer.trailer)
		require.Empty(t, answer.early)
		require.NotContains(t, fmt.Sprint(seen), lease.Key())
		require.InDelta(t, 10, lease.Close().CostUSD, 1e-9)
	}
}

// TestAnUpstreamWithAPath covers a gateway that serves the API below a path.
func TestAnUpstreamWithAPath(t *testing.T) {
	t.Parallel()
	var seen string
	s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { seen = r.Host + r.URL.Path })
	s.proxy = startProxy(t, s.api.URL+"/team/anthropic")
	lease := s.proxy.Open(session())
	require.Equal(t, http.StatusOK, s.ask(lease.Key(), question).status)
	require.Equal(t, strings.TrimPrefix(s.api.URL, "http://")+"/team/anthropic/v1/messages", seen)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole) })
	open := s.proxy.Open(session())
	closed := s.proxy.Open(session())
	closed.Close()
	const messages = "/v1/messages"
	for name, c := range map[string]struct {
		key, method, path, body string
		header                  http.Header
		status                  int
		kind                    string
	}{
		"no key":          {key: "", status: 401, kind: "authentication_error"},
		"unknown key":     {key: open.Key() + "x", status: 401, kind: "authentication_error"},
		"the real key":    {key: realKey, status: 401, kind: "authentication_error"},
		"ended key":       {key: closed.Key(), status: 401, kind: "authentication_error"},
		"batches":         {path: "/v1/messages/batches", status: 404, kind: "not_found_error"},
		"files":           {path: "/v1/files", status: 404, kind: "not_found_error"},
		"models":          {method: "GET", path: "/v1/models", status: 404, kind: "not_found_error"},
		"an admin path":   {method: "GET", path: "/v1/organizations/api_keys", status: 404, kind: "not_found_error"},
		"out of the path": {path: "/v1/messages/../files", status: 404, kind: "not_found_error"},
		"encoded path":    {path: "/v1/messages%2f..%2ffiles", status: 404, kind: "not_found_error"},
		"encoded slash":   {path: "/v1%2fmessages", status: 404, kind: "not_found_error"},
		"encoded letter":  {path: "/v1/message%73", status: 404, kind: "not_found_error"},
		"empty query":     {path: messages + "?", status: 404, kind: "not_found_error"},
		"GET":             {method: "GET", status: 404, kind: "not_found_error"},
		"another query":   {path: messages + "?beta=true&x=1", status: 404, kind: "not_found_error"},
		"compressed":      {header: http.Header{"Content-Encoding": {"gzip"}}, status: 404, kind: "not_found_error"},
		"another model":   {body: `{"model":"claude-opus-5-5"}`, status: 403, kind: "permission_error"},
		"counting for another model": {
			path: messages + "/count_tokens", body: `{"model":"claude-opus-5-5"}`, status: 403, kind: "permission_error",
		},
		"a fallback": {body: `{"model":"claude-haiku-5-5","fallbacks":[{"model":"claude-opus-5-5"}]}`, status: 403, kind: "permission_error"},
		"a server of tools": {
			body: `{"model":"claude-haiku-5-5","mcp_servers":[{"type":"url","url":"https://x"}]}`, status: 403, kind: "permission_error",
		},
		"a faster answer":       {body: `{"model":"claude-haiku-5-5","speed":"fast"}`, status: 403, kind: "permission_error"},
		"a container":           {body: `{"container":"x","model":"claude-haiku-5-5"}`, status: 403, kind: "permission_error"},
		"a member with a slash": {body: `{"model":"claude-haiku-5-5","sp\u0065ed":"fast"}`, status: 403, kind: "permission_error"},
		"the tools twice":       {body: `{"model":"claude-haiku-5-5","tools":[],"tools":[]}`, status: 400, kind: "invalid_request_error"},
		"tools in no list":      {body: `{"model":"claude-haiku-5-5","tools":{"type":"x"}}`, status: 400, kind: "invalid_request_error"},
		"a type twice": {
			body: `{"model":"claude-haiku-5-5","tools":[{"type":"code_execution_20250825","type":"custom"}]}`, status: 400, kind: "invalid_request_error",
		},
		"the API's own programs": {
			body: `{"model":"claude-haiku-5-5","tools":[{"type":"code_execution_20250825","name":"x"}]}`, status: 403, kind: "permission_error",
		},
		"a search of the web": {
			body: `{"model":"claude-haiku-5-5","tools":[{"type":"web_search_20250305","name":"x"}]}`, status: 403, kind: "permission_error",
		},
		"an advisor":       {body: `{"model":"claude-haiku-5-5","tools":[{"type":"advisor_20260301","model":"claude-opus-5-5"}]}`, status: 403, kind: "permission_error"},
		"two models":       {body: `{"model":"claude-opus-5-5","model":"claude-haiku-5-5"}`, status: 400, kind: "invalid_request_error"},
		"in other letters": {body: `{"model":"claude-opus-5-5","Model":"claude-haiku-5-5"}`, status: 403, kind: "permission_error"},
		"escaped":          {body: `{"mod\u0065l":"claude-opus-5-5"}`, status: 403, kind: "permission_error"},
		"two in a fallback": {
			body: `{"model":"claude-haiku-5-5","fallbacks":[{"model":"claude-opus-5-5","model":"claude-haiku-5-5"}]}`, status: 400, kind: "invalid_request_error",
		},
		"a fallback of the API's choice": {body: `{"model":"claude-haiku-5-5","fallbacks":"default"}`, status: 400, kind: "invalid_request_error"},
		"a fallback in a word":           {body: `{"model":"claude-haiku-5-5","fallbacks":["claude-opus-5-5"]}`, status: 400, kind: "invalid_request_error"},
		"a list of names of a fallback":  {body: `{"model":"claude-haiku-5-5","fallbacks":[{"model":["claude-opus-5-5"]}]}`, status: 400, kind: "invalid_request_error"},
		"a fallback without a name":      {body: `{"model":"claude-haiku-5-5","fallbacks":[{"model":null}]}`, status: 403, kind: "permission_error"},
		"a faster fallback": {
			body: `{"model":"claude-haiku-5-5","fallbacks":[{"model":"claude-haiku-5-5","speed":"fast"}]}`, status: 403, kind: "permission_error",
		},
		"a faster output": {body: `{"model":"claude-haiku-5-5","output_config":{"speed":"fast"}}`, status: 403, kind: "permission_error"},
		"a model's model": {body: `{"model":"claude-haiku-5-5","tools":[{"model":"claude-haiku-5-5"}]}`, status: 403, kind: "permission_error"},
		"a type in a list": {
			body: `{"model":"claude-haiku-5-5","tools":[{"type":["code_execution_20250825"]}]}`, status: 400, kind: "invalid_request_error",
		},
		"deep lists": {
			body: `{"model":"claude-haiku-5-5","stop_sequences":` + strings.Repeat("[", 20<<20) + `}`, status: 400, kind: "invalid_request_error",
		},
		"two objects": {body: question + question, status: 400, kind: "invalid_request_error"},
		"no model":    {body: `{"messages":[]}`, status: 400, kind: "invalid_request_error"},
		"no string":   {body: `{"model":["claude-opus-5-5"]}`, status: 400, kind: "invalid_request_error"},
		"no JSON":     {body: `model=claude-haiku-5-5`, status: 400, kind: "invalid_request_error"},
		"cut off":     {body: `{"model":"claude-haiku-5-5"`, status: 400, kind: "invalid_request_error"},
	} {
		header := c.header.Clone()
		if header == nil {
			header = http.Header{}
		}
		key := c.key
		if key == "" && c.status != 401 {
			key = open.Key()
		}
		header.Set("X-Api-Key", key)
		method, path, body := or(c.method, http.MethodPost), or(c.path, messages), or(c.body, question)
		answer := s.send(method, path, body, header)
		require.Equal(t, c.status, answer.status, "%s: %s", name, answer.text)
		require.Contains(t, answer.text, `"type":"`+c.kind+`"`, name)
		require.Equal(t, "false", answer.header.Get("X-Should-Retry"), name)
		require.NotContains(t, answer.text, open.Key(), name)
	}
	require.Zero(t, s.reached.Load(), "no refused request gets to the API")
	spent := open.Count()
	spent.Refused = ""
	require.Zero(t, spent)
}

// TestRefusedIsOfTheLatestCall checks that the count says why the proxy did not pass on the latest call, and that a
// call which passes ends it.
func TestRefusedIsOfTheLatestCall(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole) })
	lease := s.proxy.Open(session())
	require.Equal(t, http.StatusForbidden, s.ask(lease.Key(), `{"model":"claude-haiku-5-5","speed":"fast"}`).status)
	require.Equal(t, `a session's request may not have the member "speed"`, lease.Count().Refused)
	require.Equal(t, http.StatusBadRequest, s.ask(lease.Key(), `{`).status)
	require.NotEmpty(t, lease.Count().Refused, "a request that cannot be read says nothing about permission")
	require.Equal(t, http.StatusOK, s.ask(lease.Key(), question).status)
	require.Empty(t, lease.Count().Refused)
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// TestWhatPasses covers requests that name a second model without calling it, and requests that name a second permitted
// model.
func TestWhatPasses(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole) })
	lease := s.proxy.Open(session())
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","model":"claude-opus-5-5"}]}],"model":"claude-haiku-5-5"}`,
		`{"model":"claude-haiku-5-5","tools":[{"type":"custom","name":"Bash"}],"thinking":{"type":"adaptive"}}`,
		`{"model":"claude-haiku-5-5","tools":[{"name":"Agent","input_schema":{"properties":{"model":{"enum":["opus"]}},"model":"opus"}}]}`,
		`{"model":"claude-haiku-5-5","system":[{"model":"opus"}],"max_tokens":1e3,"tools":[],"fallbacks":[{"model":"claude-haiku-4-5"}],"diagnostics":null}`,
		`{"model":"claude-haiku-5-5","stop_sequences":["a"],"context_management":{"edits":[{"type":"x","keep":"all"},{"keep":{"type":"t","value":1}}]}}`,
	} {
		require.Equal(t, http.StatusOK, s.ask(lease.Key(), body).status, body)
	}
	require.Equal(t, http.StatusOK, s.send(http.MethodPost, "/v1/messages/count_tokens?beta=true", question, http.Header{"X-Api-Key": {lease.Key()}}).status)
	require.Equal(t, 5, lease.Count().Calls, "counting tokens costs nothing")
}

// TestTheProbe covers the request with which the CLI probes for a server. It has no key.
func TestTheProbe(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		answer := s.send(method, "/", "", http.Header{})
		require.Equal(t, http.StatusOK, answer.status)
		require.Empty(t, answer.text)
	}
	require.Zero(t, s.reached.Load())
}

func TestCounting(t *testing.T) {
	t.Parallel()
	long := "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + strings.Repeat("\\\"message_", 1<<18) + "\"}}\n\n"
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    proxy.Count
	}{
		"a stream":                      {stream(started, ended), proxy.Count{Calls: 1, CostUSD: 2165}},
		"a stream in small pieces":      {stream(strings.SplitAfter(started+ended, "e")...), proxy.Count{Calls: 1, CostUSD: 2165}},
		"a stream with a long event":    {stream(started, long, ended), proxy.Count{Calls: 1, CostUSD: 2165}},
		"a stream with carriage return": {stream(strings.ReplaceAll(started+ended, "\n", "\r\n")), proxy.Count{Calls: 1, CostUSD: 2165}},
		"a stream that is cut off":      {stream(started), proxy.Count{Calls: 1, CostUSD: 126, Partial: 1}},
		"an error in a stream":          {stream("event: error\ndata: {\"type\":\"error\"}\n\n"), proxy.Count{Calls: 1, Partial: 1}},
		"one message":                   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole) }, proxy.Count{Calls: 1, CostUSD: 10}},
		"no message":                    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, proxy.Count{Calls: 1, Partial: 1}},
		"an error":                      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) }, proxy.Count{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.handler)
			lease := s.proxy.Open(session())
			s.ask(lease.Key(), question)
			require.Equal(t, c.want, lease.Close())
		})
	}
}

// TestErrorsPassUnchanged checks the parts of an error on which the CLI's reaction depends: status, headers and text.
func TestErrorsPassUnchanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Should-Retry", "true")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"error"}`)
	})
	answer := s.ask(s.proxy.Open(session()).Key(), question)
	require.Equal(t, http.StatusTooManyRequests, answer.status)
	require.Equal(t, "7", answer.header.Get("Retry-After"))
	require.Equal(t, "true", answer.header.Get("X-Should-Retry"))
	require.JSONEq(t, `{"type":"error"}`, answer.text)
}

// TestAnUnreachableAPI covers an unreachable API. The caller sees the same error as without the proxy.
func TestAnUnreachableAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	s.api.Close()
	lease := s.proxy.Open(session())
	answer, err := s.trySend(t.Context(), http.MethodPost, "/v1/messages", question, http.Header{"X-Api-Key": {lease.Key()}})
	if err == nil {
		_ = answer.Body.Close()
	}
	require.Error(t, err)
	count := lease.Close()
	require.Contains(t, count.Unreachable, "connection refused")
	count.Unreachable = ""
	require.Zero(t, count, "a call that never left cost nothing")
}

func TestABudgetIsRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	s := newSite(t, stream(started, ended))
	limited := session()
	limited.BudgetUSD = 3000
	lease := s.proxy.Open(limited)
	for range 2 {
		require.Equal(t, http.StatusOK, s.ask(lease.Key(), question).status)
	}
	require.Eventually(t, func() bool { return lease.Count().CostUSD > 3000 }, patience, time.Millisecond)
	answer := s.ask(lease.Key(), question)
	require.Equal(t, http.StatusPaymentRequired, answer.status)
	require.Contains(t, answer.text, "spent its budget of $3000")
	require.EqualValues(t, 2, s.reached.Load())
	require.Equal(t, proxy.Count{Calls: 2, CostUSD: 4330, OverBudget: 1}, lease.Close())

	free := s.send(http.MethodPost, "/v1/messages/count_tokens", question, http.Header{"X-Api-Key": {s.proxy.Open(session()).Key()}})
	require.Equal(t, http.StatusOK, free.status, "another session has its own budget")
}

// TestASessionHasSoManyCallsAtOnce checks the limit of concurrent calls. Without it, an agent could far exceed its
// budget.
func TestASessionHasSoManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	rest := make(chan struct{})
	s := newSite(t, hold(make(chan struct{}), rest))
	lease := s.proxy.Open(session())
	answers := make([]io.ReadCloser, 16)
	for i := range answers {
		answers[i] = s.begin(lease.Key())
	}
	require.Equal(t, http.StatusTooManyRequests, s.ask(lease.Key(), question).status)
	require.EqualValues(t, 16, s.reached.Load())
	close(rest)
	for _, answer := range answers {
		_, err := io.Copy(io.Discard, answer)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.ask(lease.Key(), question).status == http.StatusOK }, patience, time.Millisecond)
	require.Zero(t, lease.Close().Partial)
}

func TestARequestThatIsTooLong(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	long := `{"model":"claude-haiku-5-5","messages":["` + strings.Repeat("x", 34<<20) + `"]}`
	answer := s.ask(s.proxy.Open(session()).Key(), long)
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.status)
	require.Contains(t, answer.text, "request_too_large")
	require.Zero(t, s.reached.Load())
}

// hold returns a handler that sends the beginning of a stream and then waits. The handler continues when the caller has
// disconnected or rest is closed. When the caller has disconnected, the handler closes the channel gone.
func hold(gone, rest chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(started)(w, r)
		select {
		case <-r.Context().Done():
			close(gone)
		case <-rest:
			stream(ended)(w, r)
		}
	}
}

func TestAStreamPassesAtOnce(t *testing.T) {
	t.Parallel()
	gone, rest := make(chan struct{}), make(chan struct{})
	s := newSite(t, hold(gone, rest))
	lease := s.proxy.Open(session())
	lines := bufio.NewScanner(s.begin(lease.Key()))
	require.True(t, lines.Scan(), "the beginning comes before the end is there")
	require.Equal(t, "event: message_start", lines.Text())
	require.Eventually(t, func() bool { return lease.Count().CostUSD > 0 }, patience, time.Millisecond, "and is counted at once")
	close(rest)
	for lines.Scan() {
	}
	require.NoError(t, lines.Err())
	require.Equal(t, proxy.Count{Calls: 1, CostUSD: 2165}, lease.Close())
}

func TestClosingALeaseEndsItsCalls(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := newSite(t, hold(gone, nil))
	lease := s.proxy.Open(session())
	body := s.begin(lease.Key())
	require.Equal(t, proxy.Count{Calls: 1, CostUSD: 126, Partial: 1}, lease.Close())
	<-gone
	_, err := io.ReadAll(body)
	require.Error(t, err, "a broken answer must not look whole")
	require.Equal(t, http.StatusUnauthorized, s.ask(lease.Key(), question).status)
	require.Equal(t, lease.Count(), lease.Close(), "closing twice does no harm")
}

// TestACallerThatLeavesPays checks that a caller cannot get an answer for less by leaving before its end.
func TestACallerThatLeavesPays(t *testing.T) {
	t.Parallel()
	rest := make(chan struct{})
	s := newSite(t, hold(make(chan struct{}), rest))
	limited := session()
	limited.BudgetUSD = 2000
	lease := s.proxy.Open(limited)
	s.leave(lease.Key())
	close(rest)
	require.Eventually(t, func() bool { return lease.Count() == proxy.Count{Calls: 1, CostUSD: 2165} }, patience, time.Millisecond)
	require.Equal(t, http.StatusPaymentRequired, s.ask(lease.Key(), question).status)
	require.Equal(t, proxy.Count{Calls: 1, CostUSD: 2165, OverBudget: 1}, lease.Close())
}

// TestACallerThatLeavesBeforeTheAnswerPays covers a caller that leaves as soon as its request has arrived.
func TestACallerThatLeavesBeforeTheAnswerPays(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		<-left
		stream(started, ended)(w, r)
	})
	lease := s.proxy.Open(session())
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		answer, err := s.trySend(ctx, http.MethodPost, "/v1/messages", question, http.Header{"X-Api-Key": {lease.Key()}})
		if err == nil {
			_ = answer.Body.Close()
		}
		answered <- err
	}()
	require.Eventually(t, func() bool { return s.reached.Load() == 1 }, patience, time.Millisecond)
	leave()
	require.Error(t, <-answered)
	close(left)
	require.Eventually(t, func() bool { return lease.Count().CostUSD == 2165 }, patience, time.Millisecond)
	require.Zero(t, lease.Close().Partial)
}

// leave calls the model with key, and disconnects when the answer has begun.
func (s *site) leave(key string) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	answer, err := s.trySend(ctx, http.MethodPost, "/v1/messages", question, http.Header{"X-Api-Key": {key}})
	require.NoError(s.t, err)
	leave()
	require.NoError(s.t, answer.Body.Close())
}

// TestTheEndOfASessionIsNoDiscount covers calls that the end of the session cuts off. What was streamed is charged by
// an estimate, and so is the request of a call without an answer.
func TestTheEndOfASessionIsNoDiscount(t *testing.T) {
	t.Parallel()
	long := "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("x", 3000) + "\"}}\n\n"
	for name, c := range map[string]struct {
		parts []string
		want  proxy.Count
	}{
		"in the middle": {[]string{started, long}, proxy.Count{Calls: 1, CostUSD: 125 + 1000, Partial: 1}},
		"before":        {nil, proxy.Count{CostUSD: float64(len(question) / 3), Partial: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // before that, a server does not notice that its caller leaves
				if c.parts != nil {
					stream(c.parts...)(w, r)
				}
				<-r.Context().Done()
			})
			lease := s.proxy.Open(session())
			go func() {
				answer, err := s.trySend(t.Context(), http.MethodPost, "/v1/messages", question, http.Header{"X-Api-Key": {lease.Key()}})
				if err == nil {
					_ = answer.Body.Close()
				}
			}()
			expected := c.want
			expected.Partial = 0
			require.Eventually(t, func() bool {
				return s.reached.Load() == 1 && (c.parts == nil || lease.Count() == expected)
			}, patience, time.Millisecond)
			require.Equal(t, c.want, lease.Close())
		})
	}
}

// TestACallerThatDoesNotReadHoldsNothingUp covers a stopped process whose connection stays open with full buffers.
func TestACallerThatDoesNotReadHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	event := "data: " + strings.Repeat("x", 1<<16) + "\n\n"
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		stream(started)(w, r)
		for r.Context().Err() == nil {
			n, _ := io.WriteString(w, event)
			written.Add(int64(n))
		}
	})
	lease := s.proxy.Open(session())
	conn := s.dial(fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		lease.Key(), len(question), question))
	t.Cleanup(func() { _ = conn.Close() })
	last := int64(0)
	require.Eventually(t, func() bool { // until the buffers are full
		before := last
		last = written.Load()
		return last > 0 && last == before
	}, patience, 100*time.Millisecond)
	require.Equal(t, 1, lease.Close().Partial)
}

// TestACallerThatDoesNotWriteHoldsNothingUp covers a request whose body is never sent.
func TestACallerThatDoesNotWriteHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	lease := s.proxy.Open(session())
	conn := s.dial(fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", lease.Key()))
	t.Cleanup(func() { _ = conn.Close() })
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue", "the proxy waits for the body")
	require.Zero(t, lease.Close())
}

// TestUnfinishedRequestsAreBounded sends the beginnings of many large requests. The proxy takes in little of them,
// answers small requests meanwhile, and a large one when the others have gone.
func TestUnfinishedRequestsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, stream(started, ended))
	lease := s.proxy.Open(session())
	const many, size = 12, 30 << 20
	beginning := strings.Repeat("x", size-1)
	var taken atomic.Int64
	var writers sync.WaitGroup
	connections := make([]net.Conn, many)
	for i := range connections {
		connections[i] = s.dial(fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n", lease.Key(), size))
		writers.Go(func() {
			_ = connections[i].SetWriteDeadline(time.Now().Add(2 * time.Second)) // the proxy does not read the rest
			n, _ := io.WriteString(connections[i], beginning)
			taken.Add(int64(n))
		})
	}
	writers.Wait()
	t.Logf("%d MB of %d sent", taken.Load()>>20, many*size>>20)
	require.Less(t, taken.Load(), int64(size+many*13<<20), "one large request, and the small parts and buffers of the others")
	require.Equal(t, http.StatusOK, s.ask(lease.Key(), question).status)
	for _, connection := range connections {
		require.NoError(t, connection.Close())
	}
	large := strings.Replace(question, `"hi"`, `"`+strings.Repeat("x", 20<<20)+`"`, 1)
	require.Eventually(t, func() bool { return s.ask(lease.Key(), large).status == http.StatusOK }, patience, time.Millisecond)
	lease.Close()
}

// TestAbandonedLargeRequests leaves large requests while the API does not answer the first one. They keep no place from
// small ones.
func TestAbandonedLargeRequests(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan struct{}), make(chan struct{})
	short := stream(started, ended)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1<<20 {
			_, _ = io.Copy(io.Discard, r.Body)
			close(arrived)
			<-answer
		}
		short(w, r)
	})
	lease := s.proxy.Open(session())
	large := strings.Replace(question, `"hi"`, `"`+strings.Repeat("x", 8<<20)+`"`, 1)
	head := fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n", lease.Key(), len(large))
	first := s.dial(head + large)
	<-arrived
	const more = 15
	var busy atomic.Int64
	var callers sync.WaitGroup
	for range more {
		callers.Go(func() {
			conn := s.dial(head)
			_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
			_, _ = io.WriteString(conn, large) // the proxy reads a part of it
			line, _ := bufio.NewReader(conn).ReadString('\n')
			if strings.Contains(line, " 529 ") {
				busy.Add(1)
			}
			_ = conn.Close()
		})
	}
	callers.Wait()
	t.Logf("%d of %d heard at once that there are too many", busy.Load(), more)
	require.Equal(t, http.StatusOK, s.ask(lease.Key(), question).status)
	close(answer)
	require.NoError(t, first.Close())
	lease.Close()
}

// dial opens a connection and sends request on it.
func (s *site) dial(request string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.proxy.URL(), "http://"))
	require.NoError(s.t, err)
	_, err = io.WriteString(conn, request)
	require.NoError(s.t, err)
	return conn
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t, stream(started, ended))
	one, other := s.proxy.Open(session()), s.proxy.Open(session())
	require.NotEqual(t, one.Key(), other.Key())
	require.Greater(t, len(one.Key()), 60)
	one.Close()
	require.Equal(t, http.StatusOK, s.ask(other.Key(), question).status, "the end of one session is not the end of others")
}
