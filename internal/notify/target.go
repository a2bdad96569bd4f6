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

// sendLimit bounds one attempt at one target. A service that is up answers in a second or two.
const sendLimit = 15 * time.Second

// Level is what a message means to whoever gets it. The words are those of Apprise.
type Level string

// The levels.
const (
	LevelInfo    Level = "info"
	LevelSuccess Level = "success"
	LevelWarning Level = "warning"
	LevelFailure Level = "failure"
)

// Message is plain text for people.
type Message struct {
	Title string // one line
	Text  string
	Level Level
}

// Target is one place where messages go. It is safe for concurrent use.
type Target struct {
	service string
	url     string
	deliver func(ctx context.Context, m Message) error
}

// Parse returns the target that rawURL names. It asks nobody whether there is one. The error
// completes "it must" and shows no more of the URL than its scheme.
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

// services lists the schemes that Parse knows.
func services() []string {
	all := append(shoutrrrServices(), appriseScheme, appriseTLSScheme)
	slices.Sort(all)
	return all
}

// schemePattern is short and without digits, so that what somebody pasted by mistake is not
// taken for a scheme and shown.
var schemePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z+.-]{0,24})://`)

func schemeOf(rawURL string) (string, error) {
	match := schemePattern.FindStringSubmatch(rawURL)
	if match == nil {
		return "", errors.New("be a URL that begins with the scheme of a service, such as discord:// or apprise://")
	}
	if _, err := url.Parse(rawURL); err != nil { // the error quotes the URL
		return "", fmt.Errorf("be a URL, and what follows %s:// makes it none; percent-encode odd characters", match[1])
	}
	return strings.ToLower(match[1]), nil
}

// Service returns the scheme, such as "discord". It is all of the URL that may be shown.
func (t Target) Service() string { return t.service }

// ID tells the target from others for as long as its URL is the same. It tells nothing of the
// URL but its scheme: what it has of the digest is too little to confirm a guess.
func (t Target) ID() string {
	digest := sha256.Sum256([]byte(t.url))
	return t.service + "-" + hex.EncodeToString(digest[:4])
}

// Send sends m and returns once the service has taken it. The error names the service and
// holds nothing else of the URL. A message whose answer got lost may have arrived.
func (t Target) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	m.Title = plaintext.Compact(m.Title) // it becomes a header at some services
	// The libraries below take no context, or not all the way down.
	sent := make(chan error, 1)
	go func() {
		defer func() {
			if broken := recover(); broken != nil { // what it says can hold anything
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
