package activities

import (
	"context"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/prompts"
)

// PlanTask says what an author or a reviewer has to do with a plan.
type PlanTask struct {
	// File is the path of the plan below the working directory, and Title its heading.
	File  string `json:"file"`
	Title string `json:"title,omitempty"`
	// Amend means that the plan itself is reviewed and amended. Otherwise Phase is carried out.
	Amend bool         `json:"amend,omitempty"`
	Phase review.Phase `json:"phase,omitzero"`
}

// RunAuthorInput describes one turn of an author.
type RunAuthorInput struct {
	ChainID    string          `json:"chain_id"`
	FirstRunID string          `json:"first_run_id,omitempty"`
	SessionID  string          `json:"session_id"`
	Tier       escalation.Tier `json:"tier"`
	// Policy limits the author's session.
	Policy escalation.Policy `json:"policy"`
	// Directory is the directory of the plan; empty for the default one.
	Directory string   `json:"directory,omitempty"`
	Task      PlanTask `json:"task"`
	// From is the commit on which the work is based. The result's Change is shown from there. At is the latest commit
	// of the work itself, which the worktree must have; zero before there is one.
	From Checkpoint `json:"from"`
	At   Checkpoint `json:"at,omitzero"`
	// Begins reports that no author has worked on the phase yet.
	Begins bool `json:"begins,omitempty"`
	// Request is the operator's request, and Guidance what a person has said at a gate.
	Request  string `json:"request,omitempty"`
	Guidance string `json:"guidance,omitempty"`
	// Refusal is the answer that the session before got at the same task, if the model refused; empty if not.
	Refusal string `json:"refusal,omitempty"`
	// Gate says in a sentence how the gate before the session was closed; empty if there was none.
	Gate string `json:"gate,omitempty"`
	// Correction lists what the author must correct; nil if it has committed nothing yet.
	Correction *Correction `json:"correction,omitempty"`
	// ParentSessionID is the conversation from which the author goes on; empty for a new one. Continues reports that a
	// person chose to continue that session, which was interrupted. InFlight holds its tool calls without a result.
	ParentSessionID string     `json:"parent_session_id,omitempty"`
	Continues       bool       `json:"continues,omitempty"`
	InFlight        []ToolCall `json:"in_flight,omitempty"`
	// Since is the commit that was reviewed before; empty if there is none.
	Since string `json:"since,omitempty"`
	// BudgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in the policy.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// RunAuthorResult is the result of RunAuthor.
type RunAuthorResult struct {
	Report escalation.Report `json:"report"`
	// Work is nil if the author gave no valid report. Problem then says why.
	Work    *review.Work `json:"work,omitempty"`
	Problem string       `json:"problem,omitempty"`
	// InFlight holds the latest tool calls without a result, at most maxInFlight.
	InFlight []ToolCall `json:"in_flight,omitempty"`
	// Change describes the author's commits since RunAuthorInput.From; nil if none are known.
	Change *Change `json:"change,omitempty"`
	// EndedAt is the end of the session by Temporal's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// RunAuthor lets an agent work on a plan in a worktree, and returns what it has committed. If its report is missing or
// invalid, RunAuthor asks for it once more. A turn without a valid report is a result and not an error. The errors are
// the same as those of RunTier.
func (t *Tiers) RunAuthor(ctx context.Context, input RunAuthorInput) (RunAuthorResult, error) {
	var work *review.Work
	r := t.author(input)
	r.decode = func(output json.RawMessage) error {
		decoded, err := review.DecodeWork(output)
		if err == nil {
			work = &decoded
		}
		return err
	}
	session, err := t.runSession(ctx, r)
	if err != nil {
		return RunAuthorResult{}, err
	}
	result := RunAuthorResult{
		Report: session.Report, Work: work, Change: session.Change, EndedAt: session.at,
		InFlight: session.latestCalls(),
	}
	if work == nil {
		result.Problem = session.why(r)
	} else {
		result.Report.Verdict = &escalation.Verdict{
			Status:  escalation.VerdictStatus(work.Status),
			Summary: work.Summary,
		}
	}
	return result, nil
}

// author returns the role of an author, without its decode.
func (t *Tiers) author(input RunAuthorInput) role {
	return role{
		name: "the author", purpose: escalation.PurposeAuthor, heartbeat: input.Policy.HeartbeatInterval(),
		budgetUSD: input.BudgetUSD,
		run: AgentRun{
			ChainID: input.ChainID, FirstRunID: input.FirstRunID, Tier: input.Tier,
			Policy: input.Policy.For(input.Tier), SessionID: input.SessionID, Directory: input.Directory,
			Resume: input.ParentSessionID, Schema: review.AuthorSchema, Repairs: true, Inspect: true,
			Since: input.Since, InWorktree: t.Prompts.Worktree, Limits: input.Policy.Cooldowns,
			Authoring: &Authoring{
				Plan: input.Task.File, From: input.From, Begins: input.Begins,
				Whole: input.Task.Amend,
			}, At: input.At, Carry: true, Interrupted: input.Continues,
		},
		output: "report", repair: t.Prompts.AuthorRepair,
		prompt: func(_ context.Context, cutOff *prompts.Interruption) (string, error) {
			return t.authorPrompt(input, cutOff)
		},
	}
}

// authorPrompt returns the prompt with which an author begins, or goes on in an earlier conversation.
func (t *Tiers) authorPrompt(in RunAuthorInput, cutOff *prompts.Interruption) (string, error) {
	if in.Continues {
		launch := prompts.Launch{
			Guidance: in.Guidance, Gate: in.Gate, CutOff: cutOff,
			Correction: in.Correction.prompt(),
		}
		return t.Prompts.Continued(launch, callsOf(in.InFlight))
	}
	of := prompts.Authoring{
		Plan: in.Task.File, Title: in.Task.Title, Amend: in.Task.Amend, Phase: in.Task.Phase, Request: in.Request,
		Guidance: in.Guidance, Correction: in.Correction.prompt(), CutOff: cutOff,
		Brief: t.permissions(in.Tier, false), Gate: in.Gate, Refusal: in.Refusal,
	}
	if in.ParentSessionID == "" {
		return t.Prompts.Author(of)
	}
	of.Request = "" // the conversation contains it
	return t.Prompts.AuthorCorrects(of)
}

// Plans reads plans, and looks at what was committed for them.
type Plans interface {
	// ReadPlan returns a plan as the latest commit has it. If it cannot be worked on, the result has a problem. An
	// error means that another worker, or a later attempt, may succeed.
	ReadPlan(ctx context.Context, request PlanRequest) (PlanResult, error)
	// Inspect returns what a run has committed in its worktree, and runs the checks of the repository again. It calls
	// observe while programs run. An error means that another worker, or a later attempt, may succeed.
	Inspect(ctx context.Context, run AgentRun, observe func(AgentProgress)) (*Change, error)
}

// PlanRequest names a plan.
type PlanRequest struct {
	// Directory is the directory of the plan; empty for the default one. File is the path of the plan below it.
	Directory string `json:"directory,omitempty"`
	File      string `json:"file"`
}

// PlanResult is a plan as a commit has it.
type PlanResult struct {
	Plan review.Plan `json:"plan"`
	// Change shows the whole plan as a change. Its Base and Commit are the commit that has the plan.
	Change Change `json:"change"`
	// NoRemote reports that the repository has no remote origin, so nothing can be pushed.
	NoRemote bool `json:"no_remote,omitempty"`
	// Problem says why the plan cannot be worked on; empty if it can.
	Problem string `json:"problem,omitempty"`
}

// ReadPlan reads a plan.
func (t *Tiers) ReadPlan(ctx context.Context, request PlanRequest) (PlanResult, error) {
	done := beat(ctx)
	defer done()
	return t.Plans.ReadPlan(ctx, request)
}

// InspectRun returns what a run has committed in its worktree, and runs the checks of the repository again. The input
// is that of the author's latest turn.
func (t *Tiers) InspectRun(ctx context.Context, input RunAuthorInput) (Change, error) {
	done := beat(ctx)
	defer done()
	change, err := t.Plans.Inspect(ctx, t.author(input).run, func(AgentProgress) {})
	if err != nil {
		return Change{}, temporal.NewApplicationError(err.Error(), ErrorTypeAgent)
	}
	return *change, nil
}
