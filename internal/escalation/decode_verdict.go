package escalation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrInvalidVerdict is wrapped by all errors of DecodeVerdict.
var ErrInvalidVerdict = errors.New("invalid verdict")

// maxVerdictBytes limits the JSON of a verdict, so that all verdicts of a chain together stay well below Temporal's
// limit for one payload (2 MB).
const maxVerdictBytes = 64 << 10

// DecodeVerdict reads an agent's verdict: one JSON object that conforms to VerdictSchema. Errors wrap ErrInvalidVerdict
// and use words that the agent can act on. If the JSON can be decoded, the error lists every problem.
func DecodeVerdict(raw []byte) (Verdict, error) {
	verdict, err := DecodeOutput(raw, maxVerdictBytes, ErrInvalidVerdict, (*Verdict).problems)
	if err != nil {
		return Verdict{}, err
	}
	verdict.spellKinds()
	// Check the length again, because encoding can make the document longer. Go encodes each of <, > and & as six
	// bytes.
	if encoded, err := json.Marshal(verdict); err != nil || len(encoded) > maxVerdictBytes {
		return Verdict{}, fmt.Errorf("%w: %d bytes as JSON, and at most %d are allowed", ErrInvalidVerdict,
			len(encoded), maxVerdictBytes)
	}
	return verdict, nil
}

// problems lists the defects of v in the order of the fields of Verdict.
func (v *Verdict) problems() []string {
	var found problemList
	must := found.must
	must(knownVerdictStatus(v.Status), "status is %q, and must be healthy, resolved, escalate, needs_human or failed",
		v.Status)
	must(!blank(v.Summary), "summary is empty")
	if err := CheckServices(v.Services); err != nil {
		must(false, "services_affected: %s", err)
	}
	// An escalation requires services, because the admission of the next tier looks up cooldowns and limits by service.
	must(v.Status != VerdictEscalate || len(v.Services) > 0,
		"services_affected is empty, and status escalate needs at least one service")
	must(len(v.Kind) <= maxKind, kindProblem, "kind", maxKind)
	found = append(found, checkProblems(v.Checks)...)
	must(v.RecommendedTier == 0 || v.RecommendedTier.Valid(),
		"recommended_tier is %d, and must be 1, 2 or 3, or 0 to leave it open", int(v.RecommendedTier))
	must(len(v.Issues) <= MaxIssues, "issues has %d entries, and at most %d are allowed", len(v.Issues), MaxIssues)
	for i, issue := range v.Issues {
		must(!blank(issue.Summary), "issues[%d].summary is empty", i)
		must(len(issue.Kind) <= maxKind, kindProblem, fmt.Sprintf("issues[%d].kind", i), maxKind)
		must(len(issue.Services) > 0, "issues[%d].services is empty", i)
		if err := CheckServices(issue.Services); err != nil {
			must(false, "issues[%d].services: %s", i, err)
		}
		must(knownSeverity(issue.Severity), "issues[%d].severity is %q, and must be info, warning or critical", i,
			issue.Severity)
		must(issue.RecommendedTier == 0 || issue.RecommendedTier.Valid(),
			"issues[%d].recommended_tier is %d, and must be 1, 2 or 3, or 0 to leave it open", i,
			int(issue.RecommendedTier))
	}
	found = append(found, knownProblems(v.Known)...)
	found = append(found, memoryProblems(v.Memories)...)
	return append(found, actionProblems(v.Actions)...)
}

const (
	kindProblem = "%s has more than %d bytes, and must be a short word such as down, disk_full or certificate, or " +
		"absent"
	// maxKind limits the kind of a fault, in bytes.
	maxKind = 40
	// maxNote limits the note on an incident, in characters.
	maxNote = 1_000
)

// notKind matches characters that the kind of a fault must not contain.
var notKind = regexp.MustCompile(`[^a-z0-9]+`)

// canonicalKind returns a kind in its canonical spelling. For example, "Disk full" becomes disk_full. KindLookFailed
// becomes "", because it is not for verdicts.
func canonicalKind(kind string) string {
	kind = strings.Trim(notKind.ReplaceAllString(strings.ToLower(kind), "_"), "_")
	if kind == KindLookFailed {
		return ""
	}
	return kind
}

// spellKinds replaces the kinds of faults in v by their canonical spelling.
func (v *Verdict) spellKinds() {
	v.Kind = canonicalKind(v.Kind)
	for i := range v.Issues {
		v.Issues[i].Kind = canonicalKind(v.Issues[i].Kind)
	}
}

// knownProblems lists the defects of known, the verdict's entries about known incidents.
func knownProblems(known []KnownIncident) []string {
	var found problemList
	found.must(len(known) <= MaxKnownIncidents, "known_incidents has %d entries, and at most %d are allowed",
		len(known), MaxKnownIncidents)
	for i, one := range known {
		found.must(!blank(one.ID) && len(one.ID) <= maxKind, "known_incidents[%d].id is empty or longer than %d bytes",
			i, maxKind)
		found.must(knownNews(one.Status), "known_incidents[%d].status is %q, and must be unchanged, worse or healed",
			i, one.Status)
		found.must(utf8.RuneCountInString(one.Note) <= maxNote, "known_incidents[%d].note has more than %d characters",
			i, maxNote)
	}
	return found
}

// memoryProblems lists the defects in the form of proposed memories.
func memoryProblems(memories []MemoryProposal) []string {
	var found problemList
	found.must(len(memories) <= MaxMemories, "memories has %d entries, and at most %d are allowed", len(memories),
		MaxMemories)
	for i, one := range memories {
		found.must(knownMemoryKind(one.Kind),
			"memories[%d].kind is %q, and must be correction, discovery or remediation", i, one.Kind)
		problem := nameProblem(one.Service)
		found.must(problem == "", "memories[%d].service has %s", i, problem)
		found.must(!blank(one.Subject) && utf8.RuneCountInString(one.Subject) <= MaxMemorySubject,
			"memories[%d].subject is empty or has more than %d characters", i, MaxMemorySubject)
		found.must(!blank(one.Text) && utf8.RuneCountInString(one.Text) <= MaxMemoryText,
			"memories[%d].text is empty or has more than %d characters", i, MaxMemoryText)
	}
	return found
}

// checkProblems lists the defects of the checks in a verdict or handoff.
func checkProblems(checks []CheckResult) []string {
	var found problemList
	for i, check := range checks {
		found.must(!blank(check.Service), "check_results[%d].service is empty", i)
		found.must(!blank(check.CheckType), "check_results[%d].check_type is empty", i)
		found.must(knownCheckStatus(check.Status),
			"check_results[%d].status is %q, and must be healthy, degraded or down", i, check.Status)
		found.must(check.ResponseTimeMS >= 0, "check_results[%d].response_time_ms is negative", i)
	}
	return found
}

// actionProblems lists the defects of the actions in a verdict or handoff. An action needs a valid service name,
// because the ledger stores the name and cooldowns use it.
func actionProblems(actions []Action) []string {
	var found problemList
	for i, action := range actions {
		found.must(knownActionKind(action.Kind), "actions[%d].kind is %q, and must be restart, redeployment or other",
			i, action.Kind)
		problem := nameProblem(action.Service)
		found.must(problem == "", "actions[%d].service has %s", i, problem)
	}
	return found
}

// problemList collects the defects of a document.
type problemList []string

func (l *problemList) must(ok bool, format string, args ...any) {
	if !ok {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

func knownVerdictStatus(s VerdictStatus) bool {
	switch s {
	case VerdictHealthy, VerdictResolved, VerdictEscalate, VerdictNeedsHuman, VerdictFailed:
		return true
	default:
		return false
	}
}

func knownCheckStatus(s CheckStatus) bool {
	switch s {
	case CheckHealthy, CheckDegraded, CheckDown:
		return true
	default:
		return false
	}
}

func knownSeverity(s Severity) bool {
	switch s {
	case SeverityInfo, SeverityWarning, SeverityCritical:
		return true
	default:
		return false
	}
}

func knownNews(n IncidentNews) bool {
	switch n {
	case IncidentUnchanged, IncidentWorse, IncidentGone:
		return true
	default:
		return false
	}
}

func knownMemoryKind(k MemoryKind) bool {
	switch k {
	case MemoryCorrection, MemoryDiscovery, MemoryRemediation:
		return true
	default:
		return false
	}
}

func knownActionKind(k ActionKind) bool {
	switch k {
	case ActionRestart, ActionRedeployment, ActionOther:
		return true
	default:
		return false
	}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
