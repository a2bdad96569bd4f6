package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const ownerSecret = "claudeops-token-0000000000000000000000000000000000000000000000000000000000000000"

// site is a server of a test.
type site struct {
	server *Server
	tokens *access.TokenFile
	log    *bytes.Buffer
	now    time.Time
}

// part registers the routes of a test.
type part func(*access.Router)

func (p part) Register(router *access.Router) { p(router) }

func newSite(t *testing.T, parts ...Part) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{tokens: access.OpenTokens(filepath.Join(dir, "tokens.json")), log: new(bytes.Buffer), now: time.Now()}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	who, err := access.New(access.Options{
		Tokens: s.tokens, Owner: access.Owner{Name: "ada", Secret: ownerSecret}, KeyFile: filepath.Join(dir, "key"), Port: 8230,
		Logger: logger, Clock: func() time.Time { return s.now },
	})
	require.NoError(t, err)
	s.server, err = New(Options{Access: who, Parts: parts, Hosts: []string{"127.0.0.1", "ops.example.org"}, Logger: logger})
	require.NoError(t, err)
	return s
}

// token creates a token.
func (s *site) token(t *testing.T, name string, roles ...access.Role) string {
	t.Helper()
	secret, err := s.tokens.Create(access.Token{Name: name, Roles: roles, CreatedAt: s.now})
	require.NoError(t, err)
	return secret
}

// ask sends a request as edit changes it.
func (s *site) ask(method, target string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = "127.0.0.1:8230"
	for _, change := range edit {
		change(r)
	}
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	return w
}

func withToken(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// logIn logs in by the form, and returns the cookie.
func (s *site) logIn(t *testing.T, secret string) func(*http.Request) {
	t.Helper()
	w := s.ask(http.MethodPost, "/login", withForm(url.Values{"token": {secret}, "next": {"/chains?outcome=failed"}}))
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, "/chains?outcome=failed", w.Header().Get("Location"))
	cookies := w.Result().Cookies()
	require.Len(t, cookies, 1)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookies[0].SameSite)
	require.NotContains(t, cookies[0].Value, secret)
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

func withForm(values url.Values) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		body := values.Encode()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
}

// sample is a part with one route of each role.
func sample() Part {
	return part(func(router *access.Router) {
		say := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			person, _ := access.PersonOf(r.Context())
			_, _ = io.WriteString(w, person.Name)
		})
		router.Handle(access.View, "GET /chains", say)
		router.Handle(access.View, "GET /api/v1/chains", say)
		router.Handle(access.Answer, "POST /api/v1/gates/{chain}", say)
		router.Handle(access.Operate, "POST /api/v1/chains", say)
		router.Handle(access.Alert, "POST /api/v1/hooks/{source}", say)
		router.Handle(access.Talk, "POST /v1/chat/completions", say)
		router.Handle(access.View, "GET /broken", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh dear") }))
	})
}

// TestEveryRouteNeedsItsRole walks the routes: none but the public ones answers without a login, with a token of a
// lower role, or with one of another kind.
func TestEveryRouteNeedsItsRole(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	tokens := map[access.Role]string{}
	for _, role := range access.Roles() {
		tokens[role] = s.token(t, string(role), role)
	}
	public := map[string]bool{"GET /login": true, "POST /login": true, "POST /logout": true, "GET /login.css": true, "GET /healthz": true}
	for _, route := range s.server.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		path = strings.NewReplacer("{$}", "", "{", "", "}", "", "...", "").Replace(path)
		if route.Role == "" {
			require.True(t, public[route.Pattern], "%s is public, and this test does not know why", route.Pattern)
			continue
		}
		require.Equal(t, route.Role == access.View, method == http.MethodGet,
			"%s needs the role %s: what changes something is no GET, and what is no GET needs more than viewing", route.Pattern, route.Role)
		anonymous := s.ask(method, path)
		if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, access.CompletionsPrefix) {
			require.Equal(t, http.StatusUnauthorized, anonymous.Code, route.Pattern)
		} else {
			require.Equal(t, http.StatusSeeOther, anonymous.Code, route.Pattern)
			require.True(t, strings.HasPrefix(anonymous.Header().Get("Location"), "/login"), route.Pattern)
		}
		for role, secret := range tokens {
			got := s.ask(method, path, withToken(secret)).Code
			if role.Includes(route.Role) {
				require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, got, "%s with %s", route.Pattern, role)
			} else {
				require.Equal(t, http.StatusForbidden, got, "%s with %s", route.Pattern, role)
			}
		}
	}
}

// TestFirstPageOfTalkers opens the first page with a role that may not see it.
func TestFirstPageOfTalkers(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample(), part(func(router *access.Router) {
		router.Handle(access.Talk, "GET /talk", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}))
	first := s.ask(http.MethodGet, "/", withToken(s.token(t, "grace", access.Talk)))
	require.Equal(t, http.StatusSeeOther, first.Code)
	require.Equal(t, "/talk", first.Header().Get("Location"))
	require.Equal(t, http.StatusForbidden, s.ask(http.MethodGet, "/", withToken(s.token(t, "alert", access.Alert))).Code)
	require.Equal(t, http.StatusOK, s.ask(http.MethodGet, "/", withToken(s.token(t, "both", access.Talk, access.View))).Code)
	require.Equal(t, http.StatusForbidden, s.ask(http.MethodGet, "/chains", withToken(s.token(t, "eve", access.Talk))).Code)
}

// TestWhoAsks logs in by each way, and checks the name that the handler gets.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	secret := s.token(t, "grace", access.View)
	require.Equal(t, "grace", s.ask(http.MethodGet, "/chains", withToken(secret)).Body.String())
	cookie := s.logIn(t, secret)
	require.Equal(t, "grace", s.ask(http.MethodGet, "/chains", cookie).Body.String())
	require.Equal(t, http.StatusForbidden, s.ask(http.MethodPost, "/api/v1/chains", cookie).Code, "a cookie gives no other role than its token")

	linked := s.ask(http.MethodGet, "/chains?a=b&token="+ownerSecret)
	require.Equal(t, http.StatusSeeOther, linked.Code)
	require.Equal(t, "/chains?a=b", linked.Header().Get("Location"))
	owner := linked.Result().Cookies()[0]
	require.Equal(t, "ada", s.ask(http.MethodGet, "/chains", func(r *http.Request) { r.AddCookie(owner) }).Body.String())
	require.NotEqual(t, http.StatusOK, s.ask(http.MethodGet, "/chains?token="+secret).Code, "only the owner's token opens by a link")

	wrong := s.ask(http.MethodGet, "/api/v1/chains", withToken(ownerSecret+"0"))
	require.Equal(t, http.StatusUnauthorized, wrong.Code)
	require.Contains(t, wrong.Body.String(), "not valid")
}

// TestSessionEnds ends a session in each way in the middle of its use.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site) error{
		"by the revocation of its token": func(s *site) error { return s.tokens.Revoke("grace") },
		"by time":                        func(s *site) error { s.now = s.now.Add(8 * 24 * time.Hour); return nil },
		"with its token": func(s *site) error {
			s.now = s.now.Add(2 * time.Hour)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, sample())
			token := access.Token{Name: "grace", Roles: []access.Role{access.Operate}, CreatedAt: s.now}
			if name == "with its token" {
				token.ExpiresAt = s.now.Add(time.Hour)
			}
			secret, err := s.tokens.Create(token)
			require.NoError(t, err)
			cookie := s.logIn(t, secret)
			require.Equal(t, http.StatusOK, s.ask(http.MethodPost, "/api/v1/chains", cookie).Code)

			require.NoError(t, end(s))
			require.Equal(t, http.StatusUnauthorized, s.ask(http.MethodPost, "/api/v1/chains", cookie).Code)
			page := s.ask(http.MethodGet, "/chains?outcome=failed", cookie)
			require.Equal(t, http.StatusSeeOther, page.Code)
			require.Equal(t, "/login?next=%2Fchains%3Foutcome%3Dfailed", page.Header().Get("Location"))
			part := s.ask(http.MethodGet, "/chains", cookie, withHeader("HX-Request", "true"),
				withHeader("HX-Current-URL", "http://127.0.0.1:8230/chains?tier=2"))
			require.Equal(t, http.StatusUnauthorized, part.Code)
			require.Equal(t, "/login?next=%2Fchains%3Ftier%3D2", part.Header().Get("HX-Redirect"))
		})
	}
}

// TestLogOut checks that logging out removes the cookie.
func TestLogOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	w := s.ask(http.MethodPost, "/logout", s.logIn(t, ownerSecret))
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Negative(t, w.Result().Cookies()[0].MaxAge)
}

// TestOtherSitesAreRefused sends what pages of other sites can make a browser send, with the browser's cookie.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	cookie := s.logIn(t, ownerSecret)
	require.Equal(t, http.StatusOK, s.ask(http.MethodPost, "/api/v1/chains", cookie, withHeader("Sec-Fetch-Site", "same-origin")).Code)
	for name, edits := range map[string][]func(*http.Request){
		"a page of another site":          {withHeader("Sec-Fetch-Site", "cross-site")},
		"a page of another port":          {withHeader("Sec-Fetch-Site", "same-site")},
		"an old browser, another origin":  {withHeader("Origin", "https://attacker.example")},
		"a form of another site":          {withHeader("Sec-Fetch-Site", "cross-site"), withHeader("Sec-Fetch-Mode", "navigate")},
		"a sandboxed frame":               {withHeader("Sec-Fetch-Site", "cross-site"), withHeader("Origin", "null")},
		"another origin on the same host": {withHeader("Origin", "http://127.0.0.1:8233")},
	} {
		for _, path := range []string{"/api/v1/chains", "/logout", "/login"} {
			require.Equal(t, http.StatusForbidden, s.ask(http.MethodPost, path, append(edits, cookie)...).Code, "%s: %s", name, path)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		read := s.ask(http.MethodGet, "/api/v1/chains", cookie, withHeader("Sec-Fetch-Site", site), withHeader("Sec-Fetch-Mode", "no-cors"))
		require.Equal(t, http.StatusUnauthorized, read.Code)
	}
}

// TestLinkFromAnotherSite opens a link in a page of another site. The browser omits the cookie from that request, and
// sends it when the page reloads itself.
func TestLinkFromAnotherSite(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	cookie := s.logIn(t, ownerSecret)
	led := []func(*http.Request){withHeader("Sec-Fetch-Site", "cross-site"), withHeader("Sec-Fetch-Mode", "navigate")}
	first := s.ask(http.MethodGet, "/chains?tier=2", led...)
	require.Equal(t, http.StatusUnauthorized, first.Code)
	require.Contains(t, first.Body.String(), `content="0; url=/chains?again=1&amp;tier=2"`)
	second := s.ask(http.MethodGet, "/chains?again=1&tier=2", cookie, withHeader("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, "/chains?tier=2", second.Header().Get("Location"))
	stranger := s.ask(http.MethodGet, "/chains?again=1&tier=2", led...)
	require.Equal(t, "/login?next=%2Fchains%3Ftier%3D2", stranger.Header().Get("Location"), "it does not go round in circles")
}

// TestHosts calls the server by names that are not its own, as a page does whose name resolves to its address.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	for host, want := range map[string]int{
		"127.0.0.1:8230": http.StatusOK, "127.0.0.1": http.StatusOK, "OPS.example.org": http.StatusOK, "ops.example.org:443": http.StatusOK,
		"attacker.example": http.StatusMisdirectedRequest, "127.0.0.1.attacker.example": http.StatusMisdirectedRequest,
		"ops.example.org.attacker.example": http.StatusMisdirectedRequest, "localhost@attacker.example": http.StatusMisdirectedRequest,
		"": http.StatusMisdirectedRequest,
	} {
		got := s.ask(http.MethodGet, "/api/v1/chains", withToken(ownerSecret), func(r *http.Request) { r.Host = host })
		require.Equal(t, want, got.Code, host)
	}
	require.Equal(t, http.StatusOK, s.ask(http.MethodGet, "/healthz", func(r *http.Request) { r.Host = "10.1.2.3:8230" }).Code)
}

// TestFailedLoginsAreLimited checks that an address with many failures has to wait, and that others need not.
func TestFailedLoginsAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	session := s.logIn(t, ownerSecret)
	from := func(address string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr = address + ":1234" }
	}
	attempt := func(secret, address string) *httptest.ResponseRecorder {
		return s.ask(http.MethodPost, "/login", from(address), withForm(url.Values{"token": {secret}, "next": {"//attacker.example"}}))
	}
	for range 10 {
		require.Equal(t, http.StatusUnauthorized, attempt("guess", "192.0.2.1").Code)
	}
	require.Equal(t, http.StatusTooManyRequests, attempt("guess", "192.0.2.1").Code)
	require.Equal(t, http.StatusTooManyRequests, attempt(ownerSecret, "192.0.2.1").Code, "the right token has to wait, too")
	bearer := s.ask(http.MethodGet, "/api/v1/chains", from("192.0.2.1"), withToken("guess"))
	require.Equal(t, http.StatusTooManyRequests, bearer.Code)
	require.Equal(t, "6", bearer.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, s.ask(http.MethodGet, "/chains", from("192.0.2.1"), session).Code, "who is logged in stays so")
	require.Equal(t, http.StatusSeeOther, attempt(ownerSecret, "192.0.2.2").Code)
	s.now = s.now.Add(time.Minute)
	opened := attempt(ownerSecret, "192.0.2.1")
	require.Equal(t, http.StatusSeeOther, opened.Code)
	require.Equal(t, "/", opened.Header().Get("Location"), "the login leads to no other server")
}

// TestStartsAreLimited checks the limit of starts for each person.
func TestStartsAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t, part(func(router *access.Router) {
		router.Handle(access.Operate, "POST /api/v1/chains", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := access.MayStart(r.Context()); err != nil {
				access.WriteProblem(w, http.StatusTooManyRequests, err)
			}
		}))
	}))
	ada, grace := s.token(t, "Ada", access.Operate), s.token(t, "Grace", access.Operate)
	for range 10 {
		require.Equal(t, http.StatusOK, s.ask(http.MethodPost, "/api/v1/chains", withToken(ada)).Code)
	}
	require.Equal(t, http.StatusTooManyRequests, s.ask(http.MethodPost, "/api/v1/chains", withToken(ada)).Code)
	require.Equal(t, http.StatusOK, s.ask(http.MethodPost, "/api/v1/chains", withToken(grace)).Code)
}

// TestHeadersAndPanics checks what holds for every response, also for that of a handler that panics.
func TestHeadersAndPanics(t *testing.T) {
	t.Parallel()
	s := newSite(t, sample())
	for _, path := range []string{"/chains", "/broken", "/none", "/login"} {
		w := s.ask(http.MethodGet, path, withToken(ownerSecret))
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
		require.NotContains(t, w.Body.String(), "style=")
	}
	broken := s.ask(http.MethodGet, "/broken", withToken(ownerSecret))
	require.Equal(t, http.StatusInternalServerError, broken.Code)
	require.NotContains(t, broken.Body.String(), "oh dear")
	require.Contains(t, s.log.String(), "oh dear")
}

// TestServe serves over a real connection: a body that is too long is refused, a stream ends with the server, and a
// connection that is not admitted gets nothing.
func TestServe(t *testing.T) {
	t.Parallel()
	streaming := make(chan struct{})
	s := newSite(t, part(func(router *access.Router) {
		router.Handle(access.Operate, "POST /api/v1/chains", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				access.WriteProblem(w, http.StatusRequestEntityTooLarge, err)
			}
		}))
		router.Handle(access.View, "GET /api/v1/events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			close(streaming)
			<-r.Context().Done()
		}))
	}))
	var closed atomic.Bool
	s.server.options.Admit = func(net.Conn) error {
		if closed.Load() {
			return errors.New("this server is not for agents")
		}
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx, listener) }()
	root := "http://" + listener.Addr().String()
	send := func(method, path, body string) (status int, answer string) {
		r, err := http.NewRequestWithContext(t.Context(), method, root+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+ownerSecret)
		r.Close = true
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(content)
	}
	status, _ := send(http.MethodPost, "/api/v1/chains", strings.Repeat("x", 256<<10))
	require.Equal(t, http.StatusOK, status)
	status, _ = send(http.MethodPost, "/api/v1/chains", strings.Repeat("x", 256<<10+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	streamed := make(chan int, 1)
	go func() {
		status, _ := send(http.MethodGet, "/api/v1/events", "")
		streamed <- status
	}()
	<-streaming

	closed.Store(true)
	status, answer := send(http.MethodGet, "/healthz", "")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, answer, "not for agents")

	stop()
	require.Equal(t, http.StatusOK, <-streamed, "the stream ends properly")
	require.NoError(t, <-ended)
}
