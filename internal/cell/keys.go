package cell

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/proxy"
)

// keys gives each session its own key for the model's API. So the agent does not get the worker's credentials.
type keys struct {
	cli *claude.CLI
	// proxy is nil if the CLI itself must hold the credentials. The credentials of a login or of a cloud require this.
	proxy *proxy.Proxy
}

// openKeys starts the proxy that accepts the sessions' keys. If agents hold the credentials themselves, openKeys starts
// no proxy.
func openKeys(ctx context.Context, options Options) (keys, error) {
	upstream, found, err := APIUpstream(options.Driver)
	if err != nil || !found {
		return keys{cli: options.CLI}, err
	}
	upstream.Logger = options.Logger
	started, err := proxy.Start(ctx, upstream)
	return keys{cli: options.CLI, proxy: started}, err
}

// sessionKey is the key of a session. The zero value means that the session has no key.
type sessionKey struct {
	*proxy.Lease

	url string
}

// open returns a key for a run. If agents hold the credentials themselves, open returns the zero value.
func (k keys) open(spec Spec) sessionKey {
	if k.proxy == nil {
		return sessionKey{}
	}
	return sessionKey{url: k.proxy.URL(), Lease: k.proxy.Open(proxy.Session{
		ID:        spec.SessionID,
		Permits:   func(asked string) bool { return k.cli.Permits(spec.Model, asked) },
		Price:     k.price,
		WebSearch: slices.Contains(spec.Tools, "WebSearch"),
		BudgetUSD: spec.BudgetUSD,
	})}
}

// price returns the price of one call of the model's API, in US dollars.
func (k keys) price(model string, used proxy.Usage) float64 {
	return k.cli.Price(model, claude.CallUsage{
		Tokens: claude.Tokens{
			Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheCreation: used.CacheCreation,
		},
		OneHour:     used.Creation.OneHour,
		WebSearches: used.ServerTools.WebSearches,
	})
}

// close stops the proxy.
func (k keys) close() error {
	if k.proxy == nil {
		return nil
	}
	return k.proxy.Close()
}

// endpoint returns the API's address for the CLI and the session's key. It returns nil if the session has no key.
func (s sessionKey) endpoint() *claude.Endpoint {
	if s.Lease == nil {
		return nil
	}
	return &claude.Endpoint{URL: s.url, Key: s.Key()}
}

// count returns the calls, tokens and costs of the session so far.
func (s sessionKey) count() proxy.Count {
	if s.Lease == nil {
		return proxy.Count{}
	}
	return s.Count()
}

// end revokes the key, and returns the count of the whole session.
func (s sessionKey) end() proxy.Count {
	if s.Lease == nil {
		return proxy.Count{}
	}
	return s.Close()
}
