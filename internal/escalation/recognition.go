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
func Recognize(session Session, incidents []Incident, look Look, at time.Time) Recognition {
	recognition := Recognition{At: at}
	for _, sighting := range session.Sightings(incidents, look.Own) {
		incident := sighting.Incident
		if incident == nil || !sighting.Covered() {
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

// Describe names the incident and the chain that takes care of it.
func (f *RecognizedFault) Describe() string {
	return fmt.Sprintf("%s is with chain %s, which %s", f.Incident.Describe(), f.Handler.ChainID, f.Handler.Describe())
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
