package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

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

// Recognize compares the faults that a session has found with incidents. A fault is known if another chain, the
// handler, takes care of its incident, and the incident includes all services of the fault. There are two exceptions. A
// fault that has become worse or come back is known only if the handler still runs, because only a running chain can
// react. If the handler has ended because a person must act, the fault is not known to a chain that a person has
// started, or that may run a higher tier.
//
// A fault is also known if its incident was resolved while the session ran. The next look tells whether it still
// exists.
func Recognize(session Session, incidents []Incident, look Look, at time.Time) Recognition {
	recognition := Recognition{At: at}
	for _, sighting := range session.Sightings(incidents, look.Own) {
		if handler, known := look.knows(sighting, at); known {
			if sighting.Incident != nil && !sighting.Overtaken && !sighting.Incident.ResolvedAt.IsZero() {
				sighting.News, sighting.Note = IncidentUnchanged, "it has come back"
			}
			recognition.Known = append(recognition.Known, RecognizedFault{sighting, handler})
			continue
		}
		recognition.New = append(recognition.New, sighting)
	}
	return recognition
}

// knows returns the handler of a known fault. If the fault is new, it returns false.
func (l Look) knows(sighting Sighting, at time.Time) (IncidentChain, bool) {
	incident := sighting.Incident
	switch {
	case incident == nil || !sighting.Covered():
		return IncidentChain{}, false
	case sighting.Overtaken:
		return incident.resolver(), true
	}
	handler, handled := l.handler(*incident, at)
	acts := handler.asked() && (l.Manual || incident.mayTry(l.MaxTier))
	back := !incident.ResolvedAt.IsZero()
	if !handled || handler.Status == ChainEnded && (back || sighting.News == IncidentWorse || acts) {
		return IncidentChain{}, false
	}
	return handler, true
}

// resolver returns the chain that resolved the incident. If a person closed the incident, ChainID is the person's name.
func (i *Incident) resolver() IncidentChain {
	for _, chain := range i.Chains {
		if chain.ChainID == i.ResolvedBy {
			return chain
		}
	}
	ended := ChainProgress{Status: ChainEnded, Outcome: OutcomeResolved, At: i.ResolvedAt}
	return IncidentChain{ChainID: i.ResolvedBy, ChainProgress: ended}
}

// handler returns the other chain that takes care of incident. If there is none, it returns false.
//
// Two chains may wait with the same incident and look again at the same time. Exactly one of them must go on. So a
// chain that already works on the incident leaves it only to a chain that is ahead of it.
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
	return cmp.Or(cmp.Compare(other.Tier, c.Tier), c.Since.Compare(other.Since),
		cmp.Compare(c.ChainID, other.ChainID)) < 0
}

// Describe names the incident and the chain that takes care of it, or has resolved it.
func (f *RecognizedFault) Describe() string {
	if f.Overtaken {
		by := "chain " + f.Handler.ChainID
		if f.Incident.Resolution == IncidentClosed {
			by = f.Handler.ChainID
		}
		return fmt.Sprintf("%s was resolved by %s while the session ran", f.Incident.Describe(), by)
	}
	return fmt.Sprintf("%s is with chain %s, which %s", f.Incident.Describe(), f.Handler.ChainID, f.Handler.Describe())
}

// AllKnown reports whether the look found faults, and all of them are known.
func (r *Recognition) AllKnown() bool { return r != nil && len(r.Known) > 0 && len(r.New) == 0 }

// KnownIssue returns the known fault with this index in the verdict's issues; nil if the issue, or a part of it, is
// new.
func (r *Recognition) KnownIssue(issue int) *RecognizedFault {
	if r == nil || slices.ContainsFunc(r.New, func(s Sighting) bool { return s.Issue == issue }) {
		return nil
	}
	for i := range r.Known {
		if r.Known[i].Issue == issue {
			return &r.Known[i]
		}
	}
	return nil
}

// SplitIssues returns verdict with the issues that a chain that splits deals with. Issues of one incident become one
// issue, because one chain repairs an incident. Incidents that still exist, are not among the issues, and are nobody's
// become issues, because a chain that splits repairs only issues. SplitIssues stores the new indexes in the sightings.
func (r *Recognition) SplitIssues(verdict Verdict) Verdict {
	if r == nil {
		return verdict
	}
	known, fresh := r.byIssue()
	issues := verdict.Issues
	verdict.Issues = nil
	merged := map[string]int{} // the issue of each incident
	assign := func(s *Sighting) {
		if s.Incident != nil {
			if at, has := merged[s.Incident.ID]; has {
				verdict.Issues[at], s.Issue = verdict.Issues[at].with(s.Fault), at
				return
			}
			merged[s.Incident.ID] = len(verdict.Issues)
		}
		s.Issue = len(verdict.Issues)
		verdict.Issues = append(verdict.Issues, s.Fault)
	}
	for i, issue := range issues {
		at := -1 // a known part of an issue that is new
		if len(fresh[i]) == 0 {
			at = len(verdict.Issues)
			verdict.Issues = append(verdict.Issues, issue)
		}
		for _, s := range known[i] {
			s.Issue = at
		}
		for _, s := range fresh[i] {
			assign(s)
		}
	}
	for _, s := range fresh[-1] {
		assign(s)
	}
	return verdict
}

// byIssue returns the known and the new sightings by the index of their issue.
func (r *Recognition) byIssue() (known, fresh map[int][]*Sighting) {
	known, fresh = map[int][]*Sighting{}, map[int][]*Sighting{}
	for i := range r.Known {
		known[r.Known[i].Issue] = append(known[r.Known[i].Issue], &r.Known[i].Sighting)
	}
	for i := range r.New {
		fresh[r.New[i].Issue] = append(fresh[r.New[i].Issue], &r.New[i])
	}
	return known, fresh
}

// with returns one issue for i and other, which belong to one incident.
func (i Issue) with(other Issue) Issue {
	i.Summary, i.Services = i.Summary+"; "+other.Summary, MergeServices(i.Services, other.Services)
	i.Kind, i.RecommendedTier = cmp.Or(i.Kind, other.Kind), max(i.RecommendedTier, other.RecommendedTier)
	if MoreSevere(other.Severity, i.Severity) {
		i.Severity = other.Severity
	}
	return i
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
	case c.asked():
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
