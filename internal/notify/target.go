package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// sendLimit limits the time of one attempt at one target. A working service answers in a second or two.
const sendLimit = 15 * time.Second

// Level is the importance of a message. The values are those of Apprise.
type Level string

// The levels.
const (
	LevelInfo    Level = "info"
	LevelSuccess Level = "success"
	LevelWarning Level = "warning"
	LevelFailure Level = "failure"
)

// Message is a plain text for people.
type Message struct {
	Title string // one line
	Text  string
	Level Level
}

// Target is a destination of messages. It is safe for concurrent use.
type Target struct {
	service string
	url     string
	deliver func(ctx context.Context, m Message) error
}

// Parse returns the target that rawURL describes. It does not contact the target. The text of an error completes the
// phrase "it must", and contains no part of rawURL except the scheme.
func Parse(rawURL string) (Target, error) {
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return Target{}, err
	}
	service, _, _ := strings.Cut(scheme, "+")
	target := Target{service: service, url: rawURL}
	switch {
	case service == appriseScheme, service == appriseTLSScheme:
		target.deliver, err = parseApprise(rawURL)
	case slices.Contains(shoutrrrServices(), service):
		target.deliver, err = parseShoutrrr(service, rawURL)
	default:
		err = fmt.Errorf("begin with the scheme of a service, and %s:// is none; there are %s", scheme, strings.Join(services(), ", "))
	}
	return target, err
}

// services returns the schemes that Parse accepts.
func services() []string {
	all := append(shoutrrrServices(), appriseScheme, appriseTLSScheme)
	slices.Sort(all)
	return all
}

// schemePattern matches a scheme. The pattern is short and excludes digits, because errors show the scheme, and a
// pasted secret must not be mistaken for a scheme.
var schemePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z+.-]{0,24})://`)

func schemeOf(rawURL string) (string, error) {
	match := schemePattern.FindStringSubmatch(rawURL)
	if match == nil {
		return "", errors.New("be a URL that begins with the scheme of a service, such as discord:// or apprise://")
	}
	if _, err := url.Parse(rawURL); err != nil { // the library's error would quote the URL
		return "", fmt.Errorf("be a URL, and what follows %s:// makes it none; percent-encode odd characters", match[1])
	}
	return strings.ToLower(match[1]), nil
}

// Service returns the scheme, such as "discord". The scheme is the only part of the URL that is not secret.
func (t Target) Service() string { return t.service }

// ID returns an identifier that stays the same while the URL is unchanged. The identifier contains the scheme and a
// part of the URL's digest. This part of the digest is too short to confirm a guess of the URL.
func (t Target) ID() string {
	digest := sha256.Sum256([]byte(t.url))
	return t.service + "-" + hex.EncodeToString(digest[:4])
}

// Send delivers m and returns when the service has accepted it. An error names the service and contains no other part
// of the URL. The message may have arrived despite an error, because the answer may have been lost after the delivery.
func (t Target) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	m.Title = plaintext.Compact(m.Title) // some services use the title as a header
	// Run the call in a goroutine, because the libraries take no context, or do not pass it on everywhere.
	sent := make(chan error, 1)
	go func() {
		defer func() {
			if broken := recover(); broken != nil { // the panic's text can contain anything
				sent <- errors.New("its driver failed")
			}
		}()
		sent <- t.deliver(ctx, m)
	}()
	select {
	case err := <-sent:
		if err != nil {
			return fmt.Errorf("%s: %s", t.service, explain(err, t.url))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer in time: %w", t.service, ctx.Err())
	}
}
