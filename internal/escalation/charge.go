package escalation

import (
	"fmt"
	"slices"
	"time"
)

// CallAction is an effect of a tool call on a service.
type CallAction struct {
	Kind ActionKind `json:"kind"`
	// Service is the service's canonical name. The guard reads the name from the call.
	Service string `json:"service"`
}

// Charge asks the ledger to book the actions of a tool call before the call runs.
type Charge struct {
	ChainID   string `json:"chain_id"`
	SessionID string `json:"session_id"`
	// Call is the CLI's ID of the call.
	Call string    `json:"call"`
	At   time.Time `json:"at"`
	// Actions lists the call's actions. An action that occurs twice in the call is listed twice.
	Actions []CallAction `json:"actions"`
	// Cooldowns holds the limits of the chain's policy.
	Cooldowns Cooldowns `json:"cooldowns"`
}

// ChargeRefusal explains why a call may not run now.
type ChargeRefusal struct {
	Service string     `json:"service"`
	Kind    ActionKind `json:"kind"`
	// Wanted counts how often the refused action occurs in the call.
	Wanted int `json:"wanted"`
	// Use describes the use of the limit before this call. Use.FreeAt is the time at which the limit allows as many
	// actions as Wanted says; zero if the limit never does.
	Use Use `json:"use"`
	// At is the time of the call.
	At time.Time `json:"at"`
}

// Refuse decides whether the cooldowns now allow a call with the given actions. It counts these actions together with
// the ledger's entries. If every action is allowed, Refuse returns nil. Otherwise it refuses the whole call, and the
// refusal names the first action that is not allowed.
func (c Cooldowns) Refuse(entries []LedgerEntry, actions []CallAction, now time.Time) *ChargeRefusal {
	for _, action := range actions {
		wanted := 0
		for _, other := range actions {
			if other.Kind == action.Kind && SameService(other.Service, action.Service) {
				wanted++
			}
		}
		// Check the last repetition of the action. The earlier repetitions count as done.
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

// use returns the use of the limit that applies to an action. An action without a cooldown is always free.
func (c Cooldowns) use(entries []LedgerEntry, action CallAction, now time.Time) Use {
	for _, state := range c.States(entries, []string{action.Service}, now) {
		switch {
		case !SameService(state.Service, action.Service):
		case action.Kind == ActionRestart:
			return state.Restarts
		case action.Kind == ActionRedeployment:
			return state.Redeployments
		}
	}
	return Use{Free: true}
}

// Reason explains the refusal in a sentence for the agent and the operator.
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
	// Round up, so that a call at the named second is allowed.
	at := r.Use.FreeAt.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	wait := (at.Sub(r.At) + time.Second - time.Nanosecond).Truncate(time.Second)
	return fmt.Sprintf("the cooldown of %s does not allow %s now: the limit over all chains is %s, and the ledger "+
		"has %d; "+
		"%s allowed at %s, in %s", r.Service, what, limit, r.Use.Used, slot, at.UTC().Format(time.RFC3339),
		ShortDuration(wait))
}
