package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// idle is an API beside a Temporal server and records. No worker runs, so chains that are started do nothing.
type idle struct {
	handler    http.Handler
	operations *operations.Operations
}

func startIdle(t testing.TB) idle {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	environ := webtest.Environ(t)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	logger := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, records.Close())
	o := operations.New(operations.Options{
		Environ: append(environ, "TEMPORAL_ADDRESS="+server.Address()), Logger: logger, Clock: time.Now, Patience: 100 * time.Millisecond, Masked: func() {},
	})
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	connection, _, err := o.Connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), connection, embedded.DefaultNamespace))
	router := newRouter(o, stream.NewHub(nil, logger))
	everything := access.Person{Name: "ada", Roles: []access.Role{access.Operate}}
	return idle{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r.WithContext(access.WithPerson(r.Context(), everything)))
	}), o}
}

// hostileRequest is a request that no well-behaved client sends.
type hostileRequest struct {
	method, path, query, key, body string
}

// send sends the request; nil if it cannot be sent by HTTP.
func (i idle) send(t testing.TB, asked hostileRequest) *httptest.ResponseRecorder {
	t.Helper()
	place, err := url.Parse("http://127.0.0.1/api/v1/" + asked.path)
	if err != nil {
		return nil
	}
	place.RawQuery = asked.query
	request, err := http.NewRequestWithContext(t.Context(), asked.method, place.String(), strings.NewReader(asked.body))
	if err != nil {
		return nil
	}
	request.Header.Set("Content-Type", "application/json")
	if asked.key != "" {
		request.Header["Idempotency-Key"] = []string{asked.key}
	}
	answer := httptest.NewRecorder()
	i.handler.ServeHTTP(answer, request)
	return answer
}

// requireSound checks that an answer is one of an API that works: it is JSON, an error is a problem in one line, and
// none is a defect of the server.
func requireSound(t testing.TB, asked hostileRequest, answer *httptest.ResponseRecorder) {
	t.Helper()
	if answer.Code == http.StatusTemporaryRedirect || answer.Code == http.StatusMethodNotAllowed || answer.Code == http.StatusMovedPermanently {
		return // net/http answers a path in another spelling, and a method that there is not
	}
	require.NotEqual(t, http.StatusInternalServerError, answer.Code, "%q: %s", asked, answer.Body)
	require.NotEqual(t, http.StatusBadGateway, answer.Code, "%q: %s", asked, answer.Body)
	if answer.Code < http.StatusBadRequest {
		require.True(t, json.Valid(answer.Body.Bytes()), "%q: %s", asked, answer.Body)
		return
	}
	if answer.Header().Get("Content-Type") == "text/plain; charset=utf-8" {
		require.Equal(t, http.StatusNotFound, answer.Code) // there is no such route
		return
	}
	require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"), "%q", asked)
	var model struct{ Detail string }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &model), "%q", asked)
	require.NotEmpty(t, model.Detail)
	require.NotContains(t, model.Detail, "\n")
	require.NotContains(t, model.Detail, "\x1b")
}

const control = "%1b]0;owned%07%e2%80%ae"

// hostileRequests are the table, and the first inputs of the fuzz test. The status is the one that each must have; 0
// for any that is sound.
func hostileRequests() map[hostileRequest]int {
	long := strings.Repeat("x", 70_000)
	deep := strings.Repeat("[", 20_000)
	post := func(path, body string) hostileRequest {
		return hostileRequest{method: http.MethodPost, path: path, body: body}
	}
	get := func(path, query string) hostileRequest {
		return hostileRequest{method: http.MethodGet, path: path, query: query}
	}
	start := func(key, body string) hostileRequest {
		return hostileRequest{method: http.MethodPost, path: "chains", key: key, body: body}
	}
	return map[hostileRequest]int{
		post("conversations/ada/messages", "{}"):                                                     http.StatusUnprocessableEntity,
		post("conversations/ada/messages", `{"message_id":"m","text":" "}`):                          http.StatusUnprocessableEntity,
		post("conversations/ada/messages", `{"message_id":"m\u001b","text":"x"}`):                    http.StatusUnprocessableEntity,
		post("conversations/ada/messages", `{"message_id":"m","text":"x","actor":"bob"}`):            http.StatusUnprocessableEntity,
		post("conversations/ada/messages", `{"message_id":"m","text":"x","about":"\u202e"}`):         http.StatusNotFound,
		post("conversations/ada/messages", `{"message_id":"m","text":"x","about":"conversation-b"}`): http.StatusUnprocessableEntity,
		post("conversations/a%20b/messages", `{"message_id":"m","text":"x"}`):                        http.StatusUnprocessableEntity,
		post("conversations/ada/stop", `{"turn":-1}`):                                                http.StatusUnprocessableEntity,
		post("conversations/ada/stop", ""):                                                           http.StatusNotFound,
		post("conversations/ada/turns/1/proposals/9/confirm", ""):                                    http.StatusNotFound,
		get("conversations/"+control, ""):                                                            http.StatusUnprocessableEntity,
		get("conversations/"+control+"/events", ""):                                                  http.StatusUnprocessableEntity,
		get("conversations/ada/turns/0", ""):                                                         http.StatusUnprocessableEntity,
		get("conversations/ada/turns/1", "wait=true"):                                                http.StatusNotFound,
		get("conversations/ada/turns", "limit=0"):                                                    http.StatusUnprocessableEntity,
		get("memories", "status=odd"):                                                                http.StatusUnprocessableEntity,
		get("memories", "search=%00"):                                                                http.StatusUnprocessableEntity,
		get("memories/"+control, ""):                                                                 http.StatusUnprocessableEntity,
		get("memories/99", ""):                                                                       http.StatusNotFound,
		post("memories", "{}"):                                                                       http.StatusUnprocessableEntity,
		post("memories/99/confirm", ""):                                                              http.StatusNotFound,

		post("plans", ""):                                                                       http.StatusBadRequest,
		post("plans", `{"task":"run"}`):                                                         http.StatusUnprocessableEntity,
		post("plans", `{"file":"plan.md"}`):                                                     http.StatusUnprocessableEntity,
		post("plans", `{"task":"amend","file":"plan.md"}`):                                      http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"../plan.md"}`):                                     http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"a\u0000b"}`):                                       http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","phases":["one"]}`):                       http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","phases":[null]}`):                        http.StatusUnprocessableEntity,
		post("plans", `{"task":"review","file":"plan.md","phases":["1"]}`):                      http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","repository":"a\nb"}`):                    http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","budget_usd":-1}`):                        http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","id":"7"}`):                               http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","actor":"grace"}`):                        http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","carried":{}}`):                           http.StatusUnprocessableEntity,
		post("plans", `{"task":"run","file":"plan.md","prompt":"`+strings.Repeat(long, 2)+`"}`): http.StatusUnprocessableEntity,

		post("chains", ""):                           http.StatusBadRequest,
		post("chains", "null"):                       http.StatusUnprocessableEntity,
		post("chains", "[]"):                         http.StatusUnprocessableEntity,
		post("chains", "{"):                          http.StatusBadRequest,
		post("chains", "{}{}"):                       http.StatusBadRequest,
		post("chains", deep):                         http.StatusBadRequest,
		post("chains", `{"prompt":"`+long+long+`"}`): http.StatusUnprocessableEntity,
		post("chains", `{"prompt":"`+strings.Repeat(long, 5)+`"}`): http.StatusRequestEntityTooLarge,
		post("chains", `{"start_tier":0}`):                         http.StatusUnprocessableEntity,
		post("chains", `{"start_tier":9}`):                         http.StatusUnprocessableEntity,
		post("chains", `{"start_tier":1e400}`):                     http.StatusBadRequest,
		post("chains", `{"start_tier":"2"}`):                       http.StatusUnprocessableEntity,
		post("chains", `{"start_tier":1.5}`):                       http.StatusUnprocessableEntity,
		post("chains", `{"budget_usd":-1}`):                        http.StatusUnprocessableEntity,
		post("chains", `{"teir":2}`):                               http.StatusUnprocessableEntity,
		post("chains", `{"actor":"grace"}`):                        http.StatusUnprocessableEntity,
		post("chains", `{"verified":true}`):                        http.StatusUnprocessableEntity,
		post("chains", `{"carried":{}}`):                           http.StatusUnprocessableEntity,
		post("chains", `{"ask":{"reason":"x"}}`):                   http.StatusUnprocessableEntity,
		post("chains", `{"issue":"x"}`):                            http.StatusUnprocessableEntity,
		post("chains", `{"Prompt":"x"}`):                           http.StatusUnprocessableEntity,
		post("chains", `{"services":[""]}`):                        http.StatusUnprocessableEntity,
		post("chains", `{"services":["a\u0000b","\ud800"]}`):       0,
		post("chains", `{"services":[null]}`):                      0,
		post("chains", `{"models":{"9":"opus"}}`):                  http.StatusUnprocessableEntity,
		post("chains", `{"models":{"x":"opus"}}`):                  http.StatusUnprocessableEntity,
		post("chains", `{"models":{"1":"-x"}}`):                    http.StatusUnprocessableEntity,
		post("chains", `{"resume_from":{"session_id":"x"}}`):       http.StatusUnprocessableEntity,
		post("chains", `{"id":"7"}`):                               http.StatusUnprocessableEntity,
		post("chains", `{"id":"a/b"}`):                             http.StatusUnprocessableEntity,
		post("chains", `{"id":"a\u0000"}`):                         http.StatusUnprocessableEntity,
		post("chains", "{\"prompt\":\"\xff\xfe\"}"):                0,
		post("chains", `{"trigger":"A B"}`):                        http.StatusUnprocessableEntity,
		start("\xff", `{}`):                                        http.StatusUnprocessableEntity,
		start("a\tb", `{}`):                                        http.StatusUnprocessableEntity,
		start(strings.Repeat("k", 256), `{}`):                      http.StatusUnprocessableEntity,
		start("key", `{"id":"own"}`):                               http.StatusUnprocessableEntity,

		get("chains/"+url.PathEscape("\xff"), ""):                                   http.StatusUnprocessableEntity,
		get("chains/%00", ""):                                                       http.StatusUnprocessableEntity,
		get("chains/"+control, ""):                                                  http.StatusUnprocessableEntity,
		get("chains/"+long[:2_000], ""):                                             http.StatusUnprocessableEntity,
		get("chains/..%2f..%2fetc", ""):                                             http.StatusNotFound,
		get("chains/unknown/gate", ""):                                              http.StatusNotFound,
		get("chains", "limit=0"):                                                    http.StatusUnprocessableEntity,
		get("chains", "limit=-1"):                                                   http.StatusUnprocessableEntity,
		get("chains", "limit=99999999999999999999"):                                 http.StatusUnprocessableEntity,
		get("chains", "limit=x"):                                                    http.StatusUnprocessableEntity,
		get("chains", "after=!!"):                                                   http.StatusUnprocessableEntity,
		get("chains", "after=AAAA"):                                                 http.StatusUnprocessableEntity,
		get("chains", "outcome=odd"):                                                http.StatusUnprocessableEntity,
		get("chains", "service='+OR+1=1+--"):                                        http.StatusOK,
		get("chains", "service=%ff"):                                                http.StatusUnprocessableEntity,
		get("chains", "trigger=%5c'"):                                               http.StatusOK,
		get("chains", "incident=%00"):                                               http.StatusUnprocessableEntity,
		get("chains", "tier=-9223372036854775808"):                                  0,
		get("chains", "min_cost_usd=NaN"):                                           0,
		get("chains", "min_cost_usd=1e308"):                                         0,
		get("chains", "min_cost_usd=Inf"):                                           0,
		get("chains", "since=0000-01-01T00:00:00Z"):                                 0,
		get("chains", "since=9999-12-31T23:59:59Z&until=yesterday"):                 http.StatusUnprocessableEntity,
		get("chains", "odd=1"):                                                      http.StatusUnprocessableEntity,
		get("chains", "limit=1;limit=2"):                                            0,
		post("chains/unknown/cancel", ""):                                           http.StatusNotFound,
		post("chains/unknown/cancel", `{"actor":"x"}`):                              0,
		post("chains/unknown/escalate", `{}`):                                       http.StatusUnprocessableEntity,
		post("chains/unknown/escalate", `{"to_tier":0}`):                            http.StatusUnprocessableEntity,
		post("chains/unknown/escalate", `{"to_tier":2}`):                            http.StatusNotFound,
		post("chains/unknown/escalate", `{"to_tier":2,"actor":"x"}`):                http.StatusUnprocessableEntity,
		post("chains/unknown/gate", `{"gate_id":"g","action":"fix"}`):               http.StatusNotFound,
		post("chains/unknown/gate", `{"action":"fix"}`):                             http.StatusUnprocessableEntity,
		post("chains/unknown/gate", `{"gate_id":"g","action":"x"}`):                 http.StatusUnprocessableEntity,
		get("sessions/x", ""):                                                       http.StatusUnprocessableEntity,
		get("sessions/-1", ""):                                                      http.StatusNotFound,
		get("sessions/99999999999999999999/lineage", ""):                            http.StatusUnprocessableEntity,
		get("sessions/9223372036854775807/lineage", ""):                             http.StatusNotFound,
		get("sessions/1/calls", "after=x"):                                          http.StatusNotFound,
		get("gates", "after=-1-x"):                                                  http.StatusUnprocessableEntity,
		get("incidents", "state=odd"):                                               http.StatusUnprocessableEntity,
		get("incidents", "service=%00"):                                             http.StatusUnprocessableEntity,
		get("incidents/0", ""):                                                      0,
		get("incidents/incident-99999999999999999999", ""):                          0,
		get("incidents/'%20OR%201=1", ""):                                           http.StatusUnprocessableEntity,
		post("incidents/1/close", `{"reason":1}`):                                   http.StatusUnprocessableEntity,
		post("incidents/1/close", ""):                                               http.StatusNotFound,
		post("incidents/1/close", `{"actor":"x"}`):                                  http.StatusUnprocessableEntity,
		post("incidents/1/acknowledge", `{"for":"a while"}`):                        http.StatusUnprocessableEntity,
		post("incidents/1/acknowledge", `{"for":"1s"}`):                             http.StatusUnprocessableEntity,
		post("incidents/1/acknowledge", `{"for":"8h"}`):                             http.StatusNotFound,
		get("services/%ff", ""):                                                     http.StatusUnprocessableEntity,
		get("services/unknown", ""):                                                 http.StatusNotFound,
		get("schedules/%00", ""):                                                    http.StatusUnprocessableEntity,
		get("schedules/unknown", ""):                                                http.StatusNotFound,
		post("schedules/unknown/pause", `{"note":"\u0000"}`):                        0,
		post("schedules/unknown/trigger", `{"overlap":"odd"}`):                      http.StatusUnprocessableEntity,
		post("schedules/unknown/trigger", ``):                                       http.StatusNotFound,
		get("costs", "from=2026-01-01T00:00:00Z&to=2020-01-01T00:00:00Z"):           0,
		get("costs", "from=0001-01-02T00:00:00Z"):                                   0,
		get("costs", "to=9999-01-01T00:00:00Z"):                                     0,
		post("policy/check", `{"tier":9,"command":"ls"}`):                           http.StatusUnprocessableEntity,
		post("policy/check", `{"tier":1,"command":"`+strings.Repeat("(", 999)+`"}`): 0,
		post("policy/check", `{"tier":1,"tool":"Read","input":7}`):                  0,
		post("policy/check", `{"tier":1,"tool":"Bash","input":{"command":[]}}`):     0,
		get("chains/%c3%bc/follow", ""):                                             http.StatusNotFound,
		get("nothing/here", ""):                                                     http.StatusNotFound,
		get("", ""):                                                                 http.StatusNotFound,
		{method: http.MethodDelete, path: "chains/x"}:                               http.StatusMethodNotAllowed,
		{method: http.MethodPut, path: "chains", body: "{}"}:                        http.StatusMethodNotAllowed,
	}
}

// TestHostileRequests checks that no request breaks the API, and that a refused one starts nothing.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	i := startIdle(t)
	started := map[string]bool{}
	var wrong []string
	for asked, want := range hostileRequests() {
		answer := i.send(t, asked)
		require.NotNil(t, answer, "%q", asked)
		requireSound(t, asked, answer)
		name := asked
		name.body, name.path = asked.body[:min(80, len(asked.body))], asked.path[:min(80, len(asked.path))]
		if want != 0 && want != answer.Code {
			wrong = append(wrong, fmt.Sprintf("%q: %d in place of %d: %.200s", name, answer.Code, want, answer.Body))
		}
		if answer.Code == http.StatusCreated {
			var chain operations.Started
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &chain))
			started[chain.ChainID] = true
		}
	}
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	require.Eventually(t, func() bool {
		page, err := i.operations.Chains.List(t.Context(), operations.ChainFilter{Limit: 1_000})
		return err == nil && len(page.Chains) == len(started)
	}, testTimeout, testLook, "not what was started: %v", started)
}

func FuzzAPI(f *testing.F) {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	for asked := range hostileRequests() {
		if len(asked.body) < 1_000 && len(asked.path) < 1_000 {
			f.Add(asked.method, asked.path, asked.query, asked.key, asked.body)
		}
	}
	i := startIdle(f)
	f.Fuzz(func(t *testing.T, method, path, query, key, body string) {
		if strings.Contains(path, "follow") || strings.Contains(path, "events") || path == "openapi.json" {
			t.Skip("a stream")
		}
		asked := hostileRequest{methods[len(method)%len(methods)], path, query, key, body}
		if answer := i.send(t, asked); answer != nil {
			requireSound(t, asked, answer)
		}
	})
}
