package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Sightings returns the faults that the session has found, each with its incident. The parameter incidents holds open
// and recently resolved incidents. The parameter own holds the IDs of the incidents that the chain already works on. If
// the session finds nothing wrong, or its verdict is not about services, Sightings returns none.
//
// If the session is a failed look, its failure is the only fault. If the chain already works on a fault, the session is
// not the first look, and its failure is no fault. A verdict without a service is about the chain's own incidents or,
// above Tier 1, about the services of the session.
func (s *Session) Sightings(incidents []Incident, own []string) []Sighting {
	m := matching{session: s, incidents: incidents, own: own}
	switch {
	case !s.Purpose.judgesServices(), s.LookFailed() && m.worksOnFault():
		return nil
	case s.LookFailed():
		m.session = &Session{Report: Report{Verdict: new(Verdict)}, StartedAt: s.StartedAt}
		return m.match([]Issue{s.lookFault()}, -1)
	case s.Verdict == nil || !s.Verdict.FindsFault():
		return nil
	case len(s.Verdict.Issues) > 0:
		found := m.match(s.Verdict.Issues, 0)
		return append(found, m.named(found)...)
	}
	return m.withoutIssues()
}

// matching finds the incidents to which the faults of one session belong.
type matching struct {
	session   *Session
	incidents []Incident
	own       []string
}

// withoutIssues returns the sightings of a verdict without issues: the open incidents that the verdict names, and a
// fault of the services that these do not explain.
func (m *matching) withoutIssues() []Sighting {
	v := m.session.Verdict
	found := m.named(nil)
	if len(v.Services) == 0 && len(found) == 0 {
		found = m.unnamed()
	}
	rest := slices.Clone(v.Services)
	for _, sighting := range found {
		if sameKind(v.Kind, sighting.Incident.Kind) { // otherwise the services have another fault, too
			rest = slices.DeleteFunc(rest,
				func(service string) bool { return HasService(sighting.Incident.Services, service) })
		}
	}
	if len(rest) == 0 && len(found) > 0 {
		return found
	}
	if len(rest) == 0 && m.session.Tier >= TierSafeRepair {
		rest = m.session.Scope
	}
	fault := Issue{Services: rest, Kind: v.Kind, Summary: v.Summary, Severity: v.severityOf(rest)}
	return append(found, m.match([]Issue{fault}, -1)...)
}

// fit says how well a fault and an incident match. Of two fits, the one with the first larger field is better.
type fit struct {
	fault, incident int
	named           bool // the verdict names the incident
	open            bool
	own             bool
	sameKind        bool // otherwise one of them has no kind
	anyKind         bool // the incident has no kind
	sameServices    bool
	shared          int // services in common
	sameSummary     bool
}

// fits returns all matching pairs of a fault and an incident, the best fit first.
func (m *matching) fits(faults []Issue) []fit {
	var fits []fit
	for f, fault := range faults {
		for i := range m.incidents {
			if fit, matches := m.fit(fault, &m.incidents[i]); matches {
				fit.fault, fit.incident = f, i
				fits = append(fits, fit)
			}
		}
	}
	slices.SortStableFunc(fits, func(a, b fit) int { return b.compare(a) })
	return fits
}

// match returns the sightings of faults, at least one for each. It considers all faults and all incidents together, the
// best fit first. Several faults of different services belong to one incident if they are not of different kinds, and
// if they fit it equally well, the verdict names it, or it has no kind. Two faults of one service are never one
// incident, because the agent tells them apart. The index of a fault in the verdict's issues begins at first; -1 if the
// faults are no issues.
func (m *matching) match(faults []Issue, first int) []Sighting {
	taken := map[int]int{}     // the incident of each fault
	holders := map[int][]fit{} // the faults of each incident
	for _, fit := range m.fits(faults) {
		_, has := taken[fit.fault]
		if !has && fit.joins(holders[fit.incident], faults) {
			taken[fit.fault] = fit.incident
			holders[fit.incident] = append(holders[fit.incident], fit)
		}
	}
	var sightings []Sighting
	for f, fault := range faults {
		issue := -1
		if first >= 0 {
			issue = first + f
		}
		if at, has := taken[f]; has {
			sightings = append(sightings, m.parts(fault, issue, &m.incidents[at])...)
		} else {
			sightings = append(sightings, Sighting{Fault: fault, Issue: issue})
		}
	}
	return sightings
}

// parts returns the sightings of a fault whose best incident is given. Normally this is one. If a fault has more
// services than its incident, the rest of them is a fault of its own in two cases. First, the rest has an open
// incident: the agent reports two incidents as one. Second, the incident was resolved while the session ran: its
// services are not repaired with the rest.
func (m *matching) parts(fault Issue, issue int, incident *Incident) []Sighting {
	part, rest := fault, fault
	part.Services, rest.Services = nil, nil
	for _, service := range fault.Services {
		if HasService(incident.Services, service) {
			part.Services = append(part.Services, service)
		} else {
			rest.Services = append(rest.Services, service)
		}
	}
	divided := len(part.Services) > 0 && len(rest.Services) > 0
	if !divided || !m.session.overtaken(incident) && !m.isOpen(rest) {
		return []Sighting{m.sighting(fault, issue, incident)}
	}
	return append([]Sighting{m.sighting(part, issue, incident)}, m.match([]Issue{rest}, issue)...)
}

// isOpen reports whether a fault has an open incident.
func (m *matching) isOpen(fault Issue) bool {
	return slices.ContainsFunc(m.fits([]Issue{fault}), func(f fit) bool { return f.open })
}

// joins reports whether the fault of f can belong to its incident beside the faults that already do.
func (f fit) joins(holders []fit, faults []Issue) bool {
	own := faults[f.fault]
	for _, holder := range holders {
		other := faults[holder.fault]
		if !sameKind(other.Kind, own.Kind) || SharesService(other.Services, own.Services) {
			return false
		}
	}
	return len(holders) == 0 || f.named || f.anyKind || f.sameKind == holders[0].sameKind
}

// compare returns a positive number if f is the better fit, and a negative number if other is. Of two incidents that
// fit equally well, the later one is better.
func (f fit) compare(other fit) int {
	better := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return 1
		default:
			return -1
		}
	}
	return cmp.Or(better(f.named, other.named), better(f.open, other.open), better(f.own, other.own),
		better(f.sameKind, other.sameKind), better(f.sameServices, other.sameServices),
		cmp.Compare(f.shared, other.shared),
		better(f.sameSummary, other.sameSummary), cmp.Compare(f.incident, other.incident))
}

// fit returns how well fault and incident match; false if they do not.
//
// A fault matches an open incident if both of two conditions hold. First, they have a service in common, or neither
// names a service. Second, they have the same kind, or one of them has no kind. A resolved incident matches only a
// fault of the same kind. An incident that was resolved while the session ran counts as open, because it was open for
// the session's agent.
func (m *matching) fit(fault Issue, incident *Incident) (f fit, matches bool) {
	f.shared = len(slices.DeleteFunc(slices.Clone(fault.Services), func(service string) bool {
		return !HasService(incident.Services, service)
	}))
	common := f.shared > 0 || len(fault.Services) == 0 && len(incident.Services) == 0
	if fault.Kind == KindLookFailed || incident.IsFailedLook() {
		common = incident.isFailedLookOf(fault)
	}
	f.open = incident.ResolvedAt.IsZero() || m.session.overtaken(incident)
	f.sameKind, f.anyKind = fault.Kind == incident.Kind, incident.Kind == ""
	f.own = slices.Contains(m.own, incident.ID)
	f.sameServices = f.shared == len(fault.Services) && f.shared == len(incident.Services)
	f.sameSummary = incident.Summary == ClipIncidentText(fault.Summary)
	news, named := m.session.newsOf(incident)
	f.named = named && news.Status != IncidentGone
	matches = common && sameKind(fault.Kind, incident.Kind) && (f.open || f.sameKind) && (!named || f.named || !f.open)
	return f, matches
}

// sameKind reports whether two faults can be of one kind: the kinds are the same, or one of them is empty.
func sameKind(a, b string) bool { return a == b || a == "" || b == "" }

// sighting returns the sighting of fault with incident. If fault is more severe than an open incident, the incident has
// become worse.
func (m *matching) sighting(fault Issue, issue int, incident *Incident) Sighting {
	s := Sighting{Fault: fault, Issue: issue, Incident: incident, Overtaken: m.session.overtaken(incident)}
	if !incident.ResolvedAt.IsZero() {
		return s
	}
	s.News = IncidentUnchanged
	if news, named := m.session.newsOf(incident); named {
		s.News, s.Note = news.Status, news.Note
	} else if MoreSevere(fault.Severity, incident.Severity) {
		s.News, s.Note = IncidentWorse, fmt.Sprintf("it is %s now, and was %s", fault.Severity, incident.Severity)
	}
	return s
}

// named returns sightings of the incidents that the verdict names as still open, except those that found contains.
func (m *matching) named(found []Sighting) []Sighting {
	return m.those(func(incident *Incident) bool {
		news, named := m.session.newsOf(incident)
		return named && news.Status != IncidentGone && !incident.IsFailedLook() &&
			!slices.ContainsFunc(found, func(s Sighting) bool {
				return s.Incident != nil &&
					s.Incident.ID == incident.ID
			})
	})
}

// unnamed returns sightings of the chain's own incidents. A verdict without a service is about these.
func (m *matching) unnamed() []Sighting {
	return m.those(func(incident *Incident) bool {
		_, named := m.session.newsOf(incident)
		return !named && !incident.IsFailedLook() && slices.Contains(m.own, incident.ID)
	})
}

// those returns sightings of the selected incidents among those that were open when the session began. A part of an
// incident's services can have healed.
func (m *matching) those(selects func(*Incident) bool) []Sighting {
	var found []Sighting
	for i := range m.incidents {
		incident := &m.incidents[i]
		if !selects(incident) || !incident.ResolvedAt.IsZero() && !m.session.overtaken(incident) {
			continue
		}
		broken := m.session.Verdict.faulty(incident.Services)
		fault := Issue{Services: broken, Kind: incident.Kind, Summary: incident.Summary, Severity: incident.Severity}
		found = append(found, m.sighting(fault, -1, incident))
	}
	return found
}

// worksOnFault reports whether the chain already works on an incident that is no failed look.
func (m *matching) worksOnFault() bool {
	return slices.ContainsFunc(m.incidents, func(incident Incident) bool {
		return !incident.IsFailedLook() && slices.Contains(m.own, incident.ID)
	})
}

// newsOf returns the verdict's entry about the incident. If the verdict has no such entry, newsOf returns false. An
// incident that was opened after the start of the session is another one than that of the agent's list: after a restore
// from a backup, a number can be given again.
func (s *Session) newsOf(incident *Incident) (KnownIncident, bool) {
	if s.Verdict == nil || incident.OpenedAt.After(s.StartedAt) {
		return KnownIncident{}, false
	}
	return s.Verdict.newsOf(incident.ID)
}

// overtaken reports whether another chain, or a person, resolved the incident while the session ran. The sessions of
// one chain never overlap. After a reset of the chain, a session can have begun, by its record, before a session that
// has ended.
//
// An incident that was resolved long after the session has ended was closed on a host with a wrong clock: the session
// may as well have seen the fault later.
func (s *Session) overtaken(incident *Incident) bool {
	if !incident.ResolvedAt.After(s.StartedAt) || !s.EndedAt.IsZero() &&
		incident.ResolvedAt.After(s.EndedAt.Add(maxOvertaking)) {
		return false
	}
	return incident.ResolvedBy != s.ChainID || incident.Resolution == IncidentClosed
}

// maxOvertaking is the longest time between the end of a session and the judgement on its incidents.
const maxOvertaking = time.Hour
