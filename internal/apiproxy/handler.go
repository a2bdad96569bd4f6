package apiproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// The calls that the CLI needs.
const (
	messagesPath = "/v1/messages"
	countPath    = "/v1/messages/count_tokens"
	betaQuery    = "beta=true"
)

// maxRequestBytes bounds a request. The API itself refuses more than 32 MB.
const maxRequestBytes = 33 << 20

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" && (r.Method == http.MethodHead || r.Method == http.MethodGet) {
		return // 200: the CLI asks whether anybody is there, without a key
	}
	lease := p.find(r.Header)
	if lease == nil {
		unknownKey().write(w)
		return
	}
	leave, err := lease.enter()
	if err != nil {
		p.refuse(w, err, lease)
		return
	}
	defer leave()
	ctx, end := lease.bound(r.Context(), w)
	defer end()
	if err := p.serve(w, r.WithContext(ctx), lease); err != nil {
		p.refuse(w, err, lease)
	}
}

// bound returns a context that ends with ctx and with the lease. A caller that neither reads nor writes does not
// outlast it.
func (l *Lease) bound(ctx context.Context, w http.ResponseWriter) (bounded context.Context, end func()) {
	bounded, cancel := context.WithCancel(ctx)
	cut := make(chan struct{})
	unhook := context.AfterFunc(l.running, func() {
		defer close(cut)
		cancel()
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // a connection that has gone needs no deadline
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	})
	return bounded, func() {
		if !unhook() {
			<-cut
		}
		cancel()
	}
}

// serve passes a request on, or returns the refusal.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, lease *Lease) error {
	if !passes(r) {
		return unknownCall(r.Method, r.URL.Path)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		return unreadable(err)
	}
	models, err := askedModels(body)
	if err != nil {
		return unreadable(err)
	}
	for _, model := range models {
		if !lease.session.Permits(model) {
			return foreignModel(model)
		}
	}
	if r.URL.Path == messagesPath && !lease.affords() {
		return overBudget(lease.session.BudgetUSD)
	}
	// Where the API is known to have closed an idle connection, the body is sent again on another.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	ctx := context.WithValue(r.Context(), callKey{}, &call{lease: lease, asked: models[0], metered: r.URL.Path == messagesPath})
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// passes reports whether a request is one of those that the CLI needs.
func passes(r *http.Request) bool {
	known := r.URL.Path == messagesPath || r.URL.Path == countPath
	return known && r.Method == http.MethodPost && r.Header.Get("Content-Encoding") == "" &&
		(r.URL.RawQuery == "" || r.URL.RawQuery == betaQuery)
}

func (p *Proxy) refuse(w http.ResponseWriter, err error, lease *Lease) {
	refused, ok := errors.AsType[refusal](err)
	if !ok {
		refused = unreadable(err)
	}
	if lease.tells() {
		p.logger.Warn("refused an agent's call of the model's API",
			"session_id", lease.session.ID, "status", refused.status, "reason", refused.message)
	}
	refused.write(w)
}

// callKey is the key of a *call in the context of a request.
type callKey struct{}

// callOf returns the call that a request to the upstream belongs to.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// forwarder returns the part that talks to the upstream.
func (p *Proxy) forwarder(options Options) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     options.Transport,
		ErrorLog:      slog.NewLogLogger(options.Logger.Handler(), slog.LevelDebug), // streams that were cut off: the count has them
		FlushInterval: -1,                                                           // at once: the CLI watches the stream
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(options.Upstream)
			for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Upgrade"} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("Accept-Encoding", "identity") // what is compressed cannot be counted
			for name, values := range options.Header {
				r.Out.Header[http.CanonicalHeaderKey(name)] = values
			}
		},
		ModifyResponse: measure,
		ErrorHandler:   p.failed,
	}
}

// measure lets a meter read the answer of a call that costs something.
func measure(response *http.Response) error {
	c := callOf(response.Request)
	c.unreachable("")
	if !c.metered || response.StatusCode != http.StatusOK {
		return nil
	}
	c.answer()
	var reads meter = &wholeMeter{call: c}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		reads = &streamMeter{call: c}
	}
	response.Body = &meteredBody{ReadCloser: response.Body, meter: reads, call: c}
	return nil
}

// failed ends a request that got no answer as the upstream would have: the connection is closed. The reason is
// logged here, because the CLI cannot know it.
func (p *Proxy) failed(_ http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	if operation, ok := errors.AsType[*net.OpError](err); c.metered && (!ok || operation.Op != "dial") {
		c.cutShort() // the API may have got the request
	}
	if r.Context().Err() == nil {
		c.unreachable(fmt.Sprintf("the model's API could not be reached: %v", err))
		if c.lease.tells() {
			p.logger.Warn("the model's API could not be reached", "session_id", c.lease.session.ID, "error", err)
		}
	}
	panic(http.ErrAbortHandler)
}
