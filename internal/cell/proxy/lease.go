package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keyPrefix is the beginning of every session key, by which a person who finds a key can recognise it.
const keyPrefix = "claudeops-session-"

// Session describes a session and the limits of its key.
type Session struct {
	// ID identifies the session in logs.
	ID string
	// Permits reports whether the session may call the model with the given name.
	Permits func(model string) bool
	// Price returns the cost of a call in US dollars.
	Price func(model string, usage Usage) float64
	// WebSearch permits the tools with which the API searches the web.
	WebSearch bool
	// BudgetUSD is the session's budget in US dollars; 0 means no limit. When the budget is spent, new calls are
	// refused.
	BudgetUSD float64
}

// check returns a refusal if the session may not ask the question.
func (s *Session) check(asked question) error {
	for _, model := range asked.models {
		if !s.Permits(model) {
			return foreignModel(model)
		}
	}
	for _, tool := range asked.tools {
		if tool != "" && tool != customTool && (!s.WebSearch || !strings.HasPrefix(tool, "web_search_")) {
			return foreignTool(tool)
		}
	}
	return nil
}

// Count holds the usage of a session.
type Count struct {
	// Calls counts the calls to which the API gave a successful answer, in full or in part. Calls that only count
	// tokens are not included.
	Calls int
	// CostUSD is the cost of all answered calls in US dollars.
	CostUSD float64
	// Partial counts the calls that ended before the API had reported all usage. CostUSD includes the reported part,
	// and an estimate of the rest from what was streamed.
	Partial int
	// OverBudget counts the calls that were refused because the budget was spent.
	OverBudget int
	// Refused says why the proxy itself did not permit the latest call. It is empty if it passed that call on.
	Refused string
	// Unreachable says why the latest call did not reach the API. It is empty if that call reached the API.
	Unreachable string
	// LimitedUntil is the end of the account's limit, if the latest call was refused because of it; zero if it was not.
	// LimitKind is the API's name for that limit; empty if it says none.
	LimitedUntil time.Time
	LimitKind    string
}

// Lease holds a session's key, and counts the usage under that key. A Lease is safe for concurrent use.
type Lease struct {
	proxy   *Proxy
	session Session
	key     []byte
	// running ends when the key is revoked.
	running context.Context
	revoke  context.CancelFunc
	// large is held by the only large request, and waiting by those that wait for it.
	large, waiting chan struct{}

	mu     sync.Mutex
	closed bool
	// pending is for waiting until no request is in flight. open is the number of requests in flight.
	pending sync.WaitGroup
	open    int
	// logged counts the log lines that the session has caused.
	logged int
	count  Count
}

func newLease(p *Proxy, session Session) *Lease {
	running, revoke := context.WithCancel(context.Background())
	return &Lease{
		proxy: p, session: session, running: running, revoke: revoke,
		large: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting),
		key: []byte(keyPrefix + rand.Text() + rand.Text()), // 260 bits
	}
}

// Key returns the session's key.
func (l *Lease) Key() string { return string(l.key) }

// Count returns the usage so far.
func (l *Lease) Count() Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Close revokes the key, ends the calls in flight and returns the session's usage. Close can be called more than once.
func (l *Lease) Close() Count {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.proxy.forget(l)
	l.revoke()
	l.pending.Wait()
	return l.Count()
}

// matchesKey reports whether header carries the key. The CLI sends the key as X-Api-Key or as a bearer token.
func (l *Lease) matchesKey(header http.Header) bool {
	bearer, _ := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	matches := subtle.ConstantTimeCompare([]byte(header.Get("X-Api-Key")),
		l.key) | subtle.ConstantTimeCompare([]byte(bearer), l.key)
	return matches == 1
}

// maxOpen limits the concurrent requests of one session. The CLI and its subagents make fewer concurrent requests than
// this. The limit bounds the memory for requests (see smallRequest), and the amount by which a session can exceed its
// budget.
const maxOpen = 16

// enter registers a request. The caller must call the returned function when the request ends. If the session may not
// make a request, the error is a refusal.
func (l *Lease) enter() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unknownKey()
	}
	if l.open >= maxOpen {
		return nil, tooMany()
	}
	l.open++
	l.pending.Add(1)
	return func() {
		defer l.pending.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	}, nil
}

// maxLogged limits the log lines that one session may cause.
const maxLogged = 20

// mayLog reports whether the proxy may log another line about this session. Without a limit, an agent could flood the
// log.
func (l *Lease) mayLog() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logged++
	return l.logged <= maxLogged
}

// withinBudget reports whether another call may begin.
func (l *Lease) withinBudget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.BudgetUSD > 0 && l.count.CostUSD >= l.session.BudgetUSD {
		l.count.OverBudget++
		return false
	}
	return true
}

// refused records why the proxy did not permit the latest call; empty if it passed it on.
func (l *Lease) refused(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.Refused = why
}

// call is one forwarded call of the model's API. The lease's mutex guards the field costUSD.
type call struct {
	lease *Lease
	// asked is the model that the request names. The answer can name another model.
	asked string
	// metered is true if the call costs something. A call that only counts tokens costs nothing.
	metered bool
	// bytes is the length of the request.
	bytes int
	// answered is called when the API begins to answer.
	answered func()
	costUSD  float64
}

// answer counts the call as answered.
func (c *call) answer() {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Calls++
}

// used updates the cost of the call. The argument usage is the call's usage so far. If the argument model is empty,
// used takes the price of the requested model.
func (c *call) used(model string, usage Usage) {
	if model == "" {
		model = c.asked
	}
	cost := c.lease.session.Price(model, usage)
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.CostUSD += cost - c.costUSD
	c.costUSD = cost
}

// cutShort marks the call as ended before all its usage was reported.
func (c *call) cutShort() {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Partial++
}

// limited records the account's limit that the answer to the call names, and its end; zero if it names none.
func (c *call) limited(until time.Time, kind string) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.LimitedUntil, c.lease.count.LimitKind = until, kind
}

// unreachable records the reason why the call did not reach the API. An empty reason means that the call reached the
// API.
func (c *call) unreachable(why string) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Unreachable = why
}
