package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// The paths and the query of the calls that the CLI makes.
const (
	messagesPath = "/v1/messages"
	countPath    = "/v1/messages/count_tokens"
	betaQuery    = "beta=true"
)

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" && (r.Method == http.MethodHead || r.Method == http.MethodGet) {
		return // 200: the CLI probes for a server, without a key
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
	// A caller that leaves does not end its call. The API would charge for the answer, and the proxy would not know how
	// much. So the proxy reads the answer to its end.
	ctx, end := lease.bound(context.WithoutCancel(r.Context()), w)
	defer end()
	if err := p.serve(w, r.WithContext(ctx), lease); err != nil {
		p.refuse(w, err, lease)
	}
}

// bound returns a context that ends when ctx ends or the lease is closed. When the lease is closed, the reads and
// writes of the connection also end. Otherwise a caller that neither reads nor writes could keep its connection.
func (l *Lease) bound(ctx context.Context, w http.ResponseWriter) (bounded context.Context, end func()) {
	bounded, cancel := context.WithCancel(ctx)
	cut := make(chan struct{})
	unhook := context.AfterFunc(l.running, func() {
		defer close(cut)
		cancel()
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // an error means that the connection is closed already
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	})
	return bounded, func() {
		if !unhook() {
			<-cut
		}
		cancel()
	}
}

// serve forwards a request to the upstream. If the session may not make the request, the error is a refusal.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, lease *Lease) error {
	if !passes(r) {
		return unknownCall(r.Method, r.URL.Path)
	}
	body, err := lease.receive(w, r)
	if err != nil {
		return unreadable(err)
	}
	defer body.drop()
	asked, err := readQuestion(body.content)
	if err != nil {
		return unreadable(err)
	}
	if err := lease.session.check(asked); err != nil {
		return err
	}
	if r.URL.Path == messagesPath && !lease.withinBudget() {
		return overBudget(lease.session.BudgetUSD)
	}
	lease.refused("")
	// The transport calls GetBody if the upstream has closed an idle connection. It then sends the body again on a new
	// connection.
	r.GetBody = func() (io.ReadCloser, error) { return body.reader(), nil }
	r.Body, r.ContentLength = body.reader(), int64(len(body.content))
	ctx := context.WithValue(r.Context(), callKey{}, &call{
		lease: lease, asked: asked.models[0], metered: r.URL.Path == messagesPath, bytes: len(body.content),
		answered: body.answered,
	})
	p.reverse.ServeHTTP(finalAnswer{w}, r.WithContext(ctx))
	return nil
}

// passes reports whether a request is one of the calls that the CLI needs. Its target is compared as it was sent:
// another spelling of a path (/v1%2fmessages) could mean something else to the upstream.
func passes(r *http.Request) bool {
	target := strings.TrimSuffix(r.RequestURI, "?"+betaQuery)
	return (target == messagesPath || target == countPath) && r.Method == http.MethodPost &&
		r.Header.Get("Content-Encoding") == ""
}

func (p *Proxy) refuse(w http.ResponseWriter, err error, lease *Lease) {
	refused, ok := errors.AsType[refusal](err)
	if !ok {
		refused = unreadable(err)
	}
	if refused.status == http.StatusForbidden {
		lease.refused(refused.message)
	}
	if lease.mayLog() {
		p.logger.Warn("refused an agent's call of the model's API",
			"session_id", lease.session.ID, "status", refused.status, "reason", refused.message)
	}
	refused.write(w)
}

// callKey is the key in a request's context under which the request's *call is stored.
type callKey struct{}

// callOf returns the call that an upstream request belongs to.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// forwarder returns the reverse proxy to the upstream.
func (p *Proxy) forwarder(options Options) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: withoutTrailers{options.Transport},
		// logs interrupted streams; see Count.Partial
		ErrorLog: slog.NewLogLogger(options.Logger.Handler(), slog.LevelDebug),
		// flush at once: the CLI watches the stream
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(options.Upstream)
			keep(r.Out.Header, requestHeaders)
			r.Out.Trailer, r.Out.TransferEncoding = nil, nil
			r.Out.Header.Set("Accept-Encoding", "identity") // a compressed answer cannot be counted
			for name, values := range options.Header {
				r.Out.Header[http.CanonicalHeaderKey(name)] = values
			}
		},
		ModifyResponse: measure,
		ErrorHandler:   p.failed,
	}
}

// measure attaches a meter to a successful answer, if the call costs something. It removes the headers that the CLI
// does not need.
func measure(response *http.Response) error {
	c := callOf(response.Request)
	c.answered()
	c.unreachable("")
	c.limited(limitOf(response, time.Now()))
	keep(response.Header, answerHeaders)
	if !c.metered || response.StatusCode != http.StatusOK {
		return nil
	}
	c.answer()
	var reads meter = &wholeMeter{call: c}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil &&
		kind == "text/event-stream" {
		reads = &streamMeter{call: c}
	}
	response.Body = &meteredBody{ReadCloser: response.Body, meter: reads, call: c}
	return nil
}

// longestRetry is the longest time after which the API asks for a retry because of a short rate limit. A longer one is
// the limit of an account, which no retry outlasts.
const longestRetry = 10 * time.Minute

// limitOf returns the end of the account's limit that an answer names, and its kind; zero if it names none.
func limitOf(response *http.Response, now time.Time) (until time.Time, kind string) {
	if response.StatusCode != http.StatusTooManyRequests {
		return time.Time{}, ""
	}
	const unified = "Anthropic-Ratelimit-Unified-"
	if response.Header.Get(unified+"Status") == "rejected" {
		kind = response.Header.Get(unified + "Representative-Claim")
		seconds, err := strconv.ParseInt(response.Header.Get(unified+"Reset"), 10, 64)
		if err == nil {
			until = time.Unix(seconds, 0)
		}
		if until.After(now) {
			return until, kind
		}
	}
	after, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if wait := time.Duration(min(after, 1<<30)) * time.Second; err == nil && wait > longestRetry {
		return now.Add(wait), kind
	}
	return until, kind
}

// failed handles a request to which the upstream gave no answer. It logs the reason, which the CLI cannot know. It then
// closes the connection to the caller, as the upstream would have done.
func (p *Proxy) failed(_ http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	if operation, ok := errors.AsType[*net.OpError](err); c.metered && (!ok || operation.Op != "dial") {
		c.cutShort() // the API has possibly received the request
		if c.lease.running.Err() != nil {
			c.used("", Usage{Input: c.bytes / bytesOfToken}) // it reads the request before it notices the end
		}
	}
	if r.Context().Err() == nil {
		c.unreachable(fmt.Sprintf("the model's API could not be reached: %v", err))
		if c.lease.mayLog() {
			p.logger.Warn("the model's API could not be reached", "session_id", c.lease.session.ID, "error", err)
		}
	}
	panic(http.ErrAbortHandler)
}
