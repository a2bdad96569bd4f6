package escalation

import (
	"maps"
	"slices"
	"time"
)

// Cooldowns limit how often a service may be repaired, over all chains.
type Cooldowns struct {
	Restarts      Limit `json:"restarts"`
	Redeployments Limit `json:"redeployments"`
	// Services holds what differs for one service, by its name.
	Services map[string]ServiceCooldowns `json:"services,omitempty"`
	// MaxWait is how long a chain may wait, altogether, until it may go on; 0 is not at all.
	MaxWait Duration `json:"max_wait"`
}

// ServiceCooldowns are the limits of one service; nil keeps the general one.
type ServiceCooldowns struct {
	Restarts      *Limit `json:"restarts,omitempty"`
	Redeployments *Limit `json:"redeployments,omitempty"`
}

// Limits returns the limits on restarts and redeployments of a service.
func (c Cooldowns) Limits(service string) (restarts, redeployments Limit) {
	restarts, redeployments = c.Restarts, c.Redeployments
	own := c.Services[service]
	if own.Restarts != nil {
		restarts = *own.Restarts
	}
	if own.Redeployments != nil {
		redeployments = *own.Redeployments
	}
	return restarts, redeployments
}

// Window is the longest span that any of the limits looks back on.
func (c Cooldowns) Window() time.Duration {
	longest := max(c.Restarts.Window, c.Redeployments.Window)
	for _, own := range c.Services {
		for _, limit := range []*Limit{own.Restarts, own.Redeployments} {
			if limit != nil {
				longest = max(longest, limit.Window)
			}
		}
	}
	return longest.Std()
}

// HasCooldown reports whether actions of kind k are limited, and so kept in the ledger.
func (k ActionKind) HasCooldown() bool { return k == ActionRestart || k == ActionRedeployment }

// LedgerEntry is one action of an agent as the ledger keeps it. An action that failed counts, too:
// what it did to the service is not known.
type LedgerEntry struct {
	Service   string     `json:"service"`
	Kind      ActionKind `json:"kind"`
	At        time.Time  `json:"at"`
	ChainID   string     `json:"chain_id"`
	SessionID string     `json:"session_id"`
	// Call is the CLI's id of the call that was charged; empty for what only a verdict tells.
	Call string `json:"call,omitempty"`
	// Succeeded is what the session's verdict says; false until it does.
	Succeeded bool `json:"succeeded"`
}

// ServiceState is how far the cooldowns of one service are used up.
type ServiceState struct {
	Service       string `json:"service"`
	Restarts      Use    `json:"restarts"`
	Redeployments Use    `json:"redeployments"`
}

// States returns the state at now of the services that are named and of all that have an entry,
// by name.
func (c Cooldowns) States(entries []LedgerEntry, services []string, now time.Time) []ServiceState {
	actions := map[string]map[ActionKind][]time.Time{}
	for _, service := range services {
		actions[service] = nil
	}
	for _, entry := range entries {
		if actions[entry.Service] == nil {
			actions[entry.Service] = map[ActionKind][]time.Time{}
		}
		kinds := actions[entry.Service]
		kinds[entry.Kind] = append(kinds[entry.Kind], entry.At)
	}
	states := make([]ServiceState, 0, len(actions))
	for _, service := range slices.Sorted(maps.Keys(actions)) {
		restarts, redeployments := c.Limits(service)
		states = append(states, ServiceState{
			Service:       service,
			Restarts:      restarts.use(actions[service][ActionRestart], now),
			Redeployments: redeployments.use(actions[service][ActionRedeployment], now),
		})
	}
	return states
}

// openFor reports whether tier may still do something about the service, and if not, when: zero is
// never. Tier 2 restarts; Tier 3 restarts and redeploys.
func (s ServiceState) openFor(tier Tier) (open bool, at time.Time) {
	uses := []Use{s.Restarts}
	if tier >= TierFullRepair {
		uses = append(uses, s.Redeployments)
	}
	for _, use := range uses {
		if use.Free {
			return true, time.Time{}
		}
		at = earlier(at, use.FreeAt)
	}
	return false, at
}

// earlier returns the earlier of two times, of which zero stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
