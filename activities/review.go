package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

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
	// Problem describes the finding of the tier before the author. Request is the operator's request, and Issue the only problem of
	// the chain. Each can be empty. What the author said is not among them.
	Problem  string   `json:"problem,omitempty"`
	Request  string   `json:"request,omitempty"`
	Services []string `json:"services,omitempty"`
	// Before holds the findings of the previous review that are open, and Accepted those that people have accepted.
	Before   []review.Finding `json:"before,omitempty"`
	Accepted []review.Finding `json:"accepted,omitempty"`
	// Continues is the conversation of an interrupted review that this one continues; empty for a new conversation. Guidance is
	// what a person has said to the reviewer at a gate; it can be empty.
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
// interrupted review. If the verdict is missing or invalid, RunReview asks for it once more. A review without a valid verdict
// is a result and not an error. The errors are the same as those of RunTier.
func (t *Tiers) RunReview(ctx context.Context, input RunReviewInput) (RunReviewResult, error) {
	now := stopwatch(ctx)
	r := &reviewing{Tiers: t, input: input}
	report, err := t.supervise(ctx, input.SessionID, input.Policy.HeartbeatInterval(), escalation.PurposeReview, r.attempt)
	if err != nil {
		return RunReviewResult{}, err
	}
	result := RunReviewResult{Report: report.Report, Verdict: r.verdict, EndedAt: now()}
	switch {
	case r.verdict != nil:
		result.Report.Verdict = recorded(*r.verdict)
	case r.problem != nil:
		result.Problem = fmt.Sprintf("the reviewer gave no valid verdict, even when asked again: %s", r.problem)
	default:
		result.Problem = fmt.Sprintf("the review ended %s: %s", report.Status, report.Error)
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

// reviewing is one execution of RunReview.
type reviewing struct {
	*Tiers

	input RunReviewInput
	// verdict is the valid verdict; nil if there is none yet. problem says what is wrong with the latest one.
	verdict *review.Verdict
	problem error
}

// attempt runs the agent. If the previous attempt has a conversation, attempt continues that conversation.
func (r *reviewing) attempt(ctx context.Context, past TierProgress, beats *heartbeater) (AgentReport, error) {
	known, err := r.Agent.HasConversation(ctx, r.input.Directory, r.input.SessionID)
	if err != nil {
		return AgentReport{}, err
	}
	run := AgentRun{
		ChainID: r.input.ChainID, FirstRunID: r.input.FirstRunID, Tier: escalation.TierObserve, DryRun: r.input.Policy.DryRun,
		Policy: r.input.Policy.For(escalation.TierObserve), SessionID: r.input.SessionID, Directory: r.input.Directory,
		Schema: review.Schema, First: !startedBefore(ctx, known), Now: stopwatch(ctx),
	}
	run.Policy.BudgetUSD = budget(r.input.BudgetUSD, run.Policy)
	if change := r.input.Change; change.Fork != "" { // otherwise it contains a secret
		run.Shown = &Shown{Checkpoint: change.Checkpoint(), Describe: r.Prompts.Reviewed}
	}
	run.Resume = r.input.Continues
	if known {
		run.Resume = r.input.SessionID
	}
	run, left := run.after(past.Spent)
	if !left {
		return exhausted(past.Spent), nil
	}
	if known && past.Spent.Turns > 0 && activity.GetInfo(ctx).Attempt > 1 {
		run.Prompt, err = r.Prompts.Interrupted(prompts.Interruption{Calls: callsOf(past.InFlight), DryRun: true})
	} else {
		run.Prompt, err = r.prompt()
	}
	if err != nil {
		return AgentReport{}, fmt.Errorf("%w of a review: %w", errPrompt, err)
	}
	report, err := r.converse(ctx, run, beats)
	report.Interrupted = known
	return report, err
}

// prompt returns the prompt of the reviewer.
func (r *reviewing) prompt() (string, error) {
	change := r.input.Change
	if r.input.Continues != "" {
		return r.Prompts.ReviewContinued(change.Commit, r.input.Guidance)
	}
	of := prompts.Review{
		Branch: change.Branch, Base: change.Base, Commit: change.Commit, Message: change.Message, Files: change.Files,
		Patch: change.Patch, Since: change.Since,
		ForPerson: r.input.ForPerson, CheckOutput: change.CheckOutput, Problem: r.input.Problem, Request: r.input.Request,
		Services: r.input.Services, Guidance: r.input.Guidance, Brief: r.permissions(escalation.TierObserve, false),
	}
	if task := r.input.Task; task != nil {
		of.Plan = &prompts.ReviewPlan{File: task.File, Amend: task.Amend, Phase: task.Phase}
	}
	for _, preview := range change.Previews {
		of.Previews = append(of.Previews, prompts.ReviewPreview{Command: preview.Command, Output: preview.Output})
	}
	for _, finding := range r.input.Before {
		of.Before = append(of.Before, finding.Whole())
	}
	for _, finding := range r.input.Accepted {
		of.Accepted = append(of.Accepted, finding.Describe())
	}
	return r.Prompts.Review(of)
}

// converse runs the agent and decodes its verdict. If the verdict is missing or invalid, converse asks for it once more.
func (r *reviewing) converse(ctx context.Context, run AgentRun, beats *heartbeater) (AgentReport, error) {
	report, problem, err := r.askTwice(ctx, run, beats, asking{decode: r.decode, repair: r.Prompts.ReviewRepair})
	r.problem = problem
	return report, err
}

// decode keeps the verdict in the report. It returns an error if the verdict is missing or invalid.
func (r *reviewing) decode(report *AgentReport) error {
	if report.Output == nil {
		return errors.New("it ended without its structured verdict")
	}
	verdict, err := review.DecodeVerdict(report.Output)
	if err != nil {
		return err
	}
	if r.verdict != nil { // the reviewer was only asked for the answers that were missing
		verdict = verdict.Completes(*r.verdict)
	}
	r.verdict = &verdict // also if it answers for too few findings: these stay open
	return verdict.Unanswered(r.input.Before)
}
