package claude

import (
	"sync"
	"time"
)

// textInterval is the shortest time between two reports while the CLI prints nothing but text. The CLI prints a model's
// answer in many pieces, and without the limit each piece would cause a report.
const textInterval = time.Second

// reporter reports progress from an accumulator.
type reporter struct {
	report func(Progress)
	prices priceList

	mu   sync.Mutex
	pid  int
	last time.Time
}

// started reports that the CLI runs with the process number pid. If the CLI has already printed something, started
// sends no report.
func (o *reporter) started(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pid = pid
	if o.report != nil && o.last.IsZero() {
		o.report(Progress{PID: pid, Phase: PhaseStarting, At: time.Now()})
	}
}

// see reports the state of the run after an event. While the CLI prints nothing but text, see reports at most once in
// textInterval.
func (o *reporter) see(kind eventType, a *accumulator) {
	if o.report == nil || kind == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if kind == eventStream && now.Sub(o.last) < textInterval {
		return
	}
	o.last = now
	o.report(Progress{
		PID:       o.pid,
		SessionID: a.sessionID,
		Phase:     a.phase,
		Turns:     a.usage.turns(),
		Tokens:    a.usage.mainTokens(),
		CostUSD:   o.prices.sum(a.usage.calls),
		Recent:    a.calls.recent(),
		InFlight:  a.calls.inFlight(),
		Text:      a.output.text(),
		At:        now,
	})
}
