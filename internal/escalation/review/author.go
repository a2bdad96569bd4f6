package review

import (
	_ "embed" // for AuthorSchema
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// AuthorSchema is the JSON schema of Work, as passed to the CLI.
//
//go:embed author_schema.json
var AuthorSchema string

// Work is the structured output of an author. What the author has done is in its commits; Work only says how it ended.
type Work struct {
	// Status is Complete, NeedsHuman or WorkFailed.
	Status WorkStatus `json:"status"`
	// Summary describes in a few sentences what was done, or why it was not.
	Summary string `json:"summary"`
}

// WorkStatus is what an author concludes.
type WorkStatus string

// The conclusions.
const (
	WorkComplete   WorkStatus = "complete"    // the work is done and committed
	WorkNeedsHuman WorkStatus = "needs_human" // a person must decide something first
	WorkFailed     WorkStatus = "failed"      // it could not be done
)

// DecodeWork reads the structured output of an author. Errors wrap ErrInvalidVerdict and use words that the model can
// act on.
func DecodeWork(raw []byte) (Work, error) {
	return escalation.DecodeOutput(raw, maxVerdictBytes, ErrInvalidVerdict, (*Work).problems)
}

// problems lists the defects of w.
func (w Work) problems() []string {
	var found []string
	if !slices.Contains([]WorkStatus{WorkComplete, WorkNeedsHuman, WorkFailed}, w.Status) {
		found = append(found, "status is \""+plaintext.Cut(string(w.Status),
			60)+"\", and must be complete, needs_human or failed")
	}
	if strings.TrimSpace(w.Summary) == "" || utf8.RuneCountInString(w.Summary) > maxText {
		found = append(found, "summary is empty or too long")
	}
	return found
}
