package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sender sends a message to one recipient of a service.
type sender struct {
	host string // whom it contacts, without a port that the service implies
	send func(ctx context.Context, m Message) error
}

// request is a request to a service.
type request struct {
	method string // POST if empty
	url    string
	header map[string]string
	body   any // a string, url.Values, or what becomes JSON; nil for none
	// insecure accepts any certificate, because the target's URL says so.
	insecure bool
}

// answer holds a service's response with a status of success.
type answer struct {
	status int
	text   string
	json   map[string]any // nil if text is no JSON object
}

// proof returns nil if an answer proves that the service has taken the message. The page of a proxy with status 200
// proves nothing.
type proof func(answer) error

// post returns a sender of one request for each message.
func post(taken proof, prepare func(m Message) request) sender {
	host := ""
	if parsed, err := url.Parse(prepare(Message{Title: "t", Text: "t"}).url); err == nil {
		host = parsed.Host
	}
	return sender{host: host, send: func(ctx context.Context, m Message) error {
		got, err := prepare(m).do(ctx)
		if err == nil {
			err = taken(got)
		}
		return err
	}}
}

// failure says why a message was not delivered.
type failure struct {
	// own is in words of this package, which contain no secret.
	own string
	// foreign is in words of a service or a library, which can contain any part of the URL.
	foreign string
	// refused reports whether the service blames the message or its sender. A shorter message can help.
	refused bool
}

func (f failure) Error() string {
	return strings.Join(slices.DeleteFunc([]string{f.own, f.foreign}, func(text string) bool { return text == "" }),
		": ")
}

// unproven returns the error for an answer with a status of success that does not prove a delivery.
func unproven(got answer) error {
	if got.json == nil {
		return failure{own: "what answered is not this service"}
	}
	return failure{own: "it was refused", foreign: got.words(), refused: true}
}

// words returns what a service says about a refusal; "" if it says nothing.
func (a answer) words() string {
	var words []string
	var collect func(value any)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			words = append(words, value)
		case []any:
			for _, each := range value {
				collect(each)
			}
		case map[string]any:
			for _, key := range []string{
				"error", "errors", "description", "errorDescription", "errorMessage", "errmsg", "message", "msg",
				"title", "details", "response",
			} {
				collect(value[key])
			}
		}
	}
	collect(a.json)
	return strings.Join(words, ": ")
}

// maxAnswer limits how much of an answer is read.
const maxAnswer = 64 << 10

// client does not follow redirects, because a redirected POST becomes a GET, which notifies nobody.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// insecureClient is like client and accepts any certificate.
var insecureClient = func() *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // for URLs that ask for it
	return &http.Client{CheckRedirect: client.CheckRedirect, Transport: transport}
}()

// do sends the request. The answer has a status of success. Other statuses are errors.
func (r request) do(ctx context.Context) (answer, error) {
	body, contentType := encode(r.body)
	made, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodPost), r.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, failure{own: "its URL makes no request"}
	}
	made.Header.Set("Content-Type", contentType)
	made.Header.Set("User-Agent", "claudeops")
	for key, value := range r.header {
		if value != "" {
			made.Header.Set(key, value)
		}
	}
	doer := client
	if r.insecure {
		doer = insecureClient
	}
	response, err := doer.Do(made)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the other fields quote the URL
		}
		return answer{}, failure{foreign: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, failure{own: "the answer broke off", foreign: err.Error()}
	}
	got := answer{status: response.StatusCode, text: strings.TrimSpace(string(text))}
	_ = json.Unmarshal(text, &got.json) // no JSON leaves nil
	return got, got.statusError()
}

func encode(body any) (encoded []byte, contentType string) {
	switch body := body.(type) {
	case nil:
		return nil, "text/plain; charset=utf-8"
	case string:
		return []byte(body), "text/plain; charset=utf-8"
	case url.Values:
		return []byte(body.Encode()), "application/x-www-form-urlencoded"
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // strings, numbers and maps of them
	return buffer.Bytes(), "application/json"
}

// statusError returns the error for the status; nil for a success.
func (a answer) statusError() error {
	status := a.status
	if status >= 200 && status < 300 {
		return nil
	}
	transient := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return failure{
		own: fmt.Sprintf("answered %d %s", status, http.StatusText(status)), foreign: a.words(),
		refused: status >= 400 && status < 500 && !slices.Contains(transient, status),
	}
}

// has returns a proof: the answer is a JSON object whose member key is neither absent nor zero.
func has(key string) proof {
	return func(a answer) error {
		switch value := a.json[key]; value {
		case nil, "", 0.0, false:
			return unproven(a)
		}
		return nil
	}
}

// is returns a proof: the answer is a JSON object whose member key is want.
func is(key string, want any) proof {
	return func(a answer) error {
		if a.json[key] != want {
			return unproven(a)
		}
		return nil
	}
}

// says returns a proof: the answer is text.
func says(text string) proof {
	return func(a answer) error {
		if a.text != text {
			return unproven(a)
		}
		return nil
	}
}

// isNoPage accepts everything but HTML and reported errors. It is for services that promise no more than a status.
func isNoPage(a answer) error {
	if strings.HasPrefix(a.text, "<") || a.json["errors"] != nil {
		return unproven(a)
	}
	return nil
}
