package claude

import "time"

// textInterval is how often a report is made while nothing but text comes in: a model's answer
// arrives in very many pieces.
const textInterval = time.Second

// reporter turns a tally into reports of progress.
type reporter struct {
	report func(Progress)
	prices priceList
	last   time.Time
}

// see reports what an event of the given kind has changed.
func (o *reporter) see(kind eventType, t *tally) {
	if o.report == nil || kind == "" {
		return
	}
	now := time.Now()
	if kind == eventStream && now.Sub(o.last) < textInterval {
		return
	}
	o.last = now
	o.report(Progress{
		SessionID: t.sessionID,
		Phase:     t.phase,
		Turns:     t.usage.turns(),
		Tokens:    t.usage.mainTokens(),
		CostUSD:   o.prices.sum(t.usage.calls),
		Recent:    t.calls.recent(),
		InFlight:  t.calls.inFlight(),
		At:        now,
	})
}
