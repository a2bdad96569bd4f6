package escalation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// KnownIncident is what a verdict says about an open incident of which the agent was told.
type KnownIncident struct {
	ID     string       `json:"id"`
	Status IncidentNews `json:"status"`
	// Note says what has changed.
	Note string `json:"note,omitempty"`
}

// IncidentNews says what has become of an incident since the last look.
type IncidentNews string

// The news.
const (
	IncidentUnchanged IncidentNews = "unchanged"
	IncidentWorse     IncidentNews = "worse"
	IncidentGone      IncidentNews = "healed"
)

// MaxKnownIncidents limits the known incidents in a verdict, and those of which an agent is told.
const MaxKnownIncidents = 20

// Sighting is one fault that a verdict tells of, and the incident that it is.
type Sighting struct {
	Fault Issue
	// Issue is the index of the fault in the verdict's issues; -1 if it is none of them.
	Issue int
	// Incident is the incident; nil if the fault is a new one. It is a resolved one if the fault has come back.
	Incident *Incident
	// News compares the fault with an open incident.
	News IncidentNews
	Note string
}

// FindsFault reports whether the verdict tells of a fault that is still there.
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

// Sightings returns the faults that the verdict tells of, each with its incident among the given ones: open ones, and
// those that were resolved lately. own are the IDs of the incidents that the chain already works on. It returns none for a
// verdict that finds nothing wrong.
//
// A fault is an open incident if they have a service in common, or both name none, and have the same kind, or if one of
// them has no kind. A resolved incident must have the same kind. Each incident is at most one of the faults.
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

// Heals returns the IDs of the open incidents that the session's verdict ends: those that it calls healed, those whose
// services it finds healthy and, if it has repaired something, those of its chain. own are the IDs of the latter.
func (s *Session) Heals(incidents []Incident, own []string) []string {
	if s.Verdict == nil {
		return nil
	}
	var healed []string
	for i := range incidents {
		if incident := &incidents[i]; incident.ResolvedAt.IsZero() && s.heals(incident, own) {
			healed = append(healed, incident.ID)
		}
	}
	return healed
}

func (s *Session) heals(incident *Incident, own []string) bool {
	v := s.Verdict
	if news, named := v.newsOf(incident.ID); named {
		return news.Status == IncidentGone
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

// finds reports whether each of the services was checked, and every check of them has this status.
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

// covers reports whether the session was to look at all of these services. A recheck without services looks only at what was
// wrong before.
func (s *Session) covers(services []string) bool {
	if len(s.Scope) == 0 {
		return s.Tier == TierObserve && s.Purpose != PurposeRecheck
	}
	return containsServices(s.Scope, services)
}

// unwell reports whether a check found one of the services not healthy.
func (v *Verdict) unwell(services []string) bool {
	return slices.ContainsFunc(v.Checks, func(check CheckResult) bool {
		return check.Status != CheckHealthy && HasService(services, check.Service)
	})
}

// affects reports whether the verdict tells of a fault of the service.
func (v *Verdict) affects(service string) bool {
	return HasService(v.Services, service) ||
		slices.ContainsFunc(v.Issues, func(issue Issue) bool { return HasService(issue.Services, service) })
}

// newsOf returns what the verdict says about the incident; false if it does not name it.
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

// incidentFinder finds the incidents of the faults of one verdict.
type incidentFinder struct {
	verdict   *Verdict
	incidents []Incident
	own       []string
	used      map[string]bool
}

// find returns the incident that fault is; nil if it is a new one. It prefers open incidents, then those of the chain, then
// those of the same kind, then the latest.
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

// rank returns how well fault and incident match; 0 if they do not.
func (f *incidentFinder) rank(fault Issue, incident *Incident) int {
	common := SharesService(fault.Services, incident.Services) || len(fault.Services) == 0 && len(incident.Services) == 0
	open, sameKind := incident.ResolvedAt.IsZero(), fault.Kind == incident.Kind
	news, _ := f.verdict.newsOf(incident.ID)
	switch {
	case !common || f.used[incident.ID] || open && news.Status == IncidentGone:
		return 0
	case !sameKind && (!open || fault.Kind != "" && incident.Kind != ""):
		return 0
	}
	rank := 1
	for i, better := range []bool{sameKind, slices.Contains(f.own, incident.ID), open} {
		if better {
			rank += 1 << (i + 1)
		}
	}
	return rank
}

// sighting returns the sighting of fault as incident. A fault that is more severe than its open incident is worse.
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

// named returns the open incidents that the verdict names as still there, and that none of its issues is.
func (f *incidentFinder) named() []Sighting {
	var found []Sighting
	for i := range f.incidents {
		incident := &f.incidents[i]
		news, named := f.verdict.newsOf(incident.ID)
		if !named || news.Status == IncidentGone || !incident.ResolvedAt.IsZero() || f.used[incident.ID] {
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

// MoreSevere reports whether a is worse than b.
func MoreSevere(a, b Severity) bool { return slices.Index(severities, a) < slices.Index(severities, b) }

// containsServices reports whether services has each of the wanted ones, and at least one is wanted.
func containsServices(services, wanted []string) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(service string) bool { return !HasService(services, service) })
}

// SharesService reports whether two lists name a common service.
func SharesService(a, b []string) bool {
	return slices.ContainsFunc(a, func(service string) bool { return HasService(b, service) })
}

// MergeServices returns services and those of more that it lacks.
func MergeServices(services, more []string) []string {
	merged := slices.Clone(services)
	for _, service := range more {
		if !HasService(merged, service) && len(merged) < MaxServices {
			merged = append(merged, service)
		}
	}
	return merged
}

// Recognition compares the faults of a look with the incidents that the records have.
type Recognition struct {
	// Known are the faults that other chains take care of.
	Known []RecognizedFault
	// New are all other faults.
	New []Sighting
	// At is the time of the comparison.
	At time.Time
}

// RecognizedFault is a fault that another chain takes care of.
type RecognizedFault struct {
	Sighting
	Handler IncidentChain
}

// Look identifies the chain whose look is compared with the incidents.
type Look struct {
	ChainID string
	// Manual reports whether a person has started the chain.
	Manual bool
}

// Recognize compares the faults of the verdict of a look with incidents. A fault is known if another chain takes care of its
// incident and all its services are among those of the incident. A fault that has become worse, or has come back, is known
// only if that chain is still there to be told. If that chain has ended because a person must act, a chain that a person has
// started repairs the fault.
func Recognize(verdict Verdict, incidents []Incident, look Look, at time.Time) Recognition {
	recognition := Recognition{At: at}
	for _, sighting := range verdict.Sightings(incidents, nil) {
		incident := sighting.Incident
		if incident == nil || !sighting.covered() {
			recognition.New = append(recognition.New, sighting)
			continue
		}
		handler, handled := incident.Handler(look.ChainID, at)
		back := !incident.ResolvedAt.IsZero()
		if !handled || handler.Status == ChainEnded && (back || sighting.News == IncidentWorse || look.Manual && handler.unanswered()) {
			recognition.New = append(recognition.New, sighting)
			continue
		}
		if back {
			sighting.News, sighting.Note = IncidentUnchanged, "it has come back"
		}
		recognition.Known = append(recognition.Known, RecognizedFault{sighting, handler})
	}
	return recognition
}

// Describe names the incident and the chain that takes care of it.
func (f *RecognizedFault) Describe() string {
	return fmt.Sprintf("%s is with chain %s, which %s", f.Incident.Describe(), f.Handler.ChainID, f.Handler.Describe())
}

// covered reports whether all services of the fault are among those of its incident.
func (s *Sighting) covered() bool {
	return len(s.Fault.Services) == 0 || containsServices(s.Incident.Services, s.Fault.Services)
}

// AllKnown reports whether other chains take care of everything that is wrong.
func (r *Recognition) AllKnown() bool { return r != nil && len(r.Known) > 0 && len(r.New) == 0 }

// KnownIssue returns the known fault that is the issue with this index; nil if the issue is new.
func (r *Recognition) KnownIssue(issue int) *RecognizedFault {
	if r == nil {
		return nil
	}
	for i := range r.Known {
		if r.Known[i].Issue == issue {
			return &r.Known[i]
		}
	}
	return nil
}

// AddIssues returns verdict with one more issue for each incident that is still there, that is none of the verdict's issues,
// and of which no other chain takes care. A chain that splits repairs only issues. AddIssues notes the index of each.
func (r *Recognition) AddIssues(verdict Verdict) Verdict {
	if r == nil {
		return verdict
	}
	verdict.Issues = slices.Clone(verdict.Issues)
	for i := range r.New {
		if s := &r.New[i]; s.Issue < 0 {
			s.Issue = len(verdict.Issues)
			verdict.Issues = append(verdict.Issues, s.Fault)
		}
	}
	return verdict
}

// NewServices returns the services of the faults that are not known.
func (r *Recognition) NewServices() []string {
	var services []string
	for i := range r.New {
		services = MergeServices(services, r.New[i].Fault.Services)
	}
	return services
}

// describe names the known incidents and the chains that take care of them.
func (r *Recognition) describe() string {
	parts := make([]string, len(r.Known))
	for i := range r.Known {
		parts[i] = r.Known[i].Describe()
	}
	return strings.Join(parts, "; ")
}

// Describe says what the chain does about the incident. It completes a sentence that begins with the chain.
func (c *IncidentChain) Describe() string {
	switch {
	case c.Status == ChainRepairing:
		return "repairs it"
	case c.Status == ChainWaiting:
		return "waits: " + cut(c.Reason, 120)
	case c.Outcome == OutcomeOverridden:
		return "ended because a person accepted the state"
	case c.unanswered():
		return "ended, and nobody has acted since: " + cut(c.Reason, 120)
	case c.Status == ChainEnded:
		return fmt.Sprintf("ended %s", c.Outcome)
	default:
		return "looks at it"
	}
}

// Returned returns the fault that has come back so often after repairs that it must not be repaired in the same way again;
// nil if there is none. issue is the index of the issue to look at; with -1 it looks at all new faults.
func (r *Recognition) Returned(limit Limit, issue int) *Incident {
	if r == nil || !limit.IsSet() {
		return nil
	}
	for i := range r.New {
		s := &r.New[i]
		if s.Incident == nil || issue >= 0 && s.Issue != issue {
			continue
		}
		if s.Incident.ReturnsWithin(limit, r.At) >= limit.Max {
			return s.Incident
		}
	}
	return nil
}
