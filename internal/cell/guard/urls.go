package guard

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Door is a host and port of the supervisor: Temporal, its Web UI, the database or a worker. The guard does not know
// every name of the supervisor's host, so agents may not connect to the port on any host. Ports 80 and 443 are an
// exception: agents may connect to them on every host except Host.
type Door struct {
	Host string
	Port int
}

// url accepts a URL that the tier may request.
func (j judge) url(word string, _ Command) error {
	if authority := beforePath.FindString(word); strings.ContainsAny(authority, " \\\t\n") {
		return denied("%s is no URL", word)
	}
	text := strings.NewReplacer(" ", "%20", "\\", "%5C", "\t", "%09", "\n", "%0A").Replace(word)
	if schemeless.MatchString(text) {
		if j.remote && !j.limits().Anything { // there, curl guesses the protocol from the name
			return denied("%s: write http:// or https:// in front", word)
		}
		text = "http://" + text // as curl does
	}
	// curl expands braces and brackets to several addresses.
	if strings.ContainsAny(beforePath.FindString(literalAddress.ReplaceAllString(text, "http://x")), "{}[]") {
		return denied("%s stands for several addresses: write each out", word)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return denied("%s is no URL: %v", word, err)
	}
	if scheme := strings.ToLower(parsed.Scheme); scheme != "http" && scheme != "https" {
		return denied("%s: only http and https are granted", word)
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(parsed.Scheme)]
	}
	return j.connect(parsed.Hostname(), port)
}

// host accepts HOST or HOST:PORT to which the tier may connect.
func (j judge) host(word string, _ Command) error {
	host, port, err := net.SplitHostPort(word)
	if err != nil {
		host, port = word, ""
	}
	if strings.ContainsAny(host, " /@{}\\") || strings.HasPrefix(host, "-") {
		return denied("%q is no plain name of a host", word)
	}
	return j.connect(host, port)
}

// resolves accepts HOST:PORT:ADDRESS of curl, by which it asks the address for the host.
func (j judge) resolves(word string, _ Command) error {
	parts := strings.SplitN(strings.TrimLeft(word, "+"), ":", 3)
	if len(parts) < 3 {
		return denied("%s is not of the form HOST:PORT:ADDRESS", word)
	}
	for address := range strings.SplitSeq(parts[2], ",") {
		if err := j.connect(strings.Trim(address, "[]"), parts[1]); err != nil {
			return err
		}
	}
	return j.connect(parts[0], parts[1])
}

// connect accepts a host and port to which the tier may connect. It refuses the supervisor's ports.
func (j judge) connect(host, port string) error {
	if host == "" {
		return denied("the name of a host is empty")
	}
	if strings.IndexFunc(host, func(r rune) bool { return r > '~' }) >= 0 {
		return denied("the name of the host %s has characters beyond ASCII", host)
	}
	number := 0
	if port != "" {
		parsed, err := strconv.Atoi(port)
		if err != nil {
			return denied("the port %s is no number", port)
		}
		number = parsed
	}
	for _, door := range j.place.Doors {
		if door.Port == number && (number != 80 && number != 443 || sameHost(door.Host, host)) {
			return &DeniedError{Rule: "doors", Reason: "port " + port + " is the supervisor's own: agents do not ask it"}
		}
	}
	if j.limits().Anything {
		return nil
	}
	if j.remote && givesCredentials(host) {
		return &DeniedError{Rule: "hosts", Reason: host + " is where clouds give out credentials, or no plain address"}
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if !slices.ContainsFunc(j.limits().Hosts, func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, name) }) {
		return &DeniedError{
			Rule: "hosts", Reason: "the host " + host + " is not among those that Tier " + strconv.Itoa(j.tier) + " may ask",
		}
	}
	return nil
}

// beforePath matches the part of a URL in front of the path.
var beforePath = regexp.MustCompile(`^([A-Za-z]+:/*)?[^/?#]*`)

// literalAddress matches an IPv6 address in a URL.
var literalAddress = regexp.MustCompile(`^[a-z]+://\[[0-9a-fA-F:.]+\]|^\[[0-9a-fA-F:.]+\]`)

// schemeless matches a URL without a scheme: HOST or HOST:PORT, and an optional path, query or fragment.
var schemeless = regexp.MustCompile(`^[A-Za-z0-9._-]+(:\d+)?([/?#]|$)`)

func sameHost(a, b string) bool {
	plain := func(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
	return plain(a) == plain(b)
}
