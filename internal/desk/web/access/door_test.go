package access

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ownerSecret = "claudeops-token-9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015"

func newAccess(t *testing.T, o Options) *Access {
	t.Helper()
	o.KeyFile = filepath.Join(t.TempDir(), "web", "key")
	if o.Port == 0 {
		o.Port = 8230
	}
	a, err := New(o)
	require.NoError(t, err)
	return a
}

// TestCookie tries cookies that the server has not set, and an expired one.
func TestCookie(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := sessions{cookie: cookieName(8230), key: []byte("a key of the server")}
	token := Token{Name: "grace", Roles: []Role{View}, Hash: hashOf("its secret")}
	other := Token{Name: "eve", Roles: []Role{Operate}, Hash: hashOf("another secret")}
	all := []Token{token, other}
	good := s.open(token, now)
	require.True(t, good.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, good.SameSite)
	later := strconv.FormatInt(now.Add(100*sessionLength).Unix(), 10)
	parts := strings.Split(good.Value, ".")
	for value, want := range map[string]bool{
		good.Value: true,
		s.open(token, now.Add(-sessionLength)).Value:                false,
		strings.Join([]string{parts[0], later, parts[2]}, "."):      false,
		strings.Join([]string{other.id(), parts[1], parts[2]}, "."): false,
		parts[0] + "." + parts[1]:                                   false,
		parts[0] + "." + parts[1] + ".":                             false,
		"":                                                          false,
		"its secret":                                                false,
		good.Value + "0":                                            false,
		"..":                                                        false,
		strings.Join([]string{parts[0], "x", s.sign(token, "x")}, "."):                false,
		sessions{cookie: s.cookie, key: []byte("another key")}.open(token, now).Value: false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Cookie", good.Name+"="+value)
		found, ok := s.token(r, all, now)
		require.Equal(t, want, ok, value)
		if ok {
			require.Equal(t, "grace", found.Name)
		}
		_, ok = s.token(r, []Token{other}, now)
		require.False(t, ok, "its token was revoked: %s", value)
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.AddCookie(good)
	_, ok := sessions{cookie: cookieName(8231), key: s.key}.token(r, all, now)
	require.False(t, ok, "another server's")
}

// TestOwnerOnly passes on the requests of the owner, and of nobody else.
func TestOwnerOnly(t *testing.T) {
	t.Parallel()
	tokens := OpenTokens(filepath.Join(t.TempDir(), "tokens"))
	operator, err := tokens.Create(Token{Name: "grace", Roles: []Role{Operate}})
	require.NoError(t, err)
	a := newAccess(t, Options{Owner: Owner{"ada", ownerSecret}, Tokens: tokens})
	handler := a.OwnerOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Inside", r.URL.String()) }))
	ask := func(address string, edits ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, address, http.NoBody)
		for _, edit := range edits {
			edit(r)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	bearer := func(secret string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
	}
	led := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	require.Equal(t, "/a", ask("/a", bearer(ownerSecret)).Header().Get("X-Inside"))
	require.Equal(t, http.StatusUnauthorized, ask("/a", bearer(operator)).Code, "in Temporal's Web UI an operator could answer under any name")
	require.Equal(t, http.StatusUnauthorized, ask("/api/v1/namespaces").Code)
	require.Equal(t, "/healthz", ask("/healthz").Header().Get("X-Inside"))

	entered := ask("/a%2Fb/?x=1&token="+ownerSecret, led)
	require.Equal(t, http.StatusSeeOther, entered.Code)
	require.Equal(t, "/a%2Fb/?x=1", entered.Header().Get("Location"))
	require.Equal(t, "no-store", entered.Header().Get("Cache-Control"))
	require.Equal(t, "no-referrer", entered.Header().Get("Referrer-Policy"))
	cookie := entered.Result().Cookies()[0]
	withCookie := func(r *http.Request) { r.AddCookie(cookie) }

	redirected := ask("/a%2Fb/?x=1", led)
	require.Equal(t, http.StatusUnauthorized, redirected.Code)
	require.Contains(t, redirected.Body.String(), `<meta http-equiv="refresh" content="0; url=/a%2Fb/?again=1&amp;x=1">`)
	again := ask("/a%2Fb/?again=1&x=1", withCookie)
	require.Equal(t, "/a%2Fb/?x=1", again.Header().Get("Location"))
	require.Equal(t, "/a%2Fb/?x=1", ask("/a%2Fb/?x=1", withCookie).Header().Get("X-Inside"))
	for _, address := range []string{"/?again=1", "/?token=wrong"} {
		closed := ask(address, led)
		require.NotContains(t, closed.Body.String(), "refresh", "it does not go round in circles")
		require.Contains(t, closed.Body.String(), "claudeops env")
	}
	hostile := ask(`/"><script>alert(1)</script>`+url.PathEscape("\"><b>"), led)
	require.NotContains(t, hostile.Body.String(), "<script>")
	require.NotContains(t, hostile.Body.String(), "<b>")
	outside := ask("/", func(r *http.Request) { r.URL = &url.URL{Path: "//attacker.example/", RawQuery: "token=" + ownerSecret} })
	require.Equal(t, "/attacker.example/", outside.Header().Get("Location"))
}

// TestPathOf checks to which pages a login leads.
func TestPathOf(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"/chains?a=b": "/chains?a=b", "/gates/chain%2F1": "/gates/chain%2F1", "": "/", "chains": "/", "//attacker.example": "/",
		"https://attacker.example/": "/", `/\attacker.example`: "/", "/\t/attacker.example": "/", "/%2F/x": "/", "javascript:alert(1)": "/",
		`\\attacker.example`: "/",
	} {
		require.Equal(t, want, pathOf(given), given)
	}
}
