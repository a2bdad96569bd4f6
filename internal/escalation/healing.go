package escalation

import (
	"slices"
	"time"
)

// Heals returns the IDs of the open incidents that the session's verdict ends. The verdict ends an incident that it
// calls healed, and an incident whose services it finds healthy. If the status of the verdict is resolved or healthy,
// it also ends the chain's own incidents. The parameter own holds the IDs of the own incidents. If another chain has
// seen an incident too late for this session, Heals leaves the incident open, unless the verdict names it. A look never
// ends another chain's incident that was opened or came back after its start. An incident of the kind KindLookFailed
// ends with each look that has a result and includes its services.
func (s *Session) Heals(incidents []Incident, own []string) []string {
	if s.Verdict == nil || !s.Purpose.judgesServices() {
		return nil
	}
	faults := withoutFailedLooks(incidents, own)
	var healed []string
	for i := range incidents {
		incident := &incidents[i]
		heals := false
		switch {
		case !incident.ResolvedAt.IsZero():
		case incident.IsFailedLook():
			heals = s.healsLook(incident, own)
		default:
			heals = s.heals(incident, faults)
		}
		if heals {
			healed = append(healed, incident.ID)
		}
	}
	return healed
}

func (s *Session) heals(incident *Incident, own []string) bool {
	v := s.Verdict
	late := incident.OpenedAt.After(s.StartedAt) || incident.ReturnedAt.After(s.StartedAt)
	if late && v.Status != VerdictResolved && !slices.Contains(own, incident.ID) {
		return false
	}
	if news, named := s.newsOf(incident); named {
		return news.Status == IncidentGone
	}
	if !slices.Contains(own, incident.ID) && s.precedes(incident.LastSeenAt) {
		return false
	}
	switch v.Status {
	case VerdictResolved:
		if len(own) > 0 {
			return slices.Contains(own, incident.ID)
		}
		return containsServices(v.Services, incident.Services) && !v.unwell(incident.Services)
	case VerdictHealthy:
		covered := s.covers(incident.Services) && !v.unwell(incident.Services)
		return covered || slices.Contains(own, incident.ID) || v.finds(incident.Services, CheckHealthy)
	case VerdictEscalate, VerdictNeedsHuman, VerdictFailed:
		return v.finds(incident.Services, CheckHealthy) && !slices.ContainsFunc(incident.Services, v.affects)
	}
	return false
}

// precedes reports whether the session says nothing about a fault. The parameter seen is the time at which the fault
// was seen. A look says nothing about a fault that was seen after its start, because the look may have checked the
// service earlier. A repair says nothing only about a fault that was seen after its end.
func (s *Session) precedes(seen time.Time) bool {
	if s.Verdict.Status == VerdictResolved {
		return seen.After(s.EndedAt)
	}
	return seen.After(s.StartedAt)
}

// finds reports whether each of services was checked, and all these checks have the given status.
func (v *Verdict) finds(services []string, status CheckStatus) bool {
	for _, service := range services {
		checked := false
		for _, check := range v.Checks {
			if !SameService(check.Service, service) {
				continue
			}
			if check.Status != status {
				return false
			}
			checked = true
		}
		if !checked {
			return false
		}
	}
	return len(services) > 0
}

// faulty returns services without those that were found healthy. If that leaves none, it returns all.
func (v *Verdict) faulty(services []string) []string {
	left := slices.DeleteFunc(slices.Clone(services), func(service string) bool {
		return v.finds([]string{service}, CheckHealthy) && !v.affects(service)
	})
	if len(left) == 0 {
		return services
	}
	return left
}

// covers reports whether the session had to look at all of these services. A recheck without services covers none,
// because it looks only at the services that were not healthy before. A chain with a request of its own covers none,
// because the request may be about something else.
func (s *Session) covers(services []string) bool {
	if s.HasRequest {
		return false
	}
	if len(s.Scope) == 0 {
		return s.Tier == TierObserve && s.Purpose != PurposeRecheck
	}
	return containsServices(s.Scope, services)
}

// unwell reports whether a check found any of services not healthy.
func (v *Verdict) unwell(services []string) bool {
	return slices.ContainsFunc(v.Checks, func(check CheckResult) bool {
		return check.Status != CheckHealthy && HasService(services, check.Service)
	})
}

// affects reports whether the verdict names service as faulty.
func (v *Verdict) affects(service string) bool {
	return HasService(v.Services, service) ||
		slices.ContainsFunc(v.Issues, func(issue Issue) bool { return HasService(issue.Services, service) })
}
