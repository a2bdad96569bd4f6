package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// headerTimeout limits the time that a caller may take to send the header of a request.
const headerTimeout = 10 * time.Second

// Options describes the API and how a Proxy calls it.
type Options struct {
	// Upstream is the address of the API. The path of this address is put in front of every call's path.
	Upstream *url.URL
	// Header holds headers for every call to Upstream: the credentials, and the headers that the operator adds. They
	// replace headers of the caller with the same names.
	Header http.Header
	// Transport sends the calls; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Logger receives the messages for an operator: an unreachable upstream and refused calls.
	Logger *slog.Logger
}

// Proxy serves the Messages API to sessions. It is safe for concurrent use, and must be closed.
type Proxy struct {
	logger   *slog.Logger
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	reverse  *httputil.ReverseProxy

	mu     sync.Mutex
	leases []*Lease
}

// Start starts a Proxy on a free port of 127.0.0.1.
func Start(ctx context.Context, options Options) (*Proxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agents' calls of the model: %w", err)
	}
	p := &Proxy{logger: options.Logger, listener: listener, served: make(chan struct{})}
	p.reverse = p.forwarder(options)
	p.server = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          slog.NewLogLogger(options.Logger.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(p.served)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("agents can no longer reach the model: restart the worker", "error", err)
		}
	}()
	return p, nil
}

// URL returns the value for ANTHROPIC_BASE_URL.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close revokes every key and stops the Proxy.
func (p *Proxy) Close() error {
	p.mu.Lock()
	open := append([]*Lease{}, p.leases...)
	p.mu.Unlock()
	for _, lease := range open {
		lease.Close()
	}
	err := p.server.Close()
	<-p.served
	if err != nil {
		return fmt.Errorf("stop serving the agents' calls of the model: %w", err)
	}
	return nil
}

// Open creates a key for a session. The key is valid until the Lease is closed.
func (p *Proxy) Open(session Session) *Lease {
	lease := newLease(p, session)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases = append(p.leases, lease)
	return lease
}

// forget removes a closed lease.
func (p *Proxy) forget(closed *Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, lease := range p.leases {
		if lease == closed {
			p.leases = append(p.leases[:i], p.leases[i+1:]...)
			return
		}
	}
}

// find returns the lease whose key is in a request's header; nil if there is none. Its running time depends on the
// number of leases and on nothing else, so it reveals nothing about the keys.
func (p *Proxy) find(header http.Header) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *Lease
	for _, lease := range p.leases {
		if lease.matchesKey(header) {
			found = lease
		}
	}
	return found
}
