package escalation

import (
	"cmp"
	"maps"
	"slices"
)

// Verdict returns verdict with canonical names of services.
func (c *Catalog) Verdict(verdict Verdict) Verdict {
	verdict.Services = c.CanonicalAll(verdict.Services)
	verdict.Checks = c.checks(verdict.Checks)
	verdict.Actions = c.actions(verdict.Actions)
	verdict.Issues = slices.Clone(verdict.Issues)
	for i := range verdict.Issues {
		verdict.Issues[i].Services = c.CanonicalAll(verdict.Issues[i].Services)
	}
	verdict.Memories = slices.Clone(verdict.Memories)
	for i := range verdict.Memories {
		verdict.Memories[i].Service = c.Canonical(verdict.Memories[i].Service)
	}
	return verdict
}

// Handoff returns handoff with canonical names of services. It does not change the names in the cooldowns, because
// these come from the store.
func (c *Catalog) Handoff(handoff Handoff) Handoff {
	handoff.Services = c.CanonicalAll(handoff.Services)
	handoff.Checks = c.checks(handoff.Checks)
	handoff.Actions = c.actions(handoff.Actions)
	return handoff
}

func (c *Catalog) checks(checks []CheckResult) []CheckResult {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].Service = c.Canonical(checks[i].Service)
	}
	return checks
}

func (c *Catalog) actions(actions []Action) []Action {
	actions = slices.Clone(actions)
	for i := range actions {
		actions[i].Service = c.Canonical(actions[i].Service)
	}
	return actions
}

// Cooldowns returns cooldowns with canonical names of services. If two services have become one, the stricter limit of
// the two applies.
func (c *Catalog) Cooldowns(cooldowns Cooldowns) Cooldowns {
	if len(cooldowns.Services) == 0 {
		return cooldowns
	}
	services := make(map[string]ServiceCooldowns, len(cooldowns.Services))
	for _, name := range slices.Sorted(maps.Keys(cooldowns.Services)) {
		own, canonical := cooldowns.Services[name], c.Canonical(name)
		if other, twice := services[canonical]; twice {
			own.Restarts = strictest(own.Restarts, other.Restarts)
			own.Redeployments = strictest(own.Redeployments, other.Redeployments)
		}
		services[canonical] = own
	}
	cooldowns.Services = services
	return cooldowns
}

// strictest returns the limit that allows less; the other one if one is nil.
func strictest(a, b *Limit) *Limit {
	switch {
	case a == nil || b != nil && b.IsSet() && !a.IsSet():
		return b
	case b == nil || !b.IsSet():
		return a
	case b.Max < a.Max || b.Max == a.Max && b.Window > a.Window:
		return b
	}
	return a
}

// AllServices returns the services that need a repair or got one: the services of the verdict, of its issues and of its
// actions. It omits the services of checks, because agents also check things that are no service.
func (v *Verdict) AllServices() []string {
	all := slices.Clone(v.Services)
	for _, issue := range v.Issues {
		all = append(all, issue.Services...)
	}
	for _, action := range v.Actions {
		all = append(all, action.Service)
	}
	return UniqueServices(all)
}

// Around returns the services with the given names, followed by the services on which these depend, directly or
// indirectly.
func (c *Catalog) Around(names []string) []Service {
	var found []Service
	waiting := c.CanonicalAll(names)
	seen := map[string]bool{}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if seen[name] || !c.Known(name) {
			continue
		}
		seen[name] = true
		service := c.services[c.index[ServiceKey(name)]]
		found = append(found, service)
		waiting = append(waiting, service.DependsOn...)
	}
	return found
}

// ByRelevance returns all services. The result begins with the services that Around returns for names. The other
// services follow, the most critical first.
func (c *Catalog) ByRelevance(names []string) []Service {
	first := c.Around(names)
	rest := slices.DeleteFunc(c.Services(), func(service Service) bool {
		return slices.ContainsFunc(first, func(other Service) bool { return other.Name == service.Name })
	})
	slices.SortStableFunc(rest, func(a, b Service) int {
		return cmp.Compare(slices.Index(criticalities, a.Criticality), slices.Index(criticalities, b.Criticality))
	})
	return append(first, rest...)
}
