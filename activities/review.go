package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/prompts"
)

// RunReviewInput describes one review.
type RunReviewInput struct {
	ChainID    string `json:"chain_id"`
	FirstRunID string `json:"first_run_id,omitempty"`
	SessionID  string `json:"session_id"`
	// Policy limits the reviewer's session.
	Policy escalation.Policy `json:"policy"`
	// Directory is the directory of the chain, without the change; empty for the default one.
	Directory string `json:"directory,omitempty"`
	Change    Change `json:"change"`
	// Task says what the change is for; nil if it belongs to no plan.
	Task *PlanTask `json:"task,omitempty"`
	// ForPerson lists why a person must look at the change.
	ForPerson []string `json:"for_person,omitempty"`
	// Problem describes the finding of the tier before the author. Request is the operator's request, and Issue the
	// only problem of the chain. Each can be empty. What the author said is not among them.
	Problem  string   `json:"problem,omitempty"`
	Request  string   `json:"request,omitempty"`
	Services []string `json:"services,omitempty"`
	// Before holds the findings of the previous review that are open, and Accepted those that people have accepted.
	Before   []review.Finding `json:"before,omitempty"`
	Accepted []review.Finding `json:"accepted,omitempty"`
	// Continues is the conversation of an interrupted review that this one continues; empty for a new conversation.
	// Guidance is what a person has said to the reviewer at a gate; it can be empty.
	Continues string `json:"continues,omitempty"`
	Guidance  string `json:"guidance,omitempty"`
	// BudgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in the policy.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// RunReviewResult is the result of RunReview.
type RunReviewResult struct {
	Report escalation.Report `json:"report"`
	// Verdict is nil if the reviewer gave no valid one. Problem then says why.
	Verdict *review.Verdict `json:"verdict,omitempty"`
	Problem string          `json:"problem,omitempty"`
	// EndedAt is the end of the session by Temporal's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// RunReview lets an agent review a change, with the permissions of TierObserve: in a new conversation, or in that of an
// interrupted review. If the verdict is missing or invalid, RunReview asks for it once more. A review without a valid
// verdict is a result and not an error. The errors are the same as those of RunTier.
func (t *Tiers) RunReview(ctx context.Context, input RunReviewInput) (RunReviewResult, error) {
	var verdict *review.Verdict
	r := t.reviewer(input)
	r.decode = func(output json.RawMessage) error {
		decoded, err := review.DecodeVerdict(output)
		if err != nil {
			return err
		}
		if verdict != nil { // the reviewer was only asked for the answers that were missing
			decoded = decoded.Completes(*verdict)
		}
		verdict = &decoded // also if it answers for too few findings: these stay open
		return decoded.Unanswered(input.Before)
	}
	session, err := t.runSession(ctx, r)
	if err != nil {
		return RunReviewResult{}, err
	}
	result := RunReviewResult{Report: session.Report, Verdict: verdict, EndedAt: session.at}
	if verdict == nil {
		result.Problem = session.why(r)
	} else {
		result.Report.Verdict = recorded(*verdict)
	}
	return result, nil
}

// recorded returns a reviewer's verdict in the form of the records.
func recorded(verdict review.Verdict) *escalation.Verdict {
	as := &escalation.Verdict{Status: escalation.VerdictStatus(verdict.Status), Summary: verdict.Summary}
	for _, finding := range verdict.Findings {
		as.Findings += finding.Describe() + "\n"
	}
	return as
}

// reviewer returns the role of a reviewer, without its decode.
func (t *Tiers) reviewer(input RunReviewInput) role {
	run := AgentRun{
		ChainID: input.ChainID, FirstRunID: input.FirstRunID, Tier: escalation.TierObserve, DryRun: input.Policy.DryRun,
		Policy: input.Policy.For(escalation.TierObserve), SessionID: input.SessionID, Directory: input.Directory,
		Resume: input.Continues, Schema: review.Schema,
	}
	if change := input.Change; change.Fork != "" { // otherwise it contains a secret
		run.Shown = &Shown{Checkpoint: change.Checkpoint(), Describe: t.Prompts.Reviewed}
	}
	return role{
		name: "the review", purpose: escalation.PurposeReview, heartbeat: input.Policy.HeartbeatInterval(),
		budgetUSD: input.BudgetUSD, run: run, output: "verdict", repair: t.Prompts.ReviewRepair,
		prompt: func(context.Context, *prompts.Interruption) (string, error) { return t.reviewPrompt(input) },
		goOn: func(_ context.Context, cutOff prompts.Interruption) (string, error) {
			cutOff.DryRun = true // a reviewer never changes anything
			return t.Prompts.Interrupted(cutOff)
		},
	}
}

// reviewPrompt returns the prompt of a reviewer.
func (t *Tiers) reviewPrompt(input RunReviewInput) (string, error) {
	change := input.Change
	if input.Continues != "" {
		return t.Prompts.ReviewContinued(change.Commit, input.Guidance)
	}
	of := prompts.Review{
		Branch: change.Branch, Base: change.Base, Commit: change.Commit, Message: change.Message, Files: change.Files,
		Patch: change.Patch, Since: change.Since,
		ForPerson: input.ForPerson, CheckOutput: change.CheckOutput, Problem: input.Problem, Request: input.Request,
		Services: input.Services, Guidance: input.Guidance, Brief: t.permissions(escalation.TierObserve, false),
	}
	if task := input.Task; task != nil {
		of.Plan = &prompts.ReviewPlan{File: task.File, Amend: task.Amend, Phase: task.Phase}
	}
	for _, preview := range change.Previews {
		of.Previews = append(of.Previews, prompts.ReviewPreview{Command: preview.Command, Output: preview.Output})
	}
	for _, finding := range input.Before {
		of.Before = append(of.Before, finding.Whole())
	}
	for _, finding := range input.Accepted {
		of.Accepted = append(of.Accepted, finding.Describe())
	}
	return t.Prompts.Review(of)
}
