package plan

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// Input is the input of PlanReview and PhaseExecution. People write it as JSON. Only File is required.
type Input struct {
	// File is the path of the plan below the working directory, such as docs/plan.md. The file must be committed.
	File string `json:"file"`
	// Repository selects the working directory, as in ChainInput.
	Repository string `json:"repository,omitempty"`
	// Phases lists the numbers of the phases to carry out; empty for all that are not done. PlanReview has no phases.
	Phases []string `json:"phases,omitempty"`
	// Prompt holds the operator's request, in addition to the plan.
	Prompt string `json:"prompt,omitempty"`
	// BudgetUSD lowers the spending limit to this amount, in US dollars. If it is 0, the configured budget of a chain
	// applies.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Actor names the person or program that starts the workflow. It is only what the client says, unless Verified is
	// set.
	Actor string `json:"actor,omitempty"`
	// Verified reports that the person has logged in to the server of the pages under the name Actor.
	Verified bool `json:"verified,omitempty"`
	// Carried is the state that a workflow passes to its next run. An input from a client must not contain Carried.
	Carried *Carried `json:"carried,omitempty"`

	// problem is the error from decoding the JSON, as in ChainInput.
	problem error
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil. Validate
// returns the stored error.
func (in *Input) UnmarshalJSON(data []byte) error {
	type plain Input // has no UnmarshalJSON, which would call itself
	var decoded plain
	problem := parts.DecodeStrictly(data, &decoded)
	*in = Input(decoded)
	in.problem = problem
	return nil
}

// phaseNumber matches the number of a phase.
var phaseNumber = regexp.MustCompile(`^\d{1,5}(\.\d{1,5}){0,5}$`)

// maxPlanPath limits the path of a plan, in bytes.
const maxPlanPath = 500

// Validate returns the first error in the input, as one sentence. If the input is valid, it returns nil.
func (in Input) Validate() error {
	switch {
	case in.problem != nil:
		return in.problem
	case in.File == "":
		return errors.New("file is empty: name the plan, such as docs/plan.md")
	case len(in.File) > maxPlanPath || !plaintext.IsLine(in.File):
		return fmt.Errorf("file must be one line of at most %d bytes", maxPlanPath)
	case path.IsAbs(in.File) || path.Clean(in.File) != in.File || in.File == "." || in.File == ".." ||
		strings.HasPrefix(in.File, "../"):
		return fmt.Errorf("file %q must be a plain path below the working directory, such as docs/plan.md", in.File)
	case len(in.Repository) > parts.MaxRepositoryBytes || !plaintext.IsLine(in.Repository):
		return fmt.Errorf("repository %q is not the path of a directory", parts.Clip(in.Repository))
	case in.BudgetUSD < 0:
		return fmt.Errorf("budget_usd %v must not be negative", in.BudgetUSD)
	case len(in.Prompt) > parts.MaxPromptBytes:
		return fmt.Errorf("prompt has %d bytes, and at most %d are allowed", len(in.Prompt), parts.MaxPromptBytes)
	}
	for _, number := range in.Phases {
		if !phaseNumber.MatchString(number) {
			return fmt.Errorf("phases: %q is not the number of a phase, such as 2 or 2.1", parts.Clip(number))
		}
	}
	if in.Actor != "" {
		return escalation.CheckActor(in.Actor)
	}
	return nil
}

// Names that clients use. Both workflows also answer ChainQuery, GateQuery and ResolveGate, as a chain does.
const (
	// ReviewWorkflow is the workflow type of PlanReview.
	ReviewWorkflow = "PlanReview"
	// PhaseExecutionWorkflow is the workflow type of PhaseExecution.
	PhaseExecutionWorkflow = "PhaseExecution"
)
