package review

import (
	_ "embed" // for Schema
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Schema is the JSON schema of Verdict, as passed to the CLI. DecodeVerdict also checks rules that a schema cannot
// express, such as the evidence of each finding.
//
//go:embed schema.json
var Schema string

// Verdict is the structured output of a reviewer.
type Verdict struct {
	// Status is Ready, ReadyWithCorrections or NotReady.
	Status Status `json:"status"`
	// Summary describes in a few sentences the change and the reviewer's opinion.
	Summary string `json:"summary"`
	// Answers says of each finding that was open before the review what became of it. Findings are new ones.
	Answers  []Answer  `json:"answers,omitempty"`
	Findings []Finding `json:"findings"`
}

// Answer is a reviewer's answer for a finding that was open before its review.
type Answer struct {
	// Number is the number of the finding.
	Number int         `json:"number"`
	Now    Disposition `json:"now"`
	// Priority is the priority that the finding has for the reviewer now; empty if it has not changed.
	Priority Priority `json:"priority,omitempty"`
	// Note says where the problem still is, why it was none, or how one sees that it is corrected.
	Note string `json:"note,omitempty"`
}

// Disposition is the result of a review for a finding that was open before it.
type Disposition string

// The dispositions.
const (
	Fixed      Disposition = "fixed" // it is corrected
	StillThere Disposition = "open"  // it is still there
	Wrong      Disposition = "wrong" // it was no problem
)

// Status is what a reviewer concludes.
type Status string

// The conclusions.
const (
	Ready                Status = "ready"                  // nothing has to change
	ReadyWithCorrections Status = "ready_with_corrections" // small and clear corrections are due
	NotReady             Status = "not_ready"              // the change must not be used as it is
)

// Finding is one problem that a reviewer has found. Its evidence is a file with a line, or an output.
type Finding struct {
	// Number identifies the finding within its chain or plan. The rules give it; it is 0 in a verdict.
	Number int `json:"number,omitempty"`
	// Reviews counts the reviews since the latest decision of a person after which the finding was open.
	Reviews int `json:"reviews,omitempty"`
	// Note is the note of the latest review on a finding that was open before; empty without one.
	Note string `json:"note,omitempty"`
	// Fingerprint is a short name of the problem, for people. It identifies nothing.
	Fingerprint string   `json:"fingerprint"`
	Priority    Priority `json:"priority"`
	Action      Action   `json:"action"`
	// File is the path in the repository, and Line the line in the file after the change; empty without such evidence.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Output is the output that shows the problem; empty without such evidence.
	Output string `json:"output,omitempty"`
	Text   string `json:"text"`
}

// Priority ranks findings.
type Priority string

// The priorities.
const (
	P0 Priority = "P0" // breaks something or loses data
	P1 Priority = "P1" // wrong, and must be corrected first
	P2 Priority = "P2" // could be better; never blocks
)

// Action says who can correct a finding.
type Action string

// The actions.
const (
	AutoFix       Action = "auto_fix"       // the author
	HumanRequired Action = "human_required" // a person must decide
)

// ErrInvalidVerdict is wrapped by all errors of DecodeVerdict.
var ErrInvalidVerdict = errors.New("invalid verdict")

const (
	maxFindings = 20
	// maxAnswers limits the answers. The findings of several reviews can be open.
	maxAnswers = 200
	// maxText limits each text of a verdict, in characters.
	maxText = 2_000
	// maxVerdictBytes limits the JSON of a verdict. Temporal stores it in the chain's history.
	maxVerdictBytes = 64 << 10
)

// DecodeVerdict reads the structured output of a reviewer. Errors wrap ErrInvalidVerdict and use words that the model
// can act on.
func DecodeVerdict(raw []byte) (Verdict, error) {
	return escalation.DecodeOutput(raw, maxVerdictBytes, ErrInvalidVerdict, (*Verdict).problems)
}

// fingerprintPattern matches the name of a problem.
var fingerprintPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,59}$`)

// problems lists the defects of v.
func (v Verdict) problems() []string {
	var found []string
	must := func(holds bool, format string, args ...any) {
		if !holds {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	must(slices.Contains(statuses(), v.Status), "status is %q, and must be ready, ready_with_corrections or not_ready",
		plaintext.Cut(string(v.Status), 60))
	must(strings.TrimSpace(v.Summary) != "", "summary is empty")
	must(utf8.RuneCountInString(v.Summary) <= maxText, "summary has more than %d characters", maxText)
	must(v.Findings != nil, "findings is missing; it is an empty list if there is nothing to say")
	must(len(v.Findings) <= maxFindings, "findings has %d entries, and at most %d are allowed", len(v.Findings),
		maxFindings)
	for i, finding := range v.Findings {
		for _, problem := range finding.problems() {
			must(false, "findings[%d].%s", i, problem)
		}
	}
	must(len(v.Answers) <= maxAnswers, "answers has %d entries, and at most %d are allowed", len(v.Answers), maxAnswers)
	seen := map[int]bool{}
	for i, answer := range v.Answers {
		must(!seen[answer.Number], "answers[%d].number is there twice", i)
		seen[answer.Number] = true
		must(answer.Now == Fixed || answer.Now == StillThere ||
			answer.Now == Wrong, "answers[%d].now must be fixed, open or wrong", i)
		must(answer.Priority == "" || slices.Contains(priorities(), answer.Priority),
			"answers[%d].priority must be P0, P1 or P2", i)
		must(utf8.RuneCountInString(answer.Note) <= maxText, "answers[%d].note has more than %d characters", i, maxText)
		must(answer.Now == Fixed || strings.TrimSpace(answer.Note) != "",
			"answers[%d].note is empty: say where it still is, or why it was wrong", i)
	}
	return found
}

// about returns what the verdict says of an open finding; nil if it says nothing.
func (v Verdict) about(number int) *Answer {
	at := slices.IndexFunc(v.Answers, func(answer Answer) bool { return answer.Number == number })
	if at < 0 {
		return nil
	}
	return &v.Answers[at]
}

// Completes returns an earlier verdict of the same review, completed by v with the answers and findings that it lacks.
// It takes nothing back: the turn that asks again looks at nothing. The status is the more severe one.
func (v Verdict) Completes(earlier Verdict) Verdict {
	findings, answers := slices.Clone(earlier.Findings), slices.Clone(earlier.Answers)
	for _, finding := range v.Findings {
		if len(findings) < maxFindings && !slices.ContainsFunc(findings, finding.same) {
			findings = append(findings, finding)
		}
	}
	for _, answer := range v.Answers {
		if earlier.about(answer.Number) == nil {
			answers = append(answers, answer)
		}
	}
	v.Findings, v.Answers = findings, answers
	order := statuses()
	v.Status = order[max(slices.Index(order, v.Status), slices.Index(order, earlier.Status))]
	return v
}

// Unanswered returns an error that names the open findings of which the verdict says nothing. It wraps
// ErrInvalidVerdict.
func (v Verdict) Unanswered(open []Finding) error {
	var missing []string
	for _, finding := range open {
		if v.about(finding.Number) == nil {
			missing = append(missing, fmt.Sprint(finding.Number))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: answers says nothing about the open findings %s: say of each whether it is fixed, open or "+
		"wrong",
		ErrInvalidVerdict, strings.Join(missing, ", "))
}

// priorities lists the priorities.
func priorities() []Priority { return []Priority{P0, P1, P2} }

// statuses lists what a reviewer may conclude.
func statuses() []Status { return []Status{Ready, ReadyWithCorrections, NotReady} }

// problems lists the defects of f. Each begins with the name of a field.
func (f Finding) problems() []string {
	var found []string
	must := func(holds bool, problem string) {
		if !holds {
			found = append(found, problem)
		}
	}
	must(fingerprintPattern.MatchString(f.Fingerprint), "fingerprint must be a short name such as wrong-port-web")
	must(slices.Contains(priorities(), f.Priority), "priority must be P0, P1 or P2")
	must(f.Action == AutoFix || f.Action == HumanRequired, "action must be auto_fix or human_required")
	must(strings.TrimSpace(f.Text) != "" && utf8.RuneCountInString(f.Text) <= maxText, "text is empty or too long")
	must(f.Line >= 0, "line is negative")
	must(len(f.File) <= 500 && utf8.RuneCountInString(f.Output) <= maxText, "file or output is too long")
	must(f.evidence() != "", "file and line, or output, must show the problem")
	return found
}

// evidence returns the place or the output that shows the problem; empty if the finding has neither.
func (f Finding) evidence() string {
	switch {
	case strings.TrimSpace(f.Output) != "":
		return strings.TrimSpace(f.Output)
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return ""
	}
}

// same reports whether two findings have the same text and output at the same place.
func (f Finding) same(other Finding) bool {
	return plaintext.Compact(f.Text) == plaintext.Compact(other.Text) && f.File == other.File && f.Line == other.Line &&
		f.Output == other.Output
}

// Describe describes the finding in one line. The line contains words of an agent.
func (f Finding) Describe() string {
	text := f.describe()
	if f.Number > 0 {
		text = fmt.Sprintf("finding %d: %s", f.Number, text)
	}
	if f.Note != "" {
		text += " (the latest review: " + f.Note + ")"
	}
	return plaintext.Compact(text)
}

// Whole describes the finding with its output. The text contains words of an agent.
func (f Finding) Whole() string {
	if output := strings.TrimSpace(f.Output); output != "" {
		return f.Describe() + "\n" + output
	}
	return f.Describe()
}

func (f Finding) describe() string {
	where := f.File
	if where != "" && f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if where == "" {
		where = "output"
	}
	if f.Action == HumanRequired {
		where += ", for a person"
	}
	return fmt.Sprintf("%s %s (%s): %s", f.Priority, f.Fingerprint, where, f.Text)
}

// blocks reports whether a new finding keeps a change from being approved. What a person must decide does, whatever its
// priority is.
func (f Finding) blocks() bool { return f.Priority.blocks() || f.Action == HumanRequired }

// blocks reports whether the priority keeps a change from being approved.
func (p Priority) blocks() bool { return p != P2 }
