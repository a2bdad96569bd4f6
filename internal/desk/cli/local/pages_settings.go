package local

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// hostsOf returns the host names by which the server may be called.
func hostsOf(settings config.Web, listen string) []string {
	var hosts []string
	host, _, _ := net.SplitHostPort(listen)
	if address, err := netip.ParseAddr(host); host != "" && (err != nil || !address.IsUnspecified()) {
		hosts = append(hosts, host)
	}
	if own := settings.Hostname(); own != "" {
		hosts = append(hosts, own)
	}
	if slices.ContainsFunc(hosts, func(host string) bool { return host == "127.0.0.1" || host == "localhost" }) {
		hosts = append(hosts, "127.0.0.1", "localhost", "::1")
	}
	return hosts
}

// originsOf returns the origin by which browsers reach the server behind a proxy.
func originsOf(settings config.Web) []string {
	if parsed, err := url.Parse(settings.URL); err == nil && parsed.Host != "" {
		return []string{parsed.Scheme + "://" + parsed.Host}
	}
	return nil
}

// proxyOf returns the trusted proxy.
func proxyOf(settings config.Web) (access.Proxy, error) {
	proxy := access.Proxy{
		Networks: settings.TrustedProxy, UserHeader: settings.ProxyUser, GroupsHeader: settings.ProxyGroups,
		Roles: map[string][]access.Role{},
	}
	for group, roles := range settings.ProxyRoles {
		for _, role := range roles {
			proxy.Roles[group] = append(proxy.Roles[group], access.Role(role))
		}
	}
	if settings.ProxySecretFile == "" {
		return proxy, nil
	}
	info, err := os.Stat(settings.ProxySecretFile)
	if err == nil && info.Mode().Perm()&0o027 != 0 {
		err = fmt.Errorf("it has the mode %04o, with which others can read or change it; do: chmod 0600",
			info.Mode().Perm())
	}
	content := []byte(nil)
	if err == nil {
		content, err = os.ReadFile(settings.ProxySecretFile)
	}
	if proxy.Secret = strings.TrimSpace(string(content)); err == nil && len(proxy.Secret) < minProxySecret {
		err = fmt.Errorf("a secret has at least %d characters", minProxySecret)
	}
	if err != nil {
		return proxy, fmt.Errorf("the secret of the trusted proxy (CLAUDEOPS_WEB_PROXY_SECRET_FILE) cannot be used: %w",
			err)
	}
	return proxy, nil
}

// minProxySecret is the least length of the trusted proxy's secret, in characters, so that nobody guesses it.
const minProxySecret = 16

// certificateFile is a certificate in files. A new one counts without a restart.
type certificateFile struct {
	cert, key string

	mutex sync.Mutex
	read  time.Time
	known *tls.Certificate
}

// certificateAge is the time for which a certificate that was read is used without looking again.
const certificateAge = time.Minute

// get returns the certificate. If the files cannot be read any more, get returns the last one.
func (c *certificateFile) get() (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.known != nil && time.Since(c.read) < certificateAge {
		return c.known, nil
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.known, c.read = &loaded, time.Now()
	case c.known == nil:
		return nil, fmt.Errorf("load the certificate of the pages (CLAUDEOPS_WEB_TLS_CERT_FILE, "+
			"CLAUDEOPS_WEB_TLS_KEY_FILE): %w", err)
	}
	return c.known, nil
}
