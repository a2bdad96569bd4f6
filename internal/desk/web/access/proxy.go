package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// ProxySecretHeader is the header with which a proxy shows its secret.
const ProxySecretHeader = "X-Claudeops-Proxy-Secret" //nolint:gosec // a name

// Proxy describes a proxy that has logged people in, and names them in headers. The zero value trusts no proxy.
type Proxy struct {
	// Networks are the addresses from which the headers count.
	Networks []netip.Prefix
	// Secret is the value of ProxySecretHeader that the proxy must send; empty if it sends none.
	Secret string
	// UserHeader and GroupsHeader are the headers with the name and the groups. Commas or bars separate the groups.
	UserHeader, GroupsHeader string
	// Roles maps groups to roles. The group * has everybody whom the proxy names.
	Roles map[string][]Role
}

// trusts reports whether a request comes from the proxy.
func (p Proxy) trusts(r *http.Request) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.ContainsFunc(p.Networks,
		func(network netip.Prefix) bool { return network.Contains(address.Addr().Unmap()) }) {
		return false
	}
	own, given := sha256.Sum256([]byte(p.Secret)), sha256.Sum256([]byte(r.Header.Get(ProxySecretHeader)))
	return p.Secret == "" || subtle.ConstantTimeCompare(own[:], given[:]) == 1
}

// strip removes the proxy's headers, so that nothing behind can take them for true.
func (p Proxy) strip(r *http.Request) {
	for _, name := range []string{p.UserHeader, p.GroupsHeader, ProxySecretHeader} {
		if name != "" {
			r.Header.Del(name)
		}
	}
}

// person returns the person whom the proxy names in a request that comes from it. A request with two names is
// ambiguous, so it names nobody.
func (p Proxy) person(r *http.Request) (Person, bool) {
	if len(p.Networks) == 0 || p.UserHeader == "" || !p.trusts(r) {
		return Person{}, false
	}
	names := r.Header.Values(p.UserHeader)
	if len(names) != 1 {
		return Person{}, false
	}
	name := headerText(names[0])
	if name == "" || !plaintext.IsLine(name) || len([]rune(name)) > maxName {
		return Person{}, false
	}
	person := Person{Name: name, Roles: slices.Clone(p.Roles["*"])}
	for _, line := range r.Header.Values(p.GroupsHeader) {
		for group := range strings.FieldsFuncSeq(headerText(line), func(r rune) bool { return r == ',' || r == '|' }) {
			if group = strings.TrimSpace(group); group != "*" {
				person.Roles = append(person.Roles, p.Roles[group]...)
			}
		}
	}
	return person, true
}

// headerText returns the text of a header: UTF-8, or else Latin-1, as proxies that keep to RFC 9110 send it.
func headerText(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	runes := make([]rune, len(value))
	for i := range len(value) {
		runes[i] = rune(value[i])
	}
	return string(runes)
}

// address returns the address of the client of a request: the last one that the trusted proxy names, or the sender's
// own.
func (p Proxy) address(r *http.Request) string {
	sender, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if len(p.Networks) > 0 && p.trusts(r) {
		passed := r.Header.Values("X-Forwarded-For")
		if len(passed) > 0 {
			hops := strings.Split(passed[len(passed)-1], ",")
			if client, err := hopAddress(strings.TrimSpace(hops[len(hops)-1])); err == nil {
				return client.Unmap().String()
			}
		}
	}
	return sender.Addr().Unmap().String()
}

// hopAddress returns the address in an entry of X-Forwarded-For. Some proxies add the port.
func hopAddress(entry string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(entry); err == nil {
		return withPort.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(entry, "[]"))
}
