package escalation

import (
	"fmt"
	"slices"
	"time"
)

// KnownIncident is a verdict's entry about an open incident that the agent's prompt describes.
type KnownIncident struct {
	ID     string       `json:"id"`
	Status IncidentNews `json:"status"`
	// Note describes the change of the incident.
	Note string `json:"note,omitempty"`
}

// IncidentNews is the change of an incident since the last look.
type IncidentNews string

// The news.
const (
	IncidentUnchanged IncidentNews = "unchanged"
	IncidentWorse     IncidentNews = "worse"
	IncidentGone      IncidentNews = "healed"
)

// MaxKnownIncidents limits how many known incidents a verdict and an agent's prompt contain.
const MaxKnownIncidents = 20

// Sighting is one fault in a verdict, with the incident that matches the fault.
type Sighting struct {
	Fault Issue
	// Issue is the index of the fault in the verdict's issues; -1 if the verdict has no issues or the fault is not
	// among them.
	Issue int
	// Incident is the matching incident; nil if the fault is new. A resolved incident means that the fault has come
	// back.
	Incident *Incident
	// News compares the fault with its open incident; empty if no open incident matches.
	News IncidentNews
	Note string
}

// FindsFault reports whether the verdict contains a fault that still exists.
func (v *Verdict) FindsFault() bool {
	switch v.Status {
	case VerdictEscalate, VerdictNeedsHuman:
		return true
	case VerdictFailed:
		return len(v.Services) > 0
	case VerdictHealthy, VerdictResolved:
		return false
	}
	return false
}

// Sightings returns the faults in the verdict, each with its incident. If the verdict finds nothing wrong, Sightings
// returns none. The parameter incidents holds open and recently resolved incidents. The parameter own holds the IDs of
// the incidents that the chain already works on.
//
// A fault matches an open incident if both of two conditions hold. First, fault and incident have a service in common,
// or neither names a service. Second, fault and incident have the same kind, or one of them has no kind. A resolved
// incident matches only a fault of the same kind. No incident matches more than one fault.
func (v *Verdict) Sightings(incidents []Incident, own []string) []Sighting {
	if !v.FindsFault() {
		return nil
	}
	finder := incidentFinder{verdict: v, incidents: incidents, own: own, used: map[string]bool{}}
	if len(v.Issues) > 0 {
		var found []Sighting
		for i, issue := range v.Issues {
			found = append(found, finder.sighting(issue, i, finder.find(issue)))
		}
		return append(found, finder.named()...)
	}
	found, rest := finder.named(), slices.Clone(v.Services)
	for _, sighting := range found {
		incident := sighting.Incident
		if v.Kind == "" || incident.Kind == "" || v.Kind == incident.Kind { // otherwise the services have another fault, too
			rest = slices.DeleteFunc(rest, func(service string) bool { return HasService(incident.Services, service) })
		}
	}
	if len(rest) > 0 || len(found) == 0 {
		fault := Issue{Services: rest, Kind: v.Kind, Summary: v.Summary, Severity: v.severity()}
		found = append(found, finder.sighting(fault, -1, finder.find(fault)))
	}
	return found
}

// Affected returns the services of all faults in the verdict.
func (v *Verdict) Affected() []string {
	affected := slices.Clone(v.Services)
	for _, issue := range v.Issues {
		affected = append(affected, issue.Services...)
	}
	return affected
}

// newsOf returns the verdict's entry about the incident. If the verdict has no such entry, newsOf returns false.
func (v *Verdict) newsOf(id string) (KnownIncident, bool) {
	for _, known := range v.Known {
		if known.ID == id {
			return known, true
		}
	}
	return KnownIncident{}, false
}

// severity returns the severity of a verdict without issues.
func (v *Verdict) severity() Severity {
	if slices.ContainsFunc(v.Checks, func(check CheckResult) bool { return check.Status == CheckDown }) {
		return SeverityCritical
	}
	return SeverityWarning
}

// incidentFinder finds the incidents that match the faults of one verdict.
type incidentFinder struct {
	verdict   *Verdict
	incidents []Incident
	own       []string
	used      map[string]bool
}

// find returns the incident that matches fault best; nil if none matches. In this order, it prefers open incidents, incidents
// of the chain, incidents of the same kind, incidents with the same summary, and later incidents.
func (f *incidentFinder) find(fault Issue) *Incident {
	var best *Incident
	bestRank := 0
	for i := range f.incidents {
		incident := &f.incidents[i]
		if rank := f.rank(fault, incident); rank > 0 && rank >= bestRank {
			best, bestRank = incident, rank
		}
	}
	if best != nil {
		f.used[best.ID] = true
	}
	return best
}

// rank says how well fault and incident match; 0 means that they do not match.
func (f *incidentFinder) rank(fault Issue, incident *Incident) int {
	common := SharesService(fault.Services, incident.Services) || len(fault.Services) == 0 && len(incident.Services) == 0
	if fault.Kind == KindLookFailed || incident.IsFailedLook() {
		common = incident.isFailedLookOf(fault)
	}
	open, sameKind := incident.ResolvedAt.IsZero(), fault.Kind == incident.Kind
	news, _ := f.verdict.newsOf(incident.ID)
	switch {
	case !common || f.used[incident.ID] || open && news.Status == IncidentGone:
		return 0
	case !sameKind && (!open || fault.Kind != "" && incident.Kind != ""):
		return 0
	}
	rank := 1
	sameSummary := incident.Summary == ClipIncidentText(fault.Summary)
	for i, better := range []bool{sameSummary, sameKind, slices.Contains(f.own, incident.ID), open} {
		if better {
			rank += 1 << (i + 1)
		}
	}
	return rank
}

// sighting returns the sighting of fault with incident. If fault is more severe than an open incident, the incident has
// become worse.
func (f *incidentFinder) sighting(fault Issue, issue int, incident *Incident) Sighting {
	s := Sighting{Fault: fault, Issue: issue, Incident: incident}
	if incident == nil || !incident.ResolvedAt.IsZero() {
		return s
	}
	s.News = IncidentUnchanged
	if news, named := f.verdict.newsOf(incident.ID); named {
		s.News, s.Note = news.Status, news.Note
	} else if MoreSevere(fault.Severity, incident.Severity) {
		s.News, s.Note = IncidentWorse, fmt.Sprintf("it is %s now, and was %s", fault.Severity, incident.Severity)
	}
	return s
}

// named returns sightings of open incidents that the verdict names as still open. It omits incidents that match one of
// the verdict's issues.
func (f *incidentFinder) named() []Sighting {
	var found []Sighting
	for i := range f.incidents {
		incident := &f.incidents[i]
		news, named := f.verdict.newsOf(incident.ID)
		if !named || news.Status == IncidentGone || !incident.ResolvedAt.IsZero() || f.used[incident.ID] || incident.IsFailedLook() {
			continue
		}
		f.used[incident.ID] = true
		found = append(found, Sighting{
			Issue: -1, Incident: incident, News: news.Status, Note: news.Note,
			Fault: Issue{Services: incident.Services, Kind: incident.Kind, Summary: incident.Summary, Severity: incident.Severity},
		})
	}
	return found
}

// Worsens reports whether the sighting is the first since the given time that finds the incident worse. If so, a chain that
// met the incident at that time does not know yet that it is worse.
func (s *Sighting) Worsens(since time.Time) bool {
	return s.News == IncidentWorse && !s.Incident.WorseAt.After(since)
}

// Covered reports whether the incident of s includes all services of the fault.
func (s *Sighting) Covered() bool {
	return s.Incident.IsFailedLook() || len(s.Fault.Services) == 0 || containsServices(s.Incident.Services, s.Fault.Services)
}
