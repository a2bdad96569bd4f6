package notify

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/stretchr/testify/require"
)

// playedService describes how a service answers.
type playedService struct {
	url     string // HOST stands for its host
	host    string // that it contacts; "" if HOST
	takes   string // its answer when it has taken a message
	refuses string // its answer when it has not, with a status
	says    string // words of the refusal that people must read
}

const (
	uuid  = "11111111-4444-4444-8444-cccccccccccc"
	token = "hunter2hunter2hunter2hunter2hunter" // 34 characters
)

// playedServices lists all services with what their documentation says of answers.
var playedServices = map[string]playedService{
	"apprise":  {"apprise://HOST/hunter2", "", "200 ok", `424 {"error":"One or more notification could not be sent."}`, "could not be sent"},
	"apprises": {"apprises://HOST/hunter2", "", `200 {"error":null}`, "204 ", "no configuration stored"},
	"bark": {
		"bark://:hunter2@HOST/", "", `200 {"code":200,"message":"success","timestamp":1}`,
		`400 {"code":400,"message":"failed to get device token"}`, "failed to get device token",
	},
	"discord": {
		"discord://hunter2@123456789", "discord.com", `200 {"id":"1"}`,
		`404 {"message":"Unknown Webhook","code":10015}`, "answered 404 Not Found: Unknown Webhook",
	},
	"generic": {"generic://HOST/hunter2", "", "201 whatever", `400 {"error":"no such room"}`, "no such room"},
	"googlechat": {
		"googlechat://chat.googleapis.com/v1/spaces/x/messages?key=hunter2&token=hunter2", "chat.googleapis.com",
		`200 {"name":"spaces/x/messages/1"}`, `400 {"error":{"code":400,"message":"Text cannot be empty"}}`, "Text cannot be empty",
	},
	"gotify": {
		"gotify://HOST/AhunteR2hunteR2", "", `200 {"id":25,"message":"m"}`,
		`401 {"error":"Unauthorized","errorCode":401,"errorDescription":"you need to provide a valid access token"}`, "provide a valid access token",
	},
	"ifttt": {
		"ifttt://hunter2/?events=outage", "maker.ifttt.com", "200 Congratulations! You've fired the outage event",
		`401 {"errors":[{"message":"You sent an invalid key."}]}`, "You sent an invalid key",
	},
	"join": {
		"join://shoutrrr:hunter2@join/?devices=one", "joinjoaomgcd.appspot.com", `200 {"success":true}`,
		`200 {"success":false,"userAuthError":true,"errorMessage":"User Not Authenticated"}`, "User Not Authenticated",
	},
	"lark": {
		"lark://open.larksuite.com/hunter2?secret=hunter2", "open.larksuite.com", `200 {"code":0,"msg":"success"}`,
		`200 {"code":19021,"msg":"sign match fail"}`, "sign match fail",
	},
	"matrix": {
		"matrix://ops:hunter2@HOST/?rooms=!a", "", `200 {"access_token":"t","room_id":"!a","event_id":"$1"}`,
		`403 {"errcode":"M_FORBIDDEN","error":"Invalid username or password"}`, "Invalid username or password",
	},
	"mattermost": {"mattermost://HOST/hunter2", "", "200 ok", `400 {"message":"Invalid webhook"}`, "Invalid webhook"},
	"notifiarr": {
		"notifiarr://hunter2?channel=1", "notifiarr.com", `200 {"result":"success"}`,
		`200 {"result":"error","details":{"response":"discord is missing"}}`, "discord is missing",
	},
	"ntfy": {
		"ntfy://u:hunter2@HOST/hunter2", "", `200 {"id":"x","event":"message"}`,
		`413 {"code":41301,"http":413,"error":"attachment too large"}`, "attachment too large",
	},
	"opsgenie": {
		"opsgenie://api.opsgenie.com/hunter2", "api.opsgenie.com:443", `202 {"result":"Request will be processed","requestId":"1"}`,
		`422 {"message":"Request body is not processable"}`, "body is not processable",
	},
	"pagerduty": {
		"pagerduty://events.pagerduty.com/" + strings.Repeat("a1", 16), "events.pagerduty.com:443", `202 {"status":"success","dedup_key":"1"}`,
		`400 {"status":"invalid event","message":"Event object is invalid","errors":["Length of routing_key is incorrect"]}`, "object is invalid",
	},
	"pushbullet": {
		"pushbullet://" + token + "/device", "api.pushbullet.com", `200 {"iden":"1","active":true}`,
		`400 {"error":{"message":"The param has an invalid value","type":"invalid_request"}}`, "has an invalid value",
	},
	"pushover": {
		"pushover://shoutrrr:hunter2@hunter2/", "api.pushover.net", `200 {"status":1,"request":"r"}`,
		`400 {"status":0,"errors":["application is invalid"]}`, "application is invalid",
	},
	"rocketchat": {
		"rocketchat://HOST/hunter2/hunter2", "", `200 {"success":true}`,
		`400 {"success":false,"error":"message too long"}`, "message too long",
	},
	"signal": {"signal://HOST/+49123456789/+49123456788", "", `201 {"timestamp":"1"}`, `400 {"error":"Unregistered sender"}`, "Unregistered sender"},
	"slack": {
		"slack://hook:WNA3PBYV6-F20DUQND3RQ-Webc4MAvoacrpPakR8phF0zi@webhook", "hooks.slack.com", "200 ok",
		"403 invalid_token", "answered 403 Forbidden",
	},
	"smtp": {"smtp://HOST/?from=a@example.org&to=b@example.org", "", "250 taken", "550 no such user here", "550"},
	"teams": {
		"teams://" + uuid + "@" + uuid + "/" + strings.Repeat("a1", 16) + "/" + uuid + "/V2?host=house.webhook.office.com", "house.webhook.office.com", "200 1",
		"200 Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413", "what answered is not this service",
	},
	"telegram": {
		"telegram://123456789:AAHhunter2hunter2hunter2hunter2hunte@telegram?chats=1", "api.telegram.org", `200 {"ok":true,"result":{"message_id":1}}`,
		`400 {"ok":false,"error_code":400,"description":"Bad Request: message is too long"}`, "message is too long",
	},
	"wecom": {"wecom://hunter2", "qyapi.weixin.qq.com", `200 {"errcode":0,"errmsg":"ok"}`, `200 {"errcode":93000,"errmsg":"invalid webhook"}`, "invalid webhook"},
	"zulip": {
		"zulip://bot:hunter2@HOST/?stream=ops", "", `200 {"result":"success","id":1}`,
		`400 {"result":"error","msg":"Invalid API key"}`, "Invalid API key",
	},
}

// variants lists services with another way of sending.
var variants = map[string]playedService{
	"slack's API": {
		"slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@C001CH4NN3L", "slack.com", `200 {"ok":true}`,
		`200 {"ok":false,"error":"channel not found"}`, "channel not found",
	},
	"ifttt with a status of success": {
		"ifttt://hunter2/?events=outage", "maker.ifttt.com", "200 Congratulations! You've fired the outage event",
		`200 {"errors":[{"message":"You sent an invalid key."}]}`, "it was refused: You sent an invalid key",
	},
	"matrix without rooms": {
		"matrix://:hunter2@HOST/", "", `200 {"joined_rooms":["!a"],"event_id":"$1"}`,
		`200 {"joined_rooms":[]}`, "the user has joined no room",
	},
}

// play lets address play the host of a service, and returns a target there.
func (s playedService) play(t *testing.T, address string) Target {
	t.Helper()
	host := s.host
	if host == "" {
		host = address
		if !strings.HasPrefix(s.url, "smtp:") {
			host = strings.ToLower(strings.NewReplacer("/", "-", "'", "", "_", "-").Replace(t.Name())) + ".example.org"
			if strings.HasPrefix(s.url, "signal:") {
				host += ":8080"
			}
		}
	}
	played.Store(host, address)
	targets, err := Parse(strings.ReplaceAll(s.url, "HOST", host))
	require.NoError(t, err)
	require.Len(t, targets, 1)
	return targets[0]
}

// serve starts a server that answers every request with a status and a text, such as "200 ok". For smtp it is a mail
// server.
func (s playedService) serve(t *testing.T, answer string) (address string, got func() string) {
	t.Helper()
	if strings.HasPrefix(s.url, "smtp:") {
		return mailServer(t, answer)
	}
	var mu sync.Mutex
	var all strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		_, _ = fmt.Fprintln(&all, r.URL, r.Header, string(body))
		mu.Unlock()
		status, text, _ := strings.Cut(answer, " ")
		if status == "302" {
			http.Redirect(w, r, text, http.StatusFound)
			return
		}
		code := 0
		_, _ = fmt.Sscan(status, &code)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// mailServer starts a mail server that answers the end of each e-mail with answer.
func mailServer(t *testing.T, answer string) (address string, got func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var mu sync.Mutex
	var all strings.Builder
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				_, _ = fmt.Fprint(connection, "220 here\r\n")
				reader, data := bufio.NewReader(connection), false
				for {
					line, err := reader.ReadString('\n')
					if err != nil {
						return
					}
					mu.Lock()
					all.WriteString(line)
					mu.Unlock()
					switch {
					case data && line != ".\r\n":
					case data:
						data = false
						_, _ = fmt.Fprintf(connection, "%s\r\n", answer)
					case strings.HasPrefix(line, "DATA"):
						data = true
						_, _ = fmt.Fprint(connection, "354 go on\r\n")
					case strings.HasPrefix(line, "QUIT"):
						return // rudely: the e-mail is taken
					default:
						_, _ = fmt.Fprint(connection, "250 ok\r\n")
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// TestEveryService holds each service against its own answer, a closed port, a silent server, the pages of a proxy, a
// redirect, and its own refusal. Only its own answer is a success. The errors name the host and no secret.
func TestEveryService(t *testing.T) { //nolint:paralleltest // another test plays the same hosts
	require.Equal(t, services(), slices.Sorted(maps.Keys(playedServices)), "each service is tried")
	// A variant plays the host of its service, so it runs after it.
	t.Run("services", func(t *testing.T) { holdToAnswers(t, playedServices) })
	t.Run("variants", func(t *testing.T) { holdToAnswers(t, variants) })
}

// holdToAnswers holds all services against each kind of answer.
func holdToAnswers(t *testing.T, all map[string]playedService) {
	t.Helper()
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, got := s.serve(t, s.takes)
			target := s.play(t, address)
			require.NoError(t, target.Send(t.Context(), message))
			require.Contains(t, strings.NewReplacer("%20", " ", "+", " ").Replace(got()), "a disk is dying")

			fails := func(how, address, want string) {
				t.Helper()
				ctx, cancel := testContext(t)
				defer cancel()
				target := s.play(t, address)
				err := target.Send(ctx, message)
				require.ErrorContains(t, err, want, how)
				require.Regexp(t, "^"+regexpQuote(target.Place())+": ", err.Error(), how)
				require.Contains(t, target.Place(), " at ", how)
				require.NotContains(t, strings.ToLower(err.Error()), "hunter2", how)
			}
			fails("closed port", closedPort(t), "connection refused")
			fails("silence", silentServer(t), "no answer in time")
			page, _ := s.serve(t, "502 <html>Bad Gateway</html>")
			if strings.HasPrefix(s.url, "smtp:") {
				page, _ = s.serve(t, "451 try later")
				fails("trouble", page, "451")
			} else {
				fails("a proxy's error", page, "answered 502 Bad Gateway")
				page, _ = s.serve(t, "302 /login")
				fails("a redirect", page, "answered 302 Found")
				page, _ = s.serve(t, "200 <!DOCTYPE html><html>Please log in</html>")
				if name == "generic" { // it can be anything
					require.NoError(t, s.play(t, page).Send(t.Context(), message))
				} else {
					fails("a proxy's login", page, "what answered is not this service")
				}
			}
			page, _ = s.serve(t, s.refuses)
			fails("its refusal", page, s.says)
		})
	}
}

// TestShoutrrrHasNoOtherService checks that each service of shoutrrr is tried above, or refused with a sentence.
func TestShoutrrrHasNoOtherService(t *testing.T) {
	t.Parallel()
	for _, service := range new(router.ServiceRouter).ListServices() {
		if _, tried := playedServices[service]; tried {
			continue
		}
		require.Contains(t, []string{"hangouts", "logger"}, service, "try it, or refuse it")
		_, err := Parse(service + "://hunter2")
		require.ErrorContains(t, err, service+":// is none; there are apprise, ")
	}
}

func regexpQuote(text string) string {
	return strings.NewReplacer(".", `\.`, "(", `\(`, ")", `\)`, "+", `\+`).Replace(text)
}

// closedPort returns an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// silentServer returns an address that accepts connections and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var accepted []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			accepted = append(accepted, connection)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
		for _, connection := range accepted {
			_ = connection.Close()
		}
	})
	return listener.Addr().String()
}

// TestRecipientsAreTargets checks that each recipient of a URL is a target: one that fails does not repeat a message to
// the others.
func TestRecipientsAreTargets(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]int{
		"telegram://123456789:AAHhunter2hunter2hunter2hunter2hunte@telegram?chats=1,2,3": 3,
		"smtp://mail.example.org/?from=a@b.c&to=d@e.f,g@h.i":                             2,
		"matrix://u:p@HOST/?rooms=a,b":                                                   2,
		"ifttt://key/?events=a,b":                                                        2,
		"pushbullet://" + token + "/one/two":                                             2,
		"signal://HOST/+49123456789/+49123456788/+49123456787":                           2,
		"ntfy://HOST/topic":                                                              1,
	} {
		targets, err := Parse(rawURL)
		require.NoError(t, err, rawURL)
		require.Len(t, targets, want, rawURL)
		ids := map[string]bool{}
		for _, target := range targets {
			ids[target.ID()] = true
		}
		require.Len(t, ids, want, rawURL)
	}
}

// long returns a notification such as seven sessions leave behind, in the given language's letters.
func long(letters string) Message {
	lines := []string{"a person must decide about " + letters}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("tier %d: tried “%s”", i, strings.Repeat(letters, 40)))
	}
	return Message{
		Title: "Claude Ops: a person is needed", Text: strings.Join(lines, "\n"), Level: LevelWarning,
		Then: "Until 2026-11-28T00:00:00Z, answer with: claudeops gate chain-1\nLook at it with: claudeops chain chain-1\n" +
			"Page: https://ops.example.org/chains/chain-1#gate\nWeb UI: https://temporal.example.org/" + strings.Repeat("x", 150),
	}
}

// TestLongMessagesFit lets each service refuse what is longer than it takes, counted in bytes. Each must get the first
// line, what to do and the link.
func TestLongMessagesFit(t *testing.T) {
	for name, s := range playedServices {
		t.Run(name, func(t *testing.T) {
			address, got := s.serve(t, s.takes)
			room := appriseRoom
			if known, ok := kinds[strings.TrimSuffix(name, "s")]; ok {
				room = known.room
			} else if known, ok := kinds[name]; ok {
				room = known.room
			}
			for _, letters := range []string{"disk ", "ディスク", "🔥"} {
				m := long(letters)
				cut := fit(m, room)
				require.LessOrEqual(t, len(cut.oneText()), room)
				require.True(t, len(m.oneText()) <= room || len(cut.oneText()) > room*3/4-200, "as much as there is room for: %d of %d", len(cut.oneText()), room)
				require.NoError(t, s.play(t, address).Send(t.Context(), m))
				for _, want := range []string{"a person must decide", "claudeops gate chain-1", "/chains/chain-1#gate"} {
					require.Contains(t, cut.oneText(), want)
				}
				require.Contains(t, unescaped(got()), "claudeops gate chain-1")
			}
		})
	}
}

func unescaped(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return strings.NewReplacer("=\r\n", "", "%20", " ", "+", " ").Replace(text)
}

// TestARefusedMessageIsSentShort lets a service refuse everything above 700 bytes, although it should take more.
func TestARefusedMessageIsSentShort(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 700 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		got = append(got, string(body))
		_, _ = io.WriteString(w, `{"id":"x"}`)
	}))
	t.Cleanup(server.Close)
	for _, letters := range []string{"disk ", "ディスク"} {
		got = nil
		require.NoError(t, parse(t, "ntfy://"+strings.TrimPrefix(server.URL, "http://")+"/topic?scheme=http").Send(t.Context(), long(letters)))
		require.Len(t, got, 1)
		for _, want := range []string{"a person must decide about " + letters, "claudeops gate chain-1", "claudeops chain chain-1", "Page: https://ops.example.org/chains/chain-1#gate"} {
			require.Contains(t, got[0], want)
		}
	}
}

// TestAnOrdinaryFailureIsSentOnce checks that only a refusal is answered with a short message.
func TestAnOrdinaryFailureIsSentOnce(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{http.StatusBadGateway: 1, http.StatusTooManyRequests: 1, http.StatusBadRequest: 2} {
		s := startService(t, status)
		require.Error(t, parse(t, "ntfy://"+s.host+"/topic?scheme=http").Send(t.Context(), long("disk ")))
		require.Len(t, s.got, want, status)
	}
}

// TestACertificateIsChecked sends to a server with a certificate that nobody has signed.
func TestACertificateIsChecked(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":1}`) }))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	for rawURL, insecure := range map[string]string{
		"ntfy://" + host + "/topic?x=": "disabletlsverification=yes", "gotify://" + host + "/AzyoeNS.D4iJLVa?x=": "insecureskipverify=yes",
	} {
		rawURL = strings.TrimSuffix(rawURL, "x=")
		require.ErrorContains(t, parse(t, rawURL).Send(t.Context(), message), "certificate")
		require.NoError(t, parse(t, rawURL+insecure).Send(t.Context(), message))
	}
}

func TestPlacesNameTheHost(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"ntfy://ntfy.example.org/topic":                  "ntfy at ntfy.example.org",
		"generic://eo1x2y3z4a5b6c7.m.pipedream.net/hook": "generic at ….m.pipedream.net",
		"generic://127.0.0.1:8080/hook":                  "generic at 127.0.0.1:8080",
		"discord://hunter2@123456789":                    "discord at discord.com",
		"smtp://mail.example.org/?from=a@b.c&to=d@e.f":   "smtp at mail.example.org",
	} {
		require.Equal(t, want, parse(t, rawURL).Place())
	}
}

// TestEmailIsReadable checks that letters outside of ASCII arrive in the subject and the text.
func TestEmailIsReadable(t *testing.T) {
	t.Parallel()
	address, got := mailServer(t, "250 taken")
	target := parse(t, "smtp://"+address+"/?from=a@example.org&fromname=Claude+Ops&to=b@example.org")
	require.NoError(t, target.Send(context.WithoutCancel(t.Context()), Message{Title: "ディスク", Text: "満杯\n.\nend"}))
	require.Contains(t, got(), "Subject: =?UTF-8?")
	require.Contains(t, got(), "RCPT TO:<b@example.org>")
	require.Contains(t, got(), "=E6=BA=80=E6=9D=AF\r\n..\r\nend")
}
