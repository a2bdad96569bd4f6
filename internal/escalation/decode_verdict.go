package escalation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrInvalidVerdict is wrapped by every error of DecodeVerdict.
var ErrInvalidVerdict = errors.New("invalid verdict")

// maxVerdictBytes limits a verdict as JSON. All verdicts of a chain together stay well below Temporal's limit
// for one payload (2 MB).
const maxVerdictBytes = 64 << 10

// DecodeVerdict reads an agent's verdict: one JSON object that conforms to VerdictSchema. Errors wrap
// ErrInvalidVerdict and list every problem, in words that the agent can act on.
func DecodeVerdict(raw []byte) (Verdict, error) {
	if len(raw) > maxVerdictBytes {
		return Verdict{}, fmt.Errorf("%w: %d bytes, and at most %d are allowed", ErrInvalidVerdict, len(raw), maxVerdictBytes)
	}
	var verdict Verdict
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&verdict); err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", ErrInvalidVerdict, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Verdict{}, fmt.Errorf("%w: something follows after the JSON object", ErrInvalidVerdict)
	}
	if problems := verdict.problems(); len(problems) > 0 {
		return Verdict{}, fmt.Errorf("%w: %s", ErrInvalidVerdict, strings.Join(problems, "; "))
	}
	// The re-encoded document can be longer: Go writes each of <, > and & as six bytes.
	if encoded, err := json.Marshal(verdict); err != nil || len(encoded) > maxVerdictBytes {
		return Verdict{}, fmt.Errorf("%w: %d bytes as JSON, and at most %d are allowed", ErrInvalidVerdict, len(encoded), maxVerdictBytes)
	}
	return verdict, nil
}

// problems lists the defects of v in the order of its fields.
func (v Verdict) problems() []string {
	var found problemList
	must := found.must
	must(knownVerdictStatus(v.Status), "status is %q, and must be healthy, resolved, escalate, needs_human or failed", v.Status)
	must(!blank(v.Summary), "summary is empty")
	if err := CheckServices(v.Services); err != nil {
		must(false, "services_affected: %s", err)
	}
	// Admission looks up cooldowns and limits by service.
	must(v.Status != VerdictEscalate || len(v.Services) > 0, "services_affected is empty, and status escalate needs at least one service")
	found = append(found, checkProblems(v.Checks)...)
	must(v.RecommendedTier == 0 || v.RecommendedTier.Valid(),
		"recommended_tier is %d, and must be 1, 2 or 3, or 0 to leave it open", int(v.RecommendedTier))
	must(len(v.Issues) <= MaxIssues, "issues has %d entries, and at most %d are allowed", len(v.Issues), MaxIssues)
	for i, issue := range v.Issues {
		must(!blank(issue.Summary), "issues[%d].summary is empty", i)
		must(len(issue.Services) > 0, "issues[%d].services is empty", i)
		if err := CheckServices(issue.Services); err != nil {
			must(false, "issues[%d].services: %s", i, err)
		}
		must(knownSeverity(issue.Severity), "issues[%d].severity is %q, and must be info, warning or critical", i, issue.Severity)
		must(issue.RecommendedTier == 0 || issue.RecommendedTier.Valid(),
			"issues[%d].recommended_tier is %d, and must be 1, 2 or 3, or 0 to leave it open", i, int(issue.RecommendedTier))
	}
	return append(found, actionProblems(v.Actions)...)
}

// checkProblems lists the defects of the checks in a verdict or handoff.
func checkProblems(checks []CheckResult) []string {
	var found problemList
	for i, check := range checks {
		found.must(!blank(check.Service), "check_results[%d].service is empty", i)
		found.must(!blank(check.CheckType), "check_results[%d].check_type is empty", i)
		found.must(knownCheckStatus(check.Status), "check_results[%d].status is %q, and must be healthy, degraded or down", i, check.Status)
		found.must(check.ResponseTimeMS >= 0, "check_results[%d].response_time_ms is negative", i)
	}
	return found
}

// actionProblems lists the defects of the actions in a verdict or handoff. The ledger keeps their services, and
// cooldowns are looked up by these names.
func actionProblems(actions []Action) []string {
	var found problemList
	for i, action := range actions {
		found.must(knownActionKind(action.Kind), "actions[%d].kind is %q, and must be restart, redeployment or other", i, action.Kind)
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

func knownActionKind(k ActionKind) bool {
	switch k {
	case ActionRestart, ActionRedeployment, ActionOther:
		return true
	default:
		return false
	}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
