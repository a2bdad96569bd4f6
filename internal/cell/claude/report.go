package claude

import "time"

// textInterval is the shortest time between two reports while the CLI prints nothing but text. The CLI prints a model's
// answer in many pieces, and without the limit each piece would cause a report.
const textInterval = time.Second

// reporter reports progress from an accumulator. Its methods must not run concurrently.
type reporter struct {
	report func(Progress)
	prices priceList
	pid    int
	last   time.Time
}

// started reports that the CLI runs with the process number pid.
func (o *reporter) started(pid int) {
	o.pid = pid
	if o.report != nil {
		o.report(Progress{PID: pid, Phase: PhaseStarting, At: time.Now()})
	}
}

// see reports the state of the run after an event. While the CLI prints nothing but text, see reports at most once in
// textInterval.
func (o *reporter) see(kind eventType, a *accumulator) {
	if o.report == nil || kind == "" {
		return
	}
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
