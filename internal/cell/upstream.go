package cell

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/proxy"
)

// Limits of the connections to the API.
const (
	connectLimit        = 30 * time.Second // as in Go's default transport
	handshakeLimit      = 10 * time.Second // as in Go's default transport
	idleConnections     = 8                // one for each of a handful of agents
	idleConnectionLimit = 90 * time.Second // an active agent sends requests more often
	pingAfter           = 30 * time.Second // finds a dead connection soon, because several agents share one
	pingLimit           = 15 * time.Second
)

// APIUpstream returns the options of a proxy that calls the model's API for the agents. If agents hold the credentials
// themselves, found is false. An error means that the environment requires something that the proxy cannot do.
func APIUpstream(options claude.Options) (upstream proxy.Options, found bool, err error) {
	access, found := claude.FindAccess(options)
	if !found {
		return proxy.Options{}, false, nil
	}
	address, err := url.Parse(access.BaseURL)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return proxy.Options{}, true, fmt.Errorf("ANTHROPIC_BASE_URL is %q: it must be an http or https address",
			access.BaseURL)
	}
	transport, err := apiTransport(environment(options.Environ))
	return proxy.Options{Upstream: address, Header: access.Header, Transport: transport}, true, err
}

// environment is a list of variables ("NAME=value").
type environment []string

// get returns the first non-empty value of the variables in names. If the environment has a variable twice, the last
// value counts.
func (e environment) get(names ...string) string {
	for _, name := range names {
		for _, variable := range slices.Backward(e) {
			if value, found := strings.CutPrefix(variable, name+"="); found && value != "" {
				return value
			}
		}
	}
	return ""
}

// apiTransport returns a transport that reaches the API as the CLI would: through the operator's proxy, with the
// operator's certificates.
func apiTransport(environ environment) (http.RoundTripper, error) {
	proxies := httpproxy.Config{
		HTTPProxy:  environ.get("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: environ.get("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
		NoProxy:    environ.get("NO_PROXY", "no_proxy"),
	}
	proxyOf := proxies.ProxyFunc()
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	err := errors.Join(addAuthorities(trust, environ.get("NODE_EXTRA_CA_CERTS")), addIdentity(trust, environ))
	return &http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return proxyOf(r.URL) },
		DialContext:         (&net.Dialer{Timeout: connectLimit}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: handshakeLimit,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingLimit},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleConnectionLimit,
	}, err
}

// addAuthorities adds the certificates in file to the certificate authorities that trust accepts. If file is empty,
// addAuthorities changes nothing.
func addAuthorities(trust *tls.Config, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("NODE_EXTRA_CA_CERTS: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("read the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("NODE_EXTRA_CA_CERTS: %s holds no certificate", file)
	}
	trust.RootCAs = pool
	return nil
}

// addIdentity makes trust present the operator's client certificate, if the environment names one.
func addIdentity(trust *tls.Config, environ environment) error {
	certificate, key := environ.get("CLAUDE_CODE_CLIENT_CERT"), environ.get("CLAUDE_CODE_CLIENT_KEY")
	if certificate == "" && key == "" {
		return nil
	}
	if environ.get("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE") != "" {
		return errors.New("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE is set: the worker cannot open an encrypted key; " +
			"give it one without a passphrase, readable by the worker only")
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("CLAUDE_CODE_CLIENT_CERT and CLAUDE_CODE_CLIENT_KEY: %w", err)
	}
	trust.Certificates = []tls.Certificate{pair}
	return nil
}
