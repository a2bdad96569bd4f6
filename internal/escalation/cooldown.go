package escalation

import (
	"maps"
	"slices"
	"time"
)

// Cooldowns limit how often agents can repair a service. The limits count the repairs of all chains.
type Cooldowns struct {
	Restarts      Limit `json:"restarts"`
	Redeployments Limit `json:"redeployments"`
	// Services maps the name of a service to the limits of that service, if these differ from the general limits.
	Services map[string]ServiceCooldowns `json:"services,omitempty"`
	// MaxWait limits how long a chain waits for admission in total; 0 forbids waiting.
	MaxWait Duration `json:"max_wait"`
}

// ServiceCooldowns replaces the general limits for one service. A nil limit keeps the general limit.
type ServiceCooldowns struct {
	Restarts      *Limit `json:"restarts,omitempty"`
	Redeployments *Limit `json:"redeployments,omitempty"`
}

// Limits returns the limits on restarts and redeployments of service.
func (c Cooldowns) Limits(service string) (restarts, redeployments Limit) {
	restarts, redeployments = c.Restarts, c.Redeployments
	own := c.own(service)
	if own.Restarts != nil {
		restarts = *own.Restarts
	}
	if own.Redeployments != nil {
		redeployments = *own.Redeployments
	}
	return restarts, redeployments
}

// own returns the limits in c.Services for one service; zero if it has no entry there. Names are compared by
// ServiceKey.
func (c Cooldowns) own(service string) ServiceCooldowns {
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if SameService(name, service) {
			return c.Services[name]
		}
	}
	return ServiceCooldowns{}
}

// Window returns the longest window among all limits.
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

// HasCooldown reports whether a cooldown can limit actions of this kind. The ledger keeps only such actions.
func (k ActionKind) HasCooldown() bool { return k == ActionRestart || k == ActionRedeployment }

// LedgerEntry is one action of an agent in the ledger. The ledger also has failed actions, because their effect on the
// service is unknown.
type LedgerEntry struct {
	Service   string     `json:"service"`
	Kind      ActionKind `json:"kind"`
	At        time.Time  `json:"at"`
	ChainID   string     `json:"chain_id"`
	SessionID string     `json:"session_id"`
	// Call is the CLI's ID of the tool call that was charged; empty if only a verdict reports the action.
	Call string `json:"call,omitempty"`
	// Succeeded reports whether the verdict says that the action succeeded; false before there is a verdict.
	Succeeded bool `json:"succeeded"`
}

// ServiceState describes the use of one service's cooldowns.
type ServiceState struct {
	Service       string `json:"service"`
	Restarts      Use    `json:"restarts"`
	Redeployments Use    `json:"redeployments"`
}

// States returns the current use of the cooldowns, sorted by ServiceKey. The result contains the given services, and
// all services that occur in the given entries of the ledger. If a service has several spellings, States uses the
// spelling in services or, without one, the spelling in the first entry.
func (c Cooldowns) States(entries []LedgerEntry, services []string, now time.Time) []ServiceState {
	names := map[string]string{}
	actions := map[string]map[ActionKind][]time.Time{}
	enter := func(service string) map[ActionKind][]time.Time {
		key := ServiceKey(service)
		if actions[key] == nil {
			names[key], actions[key] = service, map[ActionKind][]time.Time{}
		}
		return actions[key]
	}
	for _, service := range services {
		enter(service)
	}
	for _, entry := range entries {
		kinds := enter(entry.Service)
		kinds[entry.Kind] = append(kinds[entry.Kind], entry.At)
	}
	states := make([]ServiceState, 0, len(actions))
	for _, key := range slices.Sorted(maps.Keys(actions)) {
		restarts, redeployments := c.Limits(key)
		states = append(states, ServiceState{
			Service:       names[key],
			Restarts:      restarts.use(actions[key][ActionRestart], now),
			Redeployments: redeployments.use(actions[key][ActionRedeployment], now),
		})
	}
	return states
}

// MaxOtherStates limits how many services without a request an admission lists. Histories contain the list.
const MaxOtherStates = 50

// RecentStates returns the states of the named services and, of the others, those of the MaxOtherStates services that
// were repaired last. The order does not change.
func RecentStates(states []ServiceState, services []string) []ServiceState {
	others := slices.DeleteFunc(slices.Clone(states),
		func(s ServiceState) bool { return HasService(services, s.Service) })
	if len(others) <= MaxOtherStates {
		return states
	}
	slices.SortStableFunc(others, func(a, b ServiceState) int { return b.last().Compare(a.last()) })
	old := make(map[string]bool, len(others))
	for _, state := range others[MaxOtherStates:] {
		old[state.Service] = true
	}
	return slices.DeleteFunc(slices.Clone(states), func(s ServiceState) bool { return old[s.Service] })
}

// last returns the time of the service's latest repair.
func (s ServiceState) last() time.Time {
	if s.Restarts.Last.After(s.Redeployments.Last) {
		return s.Restarts.Last
	}
	return s.Redeployments.Last
}

// openFor reports whether the service's cooldowns now allow at least one action to a tier. Tier 2 can only restart
// services. Tier 3 can also redeploy them. If no action is allowed now, at is the time of the first allowed action;
// zero if no action will ever be allowed.
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

// earlier returns the earlier of two times. A zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
