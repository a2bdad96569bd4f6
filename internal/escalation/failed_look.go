package escalation

import (
	"fmt"
	"slices"
	"strings"
)

// KindLookFailed is the kind of an incident that is no fault of a service: a look failed (see Session.LookFailed). The
// services of such an incident are those at which the look was to look; none means all services. Only looks that fail
// belong to such an incident, and only looks with a result end it. Agents do not learn of it, and no verdict has this
// kind.
const KindLookFailed = "look_failed"

// LookFailed reports whether the session is a look that ended without a result, so that a person must know. It then has
// no verdict, or its verdict says that it failed and names no service. A cancelled look does not count, and neither
// does a look that could not load a conversation, nor one that waits for the limit of the account.
func (s *Session) LookFailed() bool {
	if s.Tier != TierObserve || s.Purpose != PurposeTier || s.hasResult() || s.Ending == EndingLimited {
		return false
	}
	switch s.Status {
	case SessionCompleted, SessionFailed, SessionTimedOut, SessionBudgetExhausted:
		return true
	case SessionRunning, SessionResumeFailed, SessionTranscriptLost, SessionStopped:
		return false
	}
	return false
}

// hasResult reports whether the session's verdict says anything about services.
func (s *Session) hasResult() bool {
	return s.Verdict != nil && (s.Verdict.Status != VerdictFailed || s.Verdict.FindsFault())
}

// lookFault returns the fault that a failed look is itself.
func (s *Session) lookFault() Issue {
	summary := withoutVerdict(*s)
	if s.Verdict != nil {
		summary = fmt.Sprintf("%s could not do its work: %s", s.Tier, s.Verdict.Summary)
	}
	return Issue{Summary: summary, Services: s.Scope, Severity: SeverityWarning, Kind: KindLookFailed}
}

// IsFailedLook reports whether the kind of the incident is KindLookFailed.
func (i *Incident) IsFailedLook() bool { return i.Kind == KindLookFailed }

// isFailedLookOf reports whether the incident is a failed look that includes fault, which is a failed look, too. A
// resolved incident comes back only if its services are the same.
func (i *Incident) isFailedLookOf(fault Issue) bool {
	same := i.Kind == fault.Kind && scopeCovers(i.Services, fault.Services)
	return same && (i.ResolvedAt.IsZero() || scopeCovers(fault.Services, i.Services))
}

// withoutFailedLooks returns those IDs of own that are no failed looks among incidents.
func withoutFailedLooks(incidents []Incident, own []string) []string {
	return slices.DeleteFunc(slices.Clone(own), func(id string) bool {
		return slices.ContainsFunc(incidents, func(incident Incident) bool {
			return incident.ID == id &&
				incident.IsFailedLook()
		})
	})
}

// healsLook reports whether the session is a look with a result that includes the services of incident, a failed look.
func (s *Session) healsLook(incident *Incident, own []string) bool {
	looks := s.Tier == TierObserve && (s.Purpose == PurposeTier || s.Purpose == PurposeContinuation)
	late := s.precedes(incident.LastSeenAt) && !slices.Contains(own, incident.ID)
	return looks && s.hasResult() && !late && scopeCovers(s.Scope, incident.Services)
}

// scopeCovers reports whether a look at scope includes a look at services. In both lists, none means all services.
func scopeCovers(scope, services []string) bool {
	return len(scope) == 0 || containsServices(scope, services)
}

// DescribeServices lists the services of an incident of this kind in words.
func DescribeServices(services []string, kind string) string {
	switch {
	case len(services) > 0:
		return strings.Join(services, ", ")
	case kind == KindLookFailed:
		return "all services"
	default:
		return "no service named"
	}
}
