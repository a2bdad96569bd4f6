package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// received is a recorded request.
type received struct {
	method, path, contentType, body string
	user, password                  string
}

// service is an HTTP service that answers with status and records its requests.
type service struct {
	host   string
	status int
	mu     sync.Mutex
	got    []received
}

func startService(t testing.TB, status int) *service {
	t.Helper()
	s := &service{status: status}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	s.got = append(s.got, received{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body), user, password})
	s.mu.Unlock()
	if s.status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(s.status)
	if s.status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "you asked for " + r.URL.String()})
	}
}

var message = Message{Title: "Claude Ops:\na person is needed", Text: "a disk is dying\nSee: claudeops chain 7", Level: LevelWarning}

func parse(t testing.TB, rawURL string) Target {
	t.Helper()
	targets, err := Parse(rawURL)
	require.NoError(t, err)
	require.NotEmpty(t, targets)
	return targets[0]
}

func TestGenericTakesTheMessage(t *testing.T) {
	t.Parallel()
	s := startService(t, http.StatusOK)
	require.NoError(t, parse(t, "generic://"+s.host+"/hook?disabletls=yes").Send(t.Context(), message))
	require.NoError(t, parse(t, "generic+http://"+s.host+"/hook?template=json").Send(t.Context(), message))
	require.Len(t, s.got, 2)
	require.Equal(t, "/hook", s.got[0].path)
	require.Equal(t, "Claude Ops: a person is needed\n\na disk is dying\nSee: claudeops chain 7", s.got[0].body)
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(s.got[1].body), &sent))
	require.Equal(t, s.got[0].body, sent["message"])
}

func TestTitleIsATitleWhereThereAreTitles(t *testing.T) {
	t.Parallel()
	s := startService(t, http.StatusOK)
	// The driver expects an answer that this service does not give. Only the request matters.
	_ = parse(t, "gotify://"+s.host+"/AzyoeNS.D4iJLVa?disabletls=yes").Send(t.Context(), message)
	require.Len(t, s.got, 1)
	var sent map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.got[0].body), &sent))
	require.Equal(t, "Claude Ops: a person is needed", sent["title"])
	require.Equal(t, message.Text, sent["message"])
}

func TestApprise(t *testing.T) {
	t.Parallel()
	s := startService(t, http.StatusOK)
	require.NoError(t, parse(t, "apprise://ops:s3cret@"+s.host+"/below/here/my-key_1?tags=admin,devops").Send(t.Context(), message))
	require.Equal(t, "/below/here/notify/my-key_1", s.got[0].path)
	require.Equal(t, http.MethodPost, s.got[0].method)
	require.Equal(t, "application/json", s.got[0].contentType)
	require.Equal(t, "ops", s.got[0].user)
	require.Equal(t, "s3cret", s.got[0].password)
	require.JSONEq(t, `{"title":"Claude Ops: a person is needed","body":"a disk is dying\nSee: claudeops chain 7",
		"type":"warning","format":"text","tag":"admin,devops"}`, s.got[0].body)
}

func TestAppriseStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusNoContent:           ": the API has no configuration stored under this key",
		http.StatusFailedDependency:    ": answered 424 Failed Dependency: you asked for",
		http.StatusInternalServerError: ": answered 500 Internal Server Error",
		http.StatusFound:               ": answered 302 Found",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := startService(t, status)
			err := parse(t, "apprise://"+s.host+"/key").Send(t.Context(), message)
			require.ErrorContains(t, err, want)
			require.Len(t, s.got, 1, "a redirect is not followed")
		})
	}
}

func TestErrorsSayWhy(t *testing.T) {
	t.Parallel()
	s := startService(t, http.StatusBadGateway)
	err := parse(t, "generic://"+s.host+"/hook?disabletls=yes").Send(t.Context(), message)
	require.ErrorContains(t, err, "502 Bad Gateway")
	err = parse(t, "generic://127.0.0.1:1/x?disabletls=yes").Send(t.Context(), message)
	require.ErrorContains(t, err, "connection refused")
	err = parse(t, "apprise://127.0.0.1:1/k").Send(t.Context(), message)
	require.ErrorContains(t, err, "connection refused")
}

func TestACodeIsSaidUnlessItIsThePassword(t *testing.T) {
	t.Parallel()
	const answered = "the API answered 404 Not Found"
	for rawURL, want := range map[string]string{
		"apprise://ops:secret@127.0.0.1:40404/key":      "the API answered 404 Not Found",
		"telegram://140412345:AAHsecret@telegram?chats": "the API answered 404 Not Found",
		"apprise://ops:404@127.0.0.1:8000/key":          "the API answered … Not Found",
		"generic://host/hooks/a-404-b":                  "the API answered … Not Found",
	} {
		require.Equal(t, want, explain(answered, rawURL), rawURL)
	}
}

func TestASilentServiceIsGivenUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	for _, scheme := range []string{"generic+http://", "apprise://"} {
		ctx, cancel := testContext(t)
		began := time.Now()
		err := parse(t, scheme+strings.TrimPrefix(server.URL, "http://")+"/key").Send(ctx, message)
		cancel()
		require.ErrorContains(t, err, "no answer in time")
		require.Less(t, time.Since(began), sendLimit)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ url, want string }{
		"nothing":        {"", "be a URL that begins with the scheme of a service"},
		"no URL":         {"hunter2", "be a URL that begins with the scheme of a service"},
		"a colon only":   {"hunter:hunter2", "be a URL that begins with the scheme of a service"},
		"broken":         {"generic://hunter2%zz", "percent-encode odd characters"},
		"unknown scheme": {"pigeon://hunter2", "pigeon:// is none; there are apprise, apprises, bark"},
		"logger":         {"logger://", "logger:// is none"},
		"a web page":     {"https://hunter2.example.org", "https:// is none"},
		"incomplete":     {"discord://hunter2", "be a complete discord URL"},
		"no custom form": {"ntfy+https://hunter2", "be a complete ntfy URL"},
		"matrix":         {"matrix://hunter2", "be a complete matrix URL"},
		"no key":         {"apprise://hunter2", "be apprise://HOST:PORT/KEY"},
		"no host":        {"apprises:///hunter2", "be apprises://HOST:PORT/KEY"},
		"odd key":        {"apprise://host/hunter2.x", "be apprise://HOST:PORT/KEY"},
		"odd parameter":  {"apprise://host/key?tagz=hunter2", "have no parameter but tags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.url)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestParseAsksNobody checks that Parse does not contact the service. If it did, an unreachable service could keep a
// worker from starting.
func TestParseAsksNobody(t *testing.T) {
	t.Parallel()
	s := startService(t, http.StatusOK)
	for _, rawURL := range []string{
		"matrix://user:password@" + s.host + "/?rooms=ops&disabletls=yes", "generic+http://" + s.host + "/",
		"gotify://" + s.host + "/AzyoeNS.D4iJLVa?disabletls=yes", "apprise://" + s.host + "/key", "smtp://u:p@" + s.host + "/?from=a@b.c&to=d@e.f",
	} {
		parse(t, rawURL)
	}
	require.Empty(t, s.got)
}

func TestID(t *testing.T) {
	t.Parallel()
	one, same := parse(t, "generic://host/one"), parse(t, "generic://host/one")
	require.Equal(t, one.ID(), same.ID())
	require.NotEqual(t, one.ID(), parse(t, "generic://host/two").ID())
	require.Regexp(t, "^generic-[0-9a-f]{8}$", one.ID())
	require.Equal(t, "generic", parse(t, "generic+https://host/one").Service())
}

// templates lists URLs of services. S stands for a secret, HOST for a service.
var templates = []string{
	"generic+http://S:S@HOST/S?S=S&@authorization=S", "generic://HOST/hooks/S?disabletls=yes", "apprise://S:S@HOST/S?tags=S",
	"discord://S@123456789", "telegram://123456789:AAHshoutrrrShoutrrrShoutrrrS@telegram?chats=@S", "slack://hook:WNA3PBYV6-F20DUQND3RQ-Webc4MAvoacrpPakR8phF0zi@webhook?botname=S",
	"gotify://HOST/S?disabletls=yes", "pushover://shoutrrr:S@S/?devices=S", "matrix://S:S@HOST/?rooms=S&disabletls=yes",
	"mattermost://S@HOST/S/S?disabletls=yes", "rocketchat://S@HOST/S/S", "ntfy://S:S@HOST/S?scheme=http", "bark://:S@HOST/?scheme=http",
	"smtp://S:S@HOST/?fromaddress=S@example.org&toaddresses=S@example.org&usestarttls=no", "googlechat://chat.googleapis.com/v1/spaces/S/messages?key=S&token=S",
	"ifttt://S/?events=S", "join://shoutrrr:S@join/?devices=S", "opsgenie://HOST/S", "zulip://S:S@HOST/?stream=S&topic=S", "pushbullet://S/S",
	"lark://HOST/S?secret=S", "wecom://S", "signal://S:S@HOST/+49123456789/+49123456789?disabletls=yes", "notifiarr://S?channel=S", "pagerduty://HOST/S",
}

// TestNoSecretInAnyError puts secrets into the URLs of every service, lets each service fail in several ways,
// and searches the errors for the secrets.
func TestNoSecretInAnyError(t *testing.T) {
	t.Parallel()
	hosts := []string{startService(t, http.StatusUnauthorized).host, startService(t, http.StatusBadGateway).host, "127.0.0.1:1", "away.example.org"}
	used := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		template := rapid.SampledFrom(templates).Draw(t, "template")
		secret := rapid.StringMatching(`[A-Za-z][A-Za-z0-9]{9,40}|[a-z]{8,20}|[A-Za-z0-9]{4}[_-][A-Za-z]{6}[_-][A-Za-z0-9]{4}|[0-9]{12}`).Draw(t, "secret")
		rawURL := strings.NewReplacer("S", secret, "HOST", rapid.SampledFrom(hosts).Draw(t, "host")).Replace(strings.Replace(template, "S:S", url.UserPassword(secret, secret).String(), 1))
		ctx, cancel := testContext(t)
		defer cancel()
		targets, err := Parse(rawURL)
		if err == nil {
			target := targets[0]
			used[target.Service()] = true
			require.NotContains(t, target.ID(), secret)
			err = target.Send(ctx, Message{Title: "a title", Text: "a text", Level: LevelFailure})
		}
		if err == nil {
			return
		}
		said := strings.ToLower(err.Error())
		require.NotContains(t, said, "\n")
		secret = strings.ToLower(secret)
		for i := range len(secret) - 5 {
			require.NotContains(t, said, secret[i:i+6], "of %s", rawURL)
		}
	})
	require.Greater(t, len(used), 3, "too few URLs were valid: %v", used)
}
