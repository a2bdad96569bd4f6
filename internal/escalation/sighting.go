package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Heals returns the IDs of the open incidents that the session's verdict ends. The verdict ends an incident that it
// calls healed, and an incident whose services it finds healthy. If the status of the verdict is resolved or healthy,
// it also ends the chain's own incidents. The parameter own holds the IDs of the own incidents. If another chain has
// seen an incident too late for this session, Heals leaves the incident open, unless the verdict names it.
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

// precedes reports whether the session says nothing about a fault. The parameter seen is the time at which the fault was seen.
// A look says nothing about a fault that was seen after its start, because the look may have checked the service earlier. A
// repair says nothing only about a fault that was seen after its end.
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

// Affected returns the services of all faults in the verdict.
func (v *Verdict) Affected() []string {
	affected := slices.Clone(v.Services)
	for _, issue := range v.Issues {
		affected = append(affected, issue.Services...)
	}
	return affected
}

// affects reports whether the verdict names service as faulty.
func (v *Verdict) affects(service string) bool {
	return HasService(v.Services, service) ||
		slices.ContainsFunc(v.Issues, func(issue Issue) bool { return HasService(issue.Services, service) })
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

// MoreSevere reports whether the severity a is worse than b.
func MoreSevere(a, b Severity) bool { return slices.Index(severities, a) < slices.Index(severities, b) }

// containsServices reports whether services contains all of wanted. If wanted is empty, it returns false.
func containsServices(services, wanted []string) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(service string) bool { return !HasService(services, service) })
}

// SharesService reports whether two lists have a service in common.
func SharesService(a, b []string) bool {
	return slices.ContainsFunc(a, func(service string) bool { return HasService(b, service) })
}

// MergeServices appends to services the services in more that are not in services, up to MaxServices.
func MergeServices(services, more []string) []string {
	merged := slices.Clone(services)
	for _, service := range more {
		if !HasService(merged, service) && len(merged) < MaxServices {
			merged = append(merged, service)
		}
	}
	return merged
}

// Recognition compares the faults of a look with the incidents in the records.
type Recognition struct {
	// Known holds the faults whose incidents other chains take care of.
	Known []RecognizedFault
	// New holds the faults of which no other chain takes care.
	New []Sighting
	// At is the time of the comparison.
	At time.Time
}

// RecognizedFault is a fault whose incident another chain takes care of.
type RecognizedFault struct {
	Sighting
	Handler IncidentChain
}

// Look identifies the chain that has looked.
type Look struct {
	ChainRun

	// Manual reports whether a person has started the chain that has looked.
	Manual bool
	// MaxTier is the highest tier that the chain may run.
	MaxTier Tier
	// Own holds the IDs of the incidents that the chain already works on; empty for a first look.
	Own []string
	// ParentID is the chain that has split into this one and others; empty if there is none. The parent only waits for
	// this chain, so it takes care of nothing itself.
	ParentID string
}

// Recognize compares the faults in the verdict of a look with incidents. A fault is known if another chain, the
// handler, takes care of its incident, and the incident includes all services of the fault. There are two exceptions. A
// fault that has become worse or come back is known only if the handler still runs, because only a running chain can
// react. If the handler has ended because a person must act, the fault is not known to a chain that a person has
// started, or that may run a higher tier.
func Recognize(verdict Verdict, incidents []Incident, look Look, at time.Time) Recognition {
	recognition := Recognition{At: at}
	for _, sighting := range verdict.Sightings(incidents, look.Own) {
		incident := sighting.Incident
		if incident == nil || !sighting.covered() {
			recognition.New = append(recognition.New, sighting)
			continue
		}
		handler, handled := look.handler(*incident, at)
		back := !incident.ResolvedAt.IsZero()
		acts := handler.unanswered() && (look.Manual || incident.mayTry(look.MaxTier))
		if !handled || handler.Status == ChainEnded && (back || sighting.News == IncidentWorse || acts) {
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

// handler returns the other chain that takes care of incident. If there is none, it returns false.
//
// Two chains may wait with the same incident and look again at the same time. Exactly one of them must go on. So a chain
// that already works on the incident leaves it only to a chain that is ahead of it.
func (l Look) handler(incident Incident, at time.Time) (IncidentChain, bool) {
	chains := incident.Chains
	isOwn := func(chain IncidentChain) bool {
		return chain.ChainID == l.ChainID && chain.FirstRunID == l.FirstRunID && chain.Status != ChainEnded
	}
	own := slices.IndexFunc(chains, isOwn)
	incident.Chains = slices.DeleteFunc(slices.Clone(chains), func(chain IncidentChain) bool {
		behind := own >= 0 && chain.Status != ChainEnded && !chain.aheadOf(chains[own])
		return behind || l.ParentID != "" && chain.ChainID == l.ParentID
	})
	return incident.Handler(l.ChainRun, at)
}

// aheadOf reports whether the chain has come further with its incident than other: it repairs, or it has tried a higher
// tier, or it met the incident earlier.
func (c *IncidentChain) aheadOf(other IncidentChain) bool {
	if c.Status == ChainRepairing || other.Status == ChainRepairing {
		return other.Status != ChainRepairing
	}
	return cmp.Or(cmp.Compare(other.Tier, c.Tier), c.Since.Compare(other.Since), cmp.Compare(c.ChainID, other.ChainID)) < 0
}

// Worsens reports whether the sighting is the first since the given time that finds the incident worse. If so, a chain that
// met the incident at that time does not know yet that it is worse.
func (s *Sighting) Worsens(since time.Time) bool {
	return s.News == IncidentWorse && !s.Incident.WorseAt.After(since)
}

// Describe names the incident and the chain that takes care of it.
func (f *RecognizedFault) Describe() string {
	return fmt.Sprintf("%s is with chain %s, which %s", f.Incident.Describe(), f.Handler.ChainID, f.Handler.Describe())
}

// covered reports whether the incident of s includes all services of the fault.
func (s *Sighting) covered() bool {
	return len(s.Fault.Services) == 0 || containsServices(s.Incident.Services, s.Fault.Services)
}

// AllKnown reports whether the look found faults, and all of them are known.
func (r *Recognition) AllKnown() bool { return r != nil && len(r.Known) > 0 && len(r.New) == 0 }

// KnownIssue returns the known fault with this index in the verdict's issues; nil if the issue is not known.
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

// AddIssues returns verdict with one more issue for each incident that still exists, is not among the verdict's issues,
// and has no other chain that takes care of it. A chain that splits repairs only issues, and would omit such an
// incident. AddIssues stores the index of each added issue in its sighting.
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

// NewServices returns the services of the faults in New.
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

// Describe describes the work of the chain on the incident. The text continues a sentence whose subject is the chain.
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

// Returned returns the incident of a new fault that has come back too often after repairs, so that it must not be
// repaired in the same way again. If no fault has, Returned returns nil. The parameter issue is the index of the issue
// to check. If issue is -1, Returned checks all new faults.
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
