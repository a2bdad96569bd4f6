package escalation

import (
	"fmt"
	"slices"
	"time"
)

// CallAction is what a call of an agent does to a service.
type CallAction struct {
	Kind ActionKind `json:"kind"`
	// Service is the service as the call names it.
	Service string `json:"service"`
}

// Charge asks the ledger to book what a call of an agent is about to do.
type Charge struct {
	ChainID   string `json:"chain_id"`
	SessionID string `json:"session_id"`
	// Call is the CLI's id of the call.
	Call string    `json:"call"`
	At   time.Time `json:"at"`
	// Actions are all that the call does. An action that it does twice is there twice.
	Actions []CallAction `json:"actions"`
	// Cooldowns are the limits that hold: those of the chain's policy.
	Cooldowns Cooldowns `json:"cooldowns"`
}

// ChargeRefusal says why a call may not be made now.
type ChargeRefusal struct {
	Service string     `json:"service"`
	Kind    ActionKind `json:"kind"`
	// Wanted counts how often the call does that.
	Wanted int `json:"wanted"`
	// Use is how far the limit is used up without the call. FreeAt is when the whole call will be allowed.
	Use Use `json:"use"`
	// At is the time of the call.
	At time.Time `json:"at"`
}

// Refuse returns why a call may not do actions at now, after what entries say; nil if it may. A call does all
// of its actions, or none.
func (c Cooldowns) Refuse(entries []LedgerEntry, actions []CallAction, now time.Time) *ChargeRefusal {
	for _, action := range actions {
		wanted := 0
		for _, other := range actions {
			if other == action {
				wanted++
			}
		}
		// The last of them is judged as if the others had been done.
		done := LedgerEntry{Service: action.Service, Kind: action.Kind, At: now}
		use := c.use(slices.Concat(entries, slices.Repeat([]LedgerEntry{done}, wanted-1)), action, now)
		if use.Free {
			continue
		}
		if wanted > use.Limit.Max {
			use.FreeAt = time.Time{}
		}
		use.Used -= wanted - 1
		return &ChargeRefusal{Service: action.Service, Kind: action.Kind, Wanted: wanted, Use: use, At: now}
	}
	return nil
}

// use returns how far the limit on an action is used up. An action without a cooldown is always free.
func (c Cooldowns) use(entries []LedgerEntry, action CallAction, now time.Time) Use {
	for _, state := range c.States(entries, []string{action.Service}, now) {
		switch {
		case state.Service != action.Service:
		case action.Kind == ActionRestart:
			return state.Restarts
		case action.Kind == ActionRedeployment:
			return state.Redeployments
		}
	}
	return Use{Free: true}
}

// Reason explains the refusal to the agent and to people in a sentence.
func (r *ChargeRefusal) Reason() string {
	what, slot := fmt.Sprintf("a %s", r.Kind), "the next one is"
	if r.Wanted > 1 {
		what, slot = fmt.Sprintf("%d %ss in one call", r.Wanted, r.Kind), "so many are"
	}
	limit := fmt.Sprintf("%d within %s", r.Use.Limit.Max, ShortDuration(r.Use.Limit.Window.Std()))
	switch {
	case r.Use.Limit.Max == 0:
		return fmt.Sprintf("the policy allows no %s of %s", r.Kind, r.Service)
	case r.Use.FreeAt.IsZero():
		return fmt.Sprintf("the cooldown of %s never allows %s: the limit is %s", r.Service, what, limit)
	}
	// Rounded up: whoever tries at that second is not refused once more.
	at := r.Use.FreeAt.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	wait := (at.Sub(r.At) + time.Second - time.Nanosecond).Truncate(time.Second)
	return fmt.Sprintf("the cooldown of %s does not allow %s now: the limit over all chains is %s, and the ledger has %d; "+
		"%s allowed at %s, in %s", r.Service, what, limit, r.Use.Used, slot, at.UTC().Format(time.RFC3339), ShortDuration(wait))
}
