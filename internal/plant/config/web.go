package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Web holds the settings of the server of pages and API: `claudeops web`, and in part `claudeops up`.
type Web struct {
	Listen          string      `env:"WEB_LISTEN" desc:"Address (host:port) at which claudeops web listens. One that other hosts can reach needs tokens or a trusted proxy, and CLAUDEOPS_WEB_URL with https (or a loopback address, to which a container's port is published). claudeops up has --web-port."`
	URL             string      `env:"WEB_URL" desc:"Address by which people reach claudeops web or claudeops up, such as https://ops.example.org. Notifications then link to it, and the server answers to this host name."`
	TokensFile      string      `env:"WEB_TOKENS_FILE" default:"STATE_DIR/web/tokens.json" desc:"Absolute path of the file with the hashes of the tokens for pages and API, which claudeops web token changes. Changes take effect immediately. Other users must not be able to change it."`
	TrustedProxy    NetworkList `env:"WEB_TRUSTED_PROXY" desc:"Addresses or networks (10.0.0.5, 10.0.0.0/24), comma-separated, of a proxy whose headers with name and groups count as a login. A loopback address needs CLAUDEOPS_WEB_PROXY_SECRET_FILE, because other programs of the host have it, too."`
	ProxyUser       string      `env:"WEB_PROXY_USER_HEADER" desc:"Header in which the trusted proxy sends the name of the person."`
	ProxyGroups     string      `env:"WEB_PROXY_GROUPS_HEADER" desc:"Header in which the trusted proxy sends the groups of the person, separated by commas or bars."`
	ProxyRoles      GroupRoles  `env:"WEB_PROXY_ROLES" desc:"Roles of the groups that the trusted proxy sends, as group=role, comma-separated: sre=operate,oncall=answer,*=view. The group * is everybody whom the proxy names. Roles are view, answer, operate, alert and talk."`
	ProxySecretFile string      `env:"WEB_PROXY_SECRET_FILE" desc:"Absolute path of a file with a secret that the trusted proxy must send in the header X-Claudeops-Proxy-Secret. Other users must not be able to read it."`
	ChatProgress    bool        `env:"WEB_CHAT_PROGRESS" desc:"true: a streamed answer of /v1/chat/completions begins with lines that say what the session does, such as its commands."`
	Certificate     string      `env:"WEB_TLS_CERT_FILE" desc:"Absolute path of a file with the certificate for https, with its chain. It is read again when it changes. Unset: http, for a proxy that ends TLS."`
	Key             string      `env:"WEB_TLS_KEY_FILE" desc:"Absolute path of a file with the key of the certificate."`
}

// Hostname returns the host name in URL; empty if URL is unset.
func (w Web) Hostname() string {
	parsed, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// IsLocal reports whether only this machine can reach the address Listen.
func (w Web) IsLocal() bool {
	host, ok := hostOf(w.Listen)
	return ok && isLoopback(host)
}

// SecretFiles lists the files that agents must not read or change.
func (w Web) SecretFiles() []string {
	return slices.DeleteFunc([]string{w.TokensFile, w.ProxySecretFile, w.Key},
		func(file string) bool { return file == "" })
}

// NetworkList is a list of addresses and networks. In its text form, commas separate them.
type NetworkList []netip.Prefix

// String formats n as text from which parseNetworks returns n.
func (n NetworkList) String() string {
	items := make([]string, len(n))
	for i, network := range n {
		if items[i] = network.String(); network.IsSingleIP() {
			items[i] = network.Addr().String()
		}
	}
	return strings.Join(items, ",")
}

// parseNetworks parses a NetworkList. The text of its error continues the phrase "it must ...".
func parseNetworks(text string) (NetworkList, error) {
	var list NetworkList
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		network, err := netip.ParsePrefix(item)
		if address, plain := netip.ParseAddr(item); plain == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || strings.Contains(item, "%") || network.Addr().Is4In6() {
			return nil, errors.New("be addresses or networks, separated by commas, such as 10.0.0.5 or 10.0.0.0/24")
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

// webRoles lists the roles of the server of pages and API.
var webRoles = []string{"view", "answer", "operate", "alert", "talk"}

// GroupRoles maps groups to roles. In its text form, an item is group=role, and commas separate the items.
type GroupRoles map[string][]string

// String formats g as text from which parseGroupRoles returns g.
func (g GroupRoles) String() string {
	var items []string
	for group, roles := range g {
		for _, role := range roles {
			items = append(items, group+"="+role)
		}
	}
	slices.Sort(items)
	return strings.Join(items, ",")
}

// parseGroupRoles parses GroupRoles. The text of its error continues the phrase "it must ...".
func parseGroupRoles(text string) (GroupRoles, error) {
	groups := GroupRoles{}
	for item := range strings.SplitSeq(text, ",") {
		at := strings.LastIndex(item, "=")
		if at < 0 {
			return nil, errors.New("be group=role, separated by commas, such as sre=operate,*=view")
		}
		group, role := strings.TrimSpace(item[:at]), strings.TrimSpace(item[at+1:])
		if group == "" || !slices.Contains(webRoles, role) {
			return nil, fmt.Errorf("give each group one of the roles %s", strings.Join(webRoles, ", "))
		}
		groups[group] = append(groups[group], role)
		slices.Sort(groups[group])
	}
	return groups, nil
}

// resolveWeb makes the paths absolute.
func resolveWeb(w *Web, stateDir string, absolute func(name string, path *string)) {
	absolute("WEB_TOKENS_FILE", &w.TokensFile)
	absolute("WEB_PROXY_SECRET_FILE", &w.ProxySecretFile)
	absolute("WEB_TLS_CERT_FILE", &w.Certificate)
	absolute("WEB_TLS_KEY_FILE", &w.Key)
	if w.TokensFile == "" && stateDir != "" {
		w.TokensFile = filepath.Join(stateDir, "web", "tokens.json")
	}
}

// validate records values that are wrong or contradict each other.
func (w Web) validate(p *problems) {
	_, ok := hostOf(w.Listen)
	p.must("WEB_LISTEN", ok, "be an address such as 127.0.0.1:%d or :%d", WebPort, WebPort)
	parsed, err := url.Parse(w.URL)
	secure := err == nil && parsed.Scheme == "https"
	if w.URL != "" {
		p.must("WEB_URL", err == nil && parsed.Hostname() != "" && (secure || parsed.Scheme == "http") &&
			parsed.User == nil &&
			strings.TrimSuffix(parsed.Path, "/") == "" && parsed.RawQuery == "" && parsed.Fragment == "",
			"be the address of a web site, without a path, such as https://ops.example.org")
	}
	p.must("WEB_TLS_KEY_FILE", (w.Certificate == "") == (w.Key == ""), "be set together with %sWEB_TLS_CERT_FILE",
		Prefix)
	if ok && !w.IsLocal() {
		// A container listens on all of its addresses, and its port can be published on the loopback address of the
		// host.
		p.must("WEB_LISTEN", secure || isLoopback(w.Hostname()),
			"be a loopback address unless %sWEB_URL begins with https://, because "+
				"tokens must not pass the network in clear: set %sWEB_TLS_CERT_FILE, or let a proxy end TLS", Prefix,
			Prefix)
	}
	w.validateProxy(p)
}

func (w Web) validateProxy(p *problems) {
	local := slices.ContainsFunc(w.TrustedProxy, func(network netip.Prefix) bool {
		return network.Overlaps(netip.MustParsePrefix("127.0.0.0/8")) || network.Contains(netip.IPv6Loopback())
	})
	p.must("WEB_TRUSTED_PROXY", !local || w.ProxySecretFile != "",
		"leave out loopback addresses, or %sWEB_PROXY_SECRET_FILE must be set: every program of this host has such "+
			"an address", Prefix)
	if len(w.TrustedProxy) > 0 {
		p.must("WEB_PROXY_ROLES", len(w.ProxyRoles) > 0,
			"say which roles the groups of the trusted proxy have, such as sre=operate,*=view")
	}
	isHeader := func(name string) bool {
		return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isWordByte(r) })
	}
	p.must("WEB_PROXY_USER_HEADER", isHeader(w.ProxyUser), "be the name of a header, such as X-Forwarded-User")
	p.must("WEB_PROXY_GROUPS_HEADER", isHeader(w.ProxyGroups), "be the name of a header, such as X-Forwarded-Groups")
}

// isWordByte reports whether r may be in the name of a header.
func isWordByte(r rune) bool {
	return r == '-' || r == '_' || (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z')
}

// defaultWeb returns the defaults of the server of pages and API.
func defaultWeb() Web {
	return Web{
		Listen:    "127.0.0.1:" + strconv.Itoa(WebPort),
		ProxyUser: "X-Forwarded-User", ProxyGroups: "X-Forwarded-Groups", // those of oauth2-proxy
	}
}
