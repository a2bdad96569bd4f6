package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
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
	// Text begins with the most important line.
	Text string
	// Then says what people can do, and where they read more; a line for each, the most important first. A message that
	// is too long for a service loses lines of Text instead.
	Then  string
	Level Level
}

// gap is between the title and the text where a service has no titles.
const gap = "\n\n"

// whole returns the message without its title.
func (m Message) whole() string {
	if m.Then == "" {
		return m.Text
	}
	return m.Text + "\n" + m.Then
}

// oneText returns the message for a service that has no titles.
func (m Message) oneText() string { return m.Title + gap + m.whole() }

// Target is a destination of messages: one recipient of one service. It is safe for concurrent use.
type Target struct {
	service string
	url     string
	number  int // of the recipient in the URL, from 0
	room    int
	sender  sender
}

// Parse returns the targets that rawURL describes, one for each recipient. It does not contact them. The text of an
// error completes the phrase "it must", and contains no part of rawURL except the scheme.
func Parse(rawURL string) ([]Target, error) {
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return nil, err
	}
	service, _, _ := strings.Cut(scheme, "+")
	room := appriseRoom
	var senders []sender
	if known, ok := kinds[service]; ok {
		room = known.room
		senders, err = parseService(service, rawURL)
	} else if service == appriseScheme || service == appriseTLSScheme {
		senders, err = parseApprise(rawURL)
	} else {
		err = fmt.Errorf("begin with the scheme of a service, and %s:// is none; there are %s", scheme,
			strings.Join(services(), ", "))
	}
	if err != nil {
		return nil, err
	}
	targets := make([]Target, len(senders))
	for i, sender := range senders {
		targets[i] = Target{service: service, url: rawURL, number: i, room: room, sender: sender}
	}
	return targets, nil
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
	id := t.service + "-" + hex.EncodeToString(digest[:4])
	if t.number > 0 {
		id += "-" + strconv.Itoa(t.number+1)
	}
	return id
}

// Place names the target for people: the service, and the host that it contacts.
func (t Target) Place() string {
	place := t.service
	if host := publicHost(t.sender.host); host != "" {
		place += " at " + host
	}
	if t.number > 0 {
		place += fmt.Sprintf(" (recipient %d)", t.number+1)
	}
	return place
}

// randomLabel matches a part of a host name that a service has drawn for one customer, and that nobody else knows.
var randomLabel = regexp.MustCompile(`^[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*$`)

// publicHost returns host without parts that look like a secret.
func publicHost(host string) string {
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if len(label) >= 12 && randomLabel.MatchString(label) {
			labels[i] = hidden
		}
	}
	return strings.Join(labels, ".")
}

// Send delivers m and returns when the service has proven that it has taken it. If the service refuses a long message,
// Send tries a short one. An error names the place and contains no other part of the URL. The message may have arrived
// despite an error, because the answer may have been lost after the delivery.
func (t Target) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	m.Title = plaintext.Compact(m.Title) // some services use the title as a header
	m = fit(m, t.room)
	why := t.try(ctx, m)
	if why != nil && why.refused && len(m.oneText()) > shortRoom && t.try(ctx, fit(m, shortRoom)) == nil {
		return nil
	}
	if why != nil {
		why.foreign = explain(why.foreign, t.url)
		return fmt.Errorf("%s: %w", t.Place(), *why)
	}
	return nil
}

// try sends m once. It returns when ctx ends, even if the service keeps its connection.
func (t Target) try(ctx context.Context, m Message) *failure {
	sent := make(chan error, 1)
	go func() {
		defer func() {
			if recover() != nil { // the panic's text can contain anything
				sent <- failure{own: "its driver failed"}
			}
		}()
		sent <- t.sender.send(ctx, m)
	}()
	select {
	case err := <-sent:
		if why, ok := errors.AsType[failure](err); ok && ctx.Err() == nil {
			return &why
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			return &failure{foreign: err.Error()}
		}
	case <-ctx.Done():
	}
	return &failure{own: "no answer in time"}
}
