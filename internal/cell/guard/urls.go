package guard

import (
	"net/netip"
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

// plainHost is a pattern of a name or an address that no program reads otherwise.
const plainHost = `[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?\]`

var (
	// webAddress matches one address of HTTP: curl would expand braces and brackets in front of the path to several.
	webAddress = regexp.MustCompile(`(?s)^(?:(?i:(https?))://)?(?:[^/?#@\s\\{}\[\]]*@)?(` + plainHost + `)(?::([0-9]+))?(?:[/?#].*)?$`)
	// resolved matches HOST:PORT:ADDRESS, with one or several addresses.
	resolved = regexp.MustCompile(`^\+?(` + plainHost + `):([0-9]+):([][0-9A-Fa-f:.,]+)$`)
	// hostAndPort matches HOST, HOST:PORT and an IPv6 address.
	hostAndPort = regexp.MustCompile(`^(?:(` + plainHost + `)(?::([0-9]+))?|([0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9]+)?))$`)
)

// url accepts a URL that the tier may request.
func (j judge) url(word string, _ Command) error {
	found := webAddress.FindStringSubmatch(word)
	if found == nil {
		return denied("%s is not one plain address of http or https: write each out, as in http://HOST:PORT/PATH", word)
	}
	if found[1] == "" && j.remote && !j.limits().Anything { // there, curl guesses the protocol from the name
		return denied("%s: write http:// or https:// in front", word)
	}
	port := found[3]
	switch {
	case port != "":
	case strings.EqualFold(found[1], "https"):
		port = "443"
	default:
		port = "80"
	}
	return j.connect(found[2], port)
}

// host accepts HOST or HOST:PORT to which the tier may connect.
func (j judge) host(word string, _ Command) error {
	found := hostAndPort.FindStringSubmatch(word)
	if found == nil || strings.HasPrefix(word, "-") {
		return denied("%q is no plain name of a host", word)
	}
	return j.connect(found[1]+found[3], found[2])
}

// resolves accepts HOST:PORT:ADDRESS of curl, by which it asks the address for the host.
func (j judge) resolves(word string, _ Command) error {
	found := resolved.FindStringSubmatch(word)
	if found == nil {
		return denied("%s is not of the form HOST:PORT:ADDRESS", word)
	}
	for _, host := range append(strings.Split(found[3], ","), found[1]) {
		if err := j.connect(host, found[2]); err != nil {
			return err
		}
	}
	return nil
}

// connect accepts a host and port to which the tier may connect. It refuses the supervisor's ports.
func (j judge) connect(host, port string) error {
	host = strings.Trim(host, "[]")
	number := 0
	if port != "" {
		parsed, err := strconv.Atoi(port)
		if err != nil {
			return denied("the port %s is no number", port)
		}
		number = parsed
	}
	for _, door := range j.place.Doors {
		if door.Port == number && (number != 80 && number != 443 || sameHost(door.Host, host) ||
			j.remote && canBeTheHost(host)) {
			return &DeniedError{Rule: "doors", Reason: "port " + port +
				" is the supervisor's own: agents do not ask it"}
		}
	}
	if j.limits().Anything {
		return nil
	}
	if j.remote && givesCredentials(host) {
		return &DeniedError{Rule: "hosts", Reason: host + " is where clouds give out credentials, or no plain address"}
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if !slices.ContainsFunc(j.limits().Hosts,
		func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, name) }) {
		return &DeniedError{
			Rule: "hosts", Reason: "the host " + host + " is not among those that Tier " + strconv.Itoa(j.tier) +
				" may ask",
		}
	}
	return nil
}

// canBeTheHost reports whether a host can be this one, as a container calls it: by an address or by a name of Docker or
// Podman.
func canBeTheHost(host string) bool {
	address, err := netip.ParseAddr(host)
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	return err == nil && !address.Unmap().IsLoopback() || strings.HasSuffix(name, ".internal") || name == "_gateway"
}

func sameHost(a, b string) bool {
	plain := func(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
	return plain(a) == plain(b)
}
