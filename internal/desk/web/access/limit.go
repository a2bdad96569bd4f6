package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKeys limits how many keys a limiter remembers. Idle keys are forgotten first.
const maxKeys = 10_000

// limiter limits how often something happens, for each key.
type limiter struct {
	every time.Duration // the time in which one more is permitted
	burst int
	clock func() time.Time

	mutex sync.Mutex
	rates map[string]*rate.Limiter
}

func newLimiter(every time.Duration, burst int, clock func() time.Time) *limiter {
	return &limiter{every: every, burst: burst, clock: clock, rates: map[string]*rate.Limiter{}}
}

// take counts one event of key. If there were too many, take counts nothing and returns an error that says when to try
// again.
func (l *limiter) take(key string) error {
	return l.check(key, func(r *rate.Limiter, now time.Time) bool { return r.AllowN(now, 1) })
}

// look returns the error that take would return, and counts nothing.
func (l *limiter) look(key string) error {
	return l.check(key, func(r *rate.Limiter, now time.Time) bool { return r.TokensAt(now) >= 1 })
}

func (l *limiter) check(key string, permits func(*rate.Limiter, time.Time) bool) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.clock()
	known, found := l.rates[key]
	if !found {
		l.forget(now)
		known = rate.NewLimiter(rate.Every(l.every), l.burst)
		l.rates[key] = known
	}
	if permits(known, now) {
		return nil
	}
	return &TooManyError{After: l.every}
}

// forget makes room for a key: it removes the idle ones and, if all are in use, everything.
func (l *limiter) forget(now time.Time) {
	if len(l.rates) < maxKeys {
		return
	}
	for key, known := range l.rates {
		if known.TokensAt(now) >= float64(l.burst) {
			delete(l.rates, key)
		}
	}
	if len(l.rates) >= maxKeys {
		clear(l.rates)
	}
}

// TooManyError is the error of a caller who asks too often.
type TooManyError struct {
	// After is the time after which one more is permitted.
	After time.Duration
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("too many requests: try again in %d seconds", int(e.After.Seconds()))
}

type startsKey struct{}

// MayStart counts the start of a chain by the person who sends the request. It returns a *TooManyError if the person
// has started too many.
func MayStart(ctx context.Context) error {
	starts, limited := ctx.Value(startsKey{}).(*limiter)
	person, known := PersonOf(ctx)
	if !limited || !known {
		return nil
	}
	return starts.take(person.Name)
}
