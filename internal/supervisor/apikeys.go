package supervisor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
)

// Connections to the API.
const (
	connectLimit        = 30 * time.Second // as long as Go's own client waits
	handshakeLimit      = 10 * time.Second // the same
	idleConnections     = 8                // one for each of a handful of agents
	idleConnectionLimit = 90 * time.Second // agents that use one ask more often
	pingAfter           = 30 * time.Second // a connection that several agents share must not be dead for long
	pingLimit           = 15 * time.Second
)

// apiKeys gives each session a key of its own for the model's API, in place of the worker's credentials.
type apiKeys struct {
	cli *claude.CLI
	// proxy is nil where the CLI has to hold the credentials itself: those of a login, or of a cloud.
	proxy *apiproxy.Proxy
}

// openAPIKeys starts the proxy that the keys are for.
func openAPIKeys(ctx context.Context, cli *claude.CLI, options claude.Options, logger *slog.Logger) (apiKeys, error) {
	upstream, found, err := APIUpstream(options)
	if err != nil || !found {
		return apiKeys{cli: cli}, err
	}
	upstream.Logger = logger
	proxy, err := apiproxy.Start(ctx, upstream)
	return apiKeys{cli: cli, proxy: proxy}, err
}

// APIUpstream returns how the worker reaches the model's API in the place of its agents. It returns false where
// agents hold the credentials themselves, and an error where the environment says something that the worker
// cannot do for them.
func APIUpstream(options claude.Options) (upstream apiproxy.Options, found bool, err error) {
	access, found := claude.FindAccess(options)
	if !found {
		return apiproxy.Options{}, false, nil
	}
	address, err := url.Parse(access.BaseURL)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return apiproxy.Options{}, true, fmt.Errorf("ANTHROPIC_BASE_URL is %q: it must be an http or https address", access.BaseURL)
	}
	transport, err := apiTransport(environment(options.Environ))
	return apiproxy.Options{Upstream: address, Header: access.Header, Transport: transport}, true, err
}

// environment is an environment ("NAME=value").
type environment []string

// get returns the value of the first of names that has one.
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

// apiTransport reaches the API as the CLI would: through the operator's proxy, with the operator's certificates.
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

// addAuthorities makes trust accept the certificates of file beside the system's; an empty name is none.
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

// addIdentity makes trust show the operator's client certificate, if there is one.
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

// lease is a session's key; the zero value is none.
type lease struct {
	*apiproxy.Lease

	url string
}

// open returns a key for a run, or none where agents hold the credentials themselves.
func (k apiKeys) open(run activities.AgentRun) lease {
	if k.proxy == nil {
		return lease{}
	}
	return lease{url: k.proxy.URL(), Lease: k.proxy.Open(apiproxy.Session{
		ID:        run.SessionID,
		Permits:   func(asked string) bool { return k.cli.Permits(run.Policy.Model, asked) },
		Price:     k.price,
		BudgetUSD: run.Policy.BudgetUSD,
	})}
}

// price returns what a call costs, in US dollars.
func (k apiKeys) price(model string, used apiproxy.Usage) float64 {
	return k.cli.Price(model, claude.CallUsage{
		Tokens: claude.Tokens{
			Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheCreation: used.CacheCreation,
		},
		OneHour:     used.Creation.OneHour,
		WebSearches: used.ServerTools.WebSearches,
	})
}

// close stops the proxy.
func (k apiKeys) close() error {
	if k.proxy == nil {
		return nil
	}
	return k.proxy.Close()
}

// endpoint returns what the CLI gets; nil is nothing.
func (l lease) endpoint() *claude.Endpoint {
	if l.Lease == nil {
		return nil
	}
	return &claude.Endpoint{URL: l.url, Key: l.Key()}
}

// count returns what was used so far.
func (l lease) count() apiproxy.Count {
	if l.Lease == nil {
		return apiproxy.Count{}
	}
	return l.Count()
}

// end revokes the key and returns what was used.
func (l lease) end() apiproxy.Count {
	if l.Lease == nil {
		return apiproxy.Count{}
	}
	return l.Close()
}

// The CLI's figure and the proxy's count may differ by so much before an operator hears of it: the share covers
// calls that were broken off and repeated, the amount keeps cheap sessions quiet.
const (
	costTolerance    = 0.05
	costToleranceUSD = 0.01
)

// settleCost puts the proxy's count into a report that lacks the CLI's own figure, and compares the two otherwise.
// The CLI leaves out what its commands have asked the model themselves, and some versions a last call. Its figure
// counts where it is higher, and where its version is not one whose prices were measured.
func (a *agent) settleCost(report *activities.AgentReport, run activities.AgentRun, count apiproxy.Count) {
	if count.Calls == 0 && count.Partial == 0 {
		return
	}
	if report.CostEstimated {
		report.CostUSD, report.CostEstimated = count.CostUSD, count.Partial > 0
		return
	}
	reported, measured := report.CostUSD, a.cli.Warning() == ""
	if measured {
		report.CostUSD = max(reported, count.CostUSD)
	}
	if math.Abs(reported-count.CostUSD) > max(costToleranceUSD, costTolerance*max(reported, count.CostUSD)) {
		a.logger.Warn("the CLI reports another cost than its calls come to: compare both with the bill",
			"session_id", run.SessionID, "cli_version", report.CLIVersion, "reported_usd", reported, "counted_usd", count.CostUSD,
			"recorded_usd", report.CostUSD, "calls", count.Calls, "cut_short", count.Partial)
	}
}

// explained adds to the failure of a run what only the proxy knows of it.
func explained(err error, count apiproxy.Count) error {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err
	}
	said := *failure
	switch {
	case said.Kind == claude.KindRefused && count.OverBudget > 0:
		said.Kind = claude.KindBudget
	case said.Kind == claude.KindUnavailable && count.Unreachable != "":
		said.Message += "; " + count.Unreachable
	}
	return &said
}
