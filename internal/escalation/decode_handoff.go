package escalation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrInvalidHandoff is wrapped by all errors of DecodeHandoff.
var ErrInvalidHandoff = errors.New("invalid handoff")

// MaxHandoffBytes limits the JSON of a handoff. The limit leaves room for parts that Fit drops later, and is well below
// Temporal's limit for one payload (2 MB).
const MaxHandoffBytes = 256 << 10

// handoffFile is the document that an agent writes. Required fields are pointers, so that an absent field differs from
// an empty field. The document's cooldowns are ignored, because only the supervisor sets cooldowns.
type handoffFile struct {
	SchemaVersion   *int            `json:"schema_version"`
	FromTier        Tier            `json:"from_tier"`
	RecommendedTier *Tier           `json:"recommended_tier"`
	Summary         string          `json:"summary"`
	Services        []string        `json:"services_affected"`
	Checks          []CheckResult   `json:"check_results"`
	Findings        string          `json:"investigation_findings"`
	Remediation     string          `json:"remediation_attempted"`
	Actions         []Action        `json:"actions"`
	Cooldowns       json.RawMessage `json:"cooldown_state"`
}

// DecodeHandoff reads the handoff of an agent: one JSON object of schema version 1. The result names the agent's tier
// (from) and recommends the following tier (next), even if the agent recommends another tier. The result has no
// cooldowns, because only the supervisor knows them. Errors wrap ErrInvalidHandoff. If the JSON can be decoded, the
// error lists every problem, but only the first unknown field.
func DecodeHandoff(raw []byte, from, next Tier) (Handoff, error) {
	if len(raw) > MaxHandoffBytes {
		return Handoff{}, invalidHandoff("more than %d bytes", MaxHandoffBytes)
	}
	var versioned struct {
		SchemaVersion json.RawMessage `json:"schema_version"`
	}
	if json.Unmarshal(raw, &versioned) == nil && versioned.SchemaVersion != nil &&
		string(versioned.SchemaVersion) != fmt.Sprint(HandoffVersion) {
		return Handoff{}, invalidHandoff("schema_version is %s, and this program reads %d",
			cut(string(versioned.SchemaVersion), longestName), HandoffVersion)
	}
	var file handoffFile
	unknown, err := decodeObject(raw, &file)
	if err != nil {
		return Handoff{}, invalidHandoff("%s", err)
	}
	handoff := file.handoff(from, next)
	if problems := slices.Concat(unknown, file.problems(handoff)); len(problems) > 0 {
		return Handoff{}, invalidHandoff("%s", strings.Join(problems, "; "))
	}
	// Check the length again, because encoding can make the document longer. Go encodes each of <, > and & as six
	// bytes.
	if encoded, err := json.Marshal(handoff); err != nil || len(encoded) > MaxHandoffBytes {
		return Handoff{}, invalidHandoff("more than %d bytes as JSON", MaxHandoffBytes)
	}
	return handoff, nil
}

func invalidHandoff(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidHandoff, fmt.Sprintf(format, args...))
}

// decodeObject reads one JSON object into file. If the object has fields that handoffFile lacks, unknown names the
// first of these fields.
func decodeObject(raw []byte, file *handoffFile) (unknown []string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(file); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows after the JSON object")
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&handoffFile{}); err != nil {
		unknown = append(unknown, strings.TrimPrefix(err.Error(), "json: "))
	}
	return unknown, nil
}

func (f handoffFile) handoff(from, next Tier) Handoff {
	return Handoff{
		SchemaVersion: HandoffVersion, FromTier: from, RecommendedTier: next,
		Summary: f.Summary, Services: f.Services, Checks: f.Checks,
		Findings: f.Findings, Remediation: f.Remediation, Actions: f.Actions,
		Cooldowns: NewCooldownState(nil),
	}
}

// problems lists the defects of f. The argument handoff is the handoff that was made from f.
func (f handoffFile) problems(handoff Handoff) []string {
	var absent []string
	if f.SchemaVersion == nil {
		absent = append(absent, "schema_version")
	}
	if f.RecommendedTier == nil {
		absent = append(absent, "recommended_tier")
	}
	absent = append(absent, handoff.missing()...)
	if !bytes.HasPrefix(f.Cooldowns, []byte("{")) {
		absent = append(absent, "cooldown_state")
	}
	var found []string
	for _, field := range absent {
		found = append(found, field+" is missing or empty")
	}
	if f.RecommendedTier != nil && !f.RecommendedTier.Valid() {
		found = append(found, fmt.Sprintf("recommended_tier is %d, and must be 1, 2 or 3", int(*f.RecommendedTier)))
	}
	if err := CheckServices(f.Services); err != nil {
		found = append(found, fmt.Sprintf("services_affected: %s", err))
	}
	return slices.Concat(found, checkProblems(f.Checks), actionProblems(f.Actions))
}
