package apiproxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
)

// keyPrefix tells a person who finds a key what it is.
const keyPrefix = "claudeops-session-"

// Session says what a key is valid for.
type Session struct {
	// ID names the session in logs.
	ID string
	// Permits reports whether the session may ask a model by that name.
	Permits func(model string) bool
	// Price returns what a call costs, in US dollars.
	Price func(model string, usage Usage) float64
	// BudgetUSD is what the session may spend, in US dollars: once that much is spent, no call begins. 0 is no limit.
	BudgetUSD float64
}

// Count is what a session has used.
type Count struct {
	// Calls counts the calls that the API answered with a message, or began to.
	Calls int
	// CostUSD is their price, in US dollars.
	CostUSD float64
	// Partial counts calls that ended before the API had told all that they used. CostUSD holds what it told.
	Partial int
	// OverBudget counts calls that were refused because the budget was spent.
	OverBudget int
	// Unreachable says why the latest call did not reach the API; empty if it did.
	Unreachable string
}

// Lease is a session's key, and the count of what was used with it. It is safe for concurrent use.
type Lease struct {
	proxy   *Proxy
	session Session
	key     []byte
	// running ends when the key is revoked.
	running context.Context
	revoke  context.CancelFunc

	mu     sync.Mutex
	closed bool
	// under waits for the requests that are under way, and open counts them.
	under sync.WaitGroup
	open  int
	// told counts lines of the log.
	told  int
	count Count
}

func newLease(p *Proxy, session Session) *Lease {
	running, revoke := context.WithCancel(context.Background())
	return &Lease{
		proxy: p, session: session, running: running, revoke: revoke,
		key: []byte(keyPrefix + rand.Text() + rand.Text()), // 260 bits
	}
}

// Key returns the session's key.
func (l *Lease) Key() string { return string(l.key) }

// Count returns what the session has used so far.
func (l *Lease) Count() Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Close revokes the key, ends the calls that are under way, and returns what the session has used. It may be
// called again.
func (l *Lease) Close() Count {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.proxy.forget(l)
	l.revoke()
	l.under.Wait()
	return l.Count()
}

// opensWith reports whether header carries the key, in either of the ways in which the CLI sends one.
func (l *Lease) opensWith(header http.Header) bool {
	bearer, _ := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	matches := subtle.ConstantTimeCompare([]byte(header.Get("X-Api-Key")), l.key) | subtle.ConstantTimeCompare([]byte(bearer), l.key)
	return matches == 1
}

// maxOpen is how many requests of one session may be under way: more than the CLI and its subagents make. What they
// take of memory, and what they can spend beyond the budget, is bounded by it.
const maxOpen = 16

// enter notes that a request has begun; leave must be called at its end. The error is the refusal.
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
	l.under.Add(1)
	return func() {
		defer l.under.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	}, nil
}

// maxTold is how many lines of the log one session may cause.
const maxTold = 20

// tells reports whether another line of the log may be about this session. An agent can cause them at will.
func (l *Lease) tells() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told++
	return l.told <= maxTold
}

// affords reports whether another call may begin.
func (l *Lease) affords() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.BudgetUSD > 0 && l.count.CostUSD >= l.session.BudgetUSD {
		l.count.OverBudget++
		return false
	}
	return true
}

// call is one call of the model that was passed on. Its fields are the lease's to guard.
type call struct {
	lease *Lease
	// asked is the model of the request. The answer may name another.
	asked string
	// metered says that the call costs something. Counting tokens does not.
	metered bool
	costUSD float64
}

// answer notes that the API has begun to answer.
func (c *call) answer() {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Calls++
}

// used notes what the call has used by now.
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

// cutShort notes that the call ended before all was told.
func (c *call) cutShort() {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Partial++
}

// unreachable notes why the call did not reach the API; empty if it did.
func (c *call) unreachable(why string) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.count.Unreachable = why
}
