package escalation

import (
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

// Sighting is one fault that a session has found, with the incident to which the fault belongs.
type Sighting struct {
	Fault Issue
	// Issue is the index of the fault in the verdict's issues; -1 if the verdict has no issues or the fault is not
	// among them.
	Issue int
	// Incident is the matching incident; nil if the fault is new. A resolved incident means that the fault has come
	// back, unless Overtaken is set.
	Incident *Incident
	// Overtaken reports that the incident was resolved while the session ran. The session may have seen the fault
	// before that, so it says nothing about the incident.
	Overtaken bool
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

// severityOf returns the severity of a fault of services in a verdict without issues. If services is empty, all checks
// count.
func (v *Verdict) severityOf(services []string) Severity {
	if slices.ContainsFunc(v.Checks, func(check CheckResult) bool {
		return check.Status == CheckDown && (len(services) == 0 || HasService(services, check.Service))
	}) {
		return SeverityCritical
	}
	return SeverityWarning
}

// Worsens reports whether the sighting is the first since the given time that finds the incident worse. If so, a chain
// that met the incident at that time does not know yet that it is worse.
func (s *Sighting) Worsens(since time.Time) bool {
	return s.News == IncidentWorse && !s.Incident.WorseAt.After(since)
}

// Covered reports whether the incident of s includes all services of the fault.
func (s *Sighting) Covered() bool {
	return s.Incident.IsFailedLook() || len(s.Fault.Services) == 0 ||
		containsServices(s.Incident.Services, s.Fault.Services)
}
