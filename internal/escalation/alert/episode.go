package alert

import (
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Outcome says what became of an alert.
type Outcome string

// The outcomes.
const (
	OutcomeWaiting   Outcome = "waiting"   // a chain will start
	OutcomeStarted   Outcome = "started"   // a chain was started for it
	OutcomeJoined    Outcome = "joined"    // a chain at work on the service has taken it
	OutcomeWithdrawn Outcome = "withdrawn" // it resolved before a chain started
	OutcomeFiltered  Outcome = "filtered"  // it starts nothing
	OutcomeUnmapped  Outcome = "unmapped"  // it belongs to no service
	OutcomeRefused   Outcome = "refused"   // the delivery cannot be used
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeWaiting, OutcomeStarted, OutcomeJoined, OutcomeWithdrawn, OutcomeFiltered, OutcomeUnmapped,
		OutcomeRefused,
	}
}

// Episode is an alert from its first firing until it fires anew after its end: a row of the records.
type Episode struct {
	Alert

	Number  int64           `json:"number"`
	Service string          `json:"service,omitempty"`
	MaxTier escalation.Tier `json:"max_tier,omitempty"`
	Outcome Outcome         `json:"outcome"`
	// Reason explains the outcome.
	Reason string `json:"reason,omitempty"`
	// ChainID is the chain that was started for the alert, or took it.
	ChainID string `json:"chain_id,omitempty"`
	// FirstAt and LastAt are the times of the first and the latest delivery, and Received counts all.
	FirstAt  time.Time `json:"first_at"`
	LastAt   time.Time `json:"last_at"`
	Received int       `json:"received"`
	// DueAt is the time at which a chain may start; zero if none will.
	DueAt time.Time `json:"due_at,omitzero"`
	// LookedAt is the time at which a chain was started or has taken it.
	LookedAt time.Time `json:"looked_at,omitzero"`
	// ResolvedAt is the time at which the source said that it has resolved; zero while it fires.
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// CheckDue reports that a look must check whether it has resolved.
	CheckDue bool `json:"check_due,omitempty"`
}

// Receive returns what a delivery makes of the latest episode of its alert, or of none. It returns up to two episodes:
// the changed one, and a new one, with the number 0.
func (r Rules) Receive(catalog *escalation.Catalog, latest *Episode, a Alert, now time.Time) []Episode {
	switch {
	case latest == nil:
		return []Episode{r.begin(catalog, a, now)}
	case !r.isNew(*latest, a):
		return []Episode{r.repeat(catalog, *latest, a, now)}
	}
	fresh := r.begin(catalog, a, now)
	if !fresh.StartsAt.After(latest.StartsAt) { // two within a millisecond
		fresh.StartsAt = latest.StartsAt.Add(time.Millisecond)
	}
	if latest.Status == Resolved {
		return []Episode{fresh}
	}
	// The source did not say that the earlier one has ended.
	old := *latest
	old.Status, old.ResolvedAt = Resolved, now
	if old.Outcome == OutcomeWaiting {
		fresh.DueAt = old.DueAt // it has waited for long enough, in the new one's place
		old.Outcome, old.Reason, old.DueAt = OutcomeWithdrawn, "it began anew before a chain started", time.Time{}
	}
	return []Episode{old, fresh}
}

// isNew reports whether a begins a new episode. A later start does; without starts, a firing after the end.
func (r Rules) isNew(latest Episode, a Alert) bool {
	if a.Status == Resolved {
		return false
	}
	if a.StartsAt.IsZero() {
		return latest.Status == Resolved
	}
	return a.StartsAt.After(latest.StartsAt)
}

// begin returns a new episode.
func (r Rules) begin(catalog *escalation.Catalog, a Alert, now time.Time) Episode {
	e := Episode{Alert: a, FirstAt: now, LastAt: now, Received: 1}
	if e.StartsAt.IsZero() {
		e.StartsAt = now
	}
	ruling := r.Rule(catalog, a)
	e.Service, e.MaxTier, e.Outcome, e.Reason = ruling.Service, ruling.MaxTier, ruling.Outcome, ruling.Reason
	if a.Status == Resolved {
		e.ResolvedAt = now
		if e.Outcome == OutcomeWaiting {
			e.Outcome, e.Reason = OutcomeFiltered, "it resolved, and no firing of it was received"
		}
		return e
	}
	if e.Outcome == OutcomeWaiting {
		e.DueAt = now.Add(ruling.Wait)
	}
	return e
}

// repeat returns the episode after another delivery of its alert.
func (r Rules) repeat(catalog *escalation.Catalog, e Episode, a Alert, now time.Time) Episode {
	e.LastAt, e.Received = now, e.Received+1
	switch {
	case e.Status == Resolved: // also a firing that was delayed on the way
		return e
	case a.Status == Resolved:
		return r.resolve(e, a, now)
	}
	starts, ruling := e.StartsAt, r.Rule(catalog, a)
	e.Alert, e.StartsAt = a, starts
	switch e.Outcome {
	case OutcomeWaiting:
		e.Service, e.MaxTier = ruling.Service, ruling.MaxTier
		if due := now.Add(ruling.Wait); due.Before(e.DueAt) {
			e.DueAt = due // it has become urgent
		}
	case OutcomeStarted, OutcomeJoined:
		if ruling.Outcome == OutcomeWaiting && now.Sub(e.LookedAt) >= r.Again {
			e.Service, e.MaxTier, e.Outcome, e.DueAt = ruling.Service, ruling.MaxTier, OutcomeWaiting, now
			e.Reason = fmt.Sprintf("it still fires %s after the last look", now.Sub(e.LookedAt).Round(time.Minute))
		}
	case OutcomeFiltered, OutcomeUnmapped, OutcomeRefused, OutcomeWithdrawn:
		if ruling.Outcome == OutcomeWaiting { // the operator has changed the rules since
			e.DueAt = now.Add(ruling.Wait)
		}
		e.Service, e.MaxTier, e.Outcome, e.Reason = ruling.Service, ruling.MaxTier, ruling.Outcome, ruling.Reason
	}
	return e
}

// resolve returns the episode after its source said that it has resolved.
func (r Rules) resolve(e Episode, a Alert, now time.Time) Episode {
	if a.Doubt != "" {
		e.Reason = "its source said that it has resolved, which does not count: " + a.Doubt
		return e
	}
	e.Status, e.ResolvedAt = Resolved, now
	switch e.Outcome {
	case OutcomeWaiting:
		e.Outcome, e.DueAt = OutcomeWithdrawn, time.Time{}
		e.Reason = "it resolved before a chain started"
	case OutcomeStarted, OutcomeJoined:
		e.CheckDue = r.Resolved == ClaimLook
	case OutcomeFiltered, OutcomeUnmapped, OutcomeRefused, OutcomeWithdrawn:
	}
	return e
}
