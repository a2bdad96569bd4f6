package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// planRun is the state of a running PlanReview or PhaseExecution. It connects the same parts as a chain, and package
// review decides on the next step.
type planRun struct {
	*parts.Set

	task  escalation.PlanTask
	input Input
	at    planStep
}

// planStep says where the work on a plan is. A run passes it to the next one.
type planStep struct {
	// Plan is the plan as the latest approved commit has it.
	Plan review.Plan `json:"plan"`
	// Phases lists the phases to work on, and Next is the index of the current one. After the last one all that was
	// approved is pushed.
	Phases []review.Phase `json:"phases"`
	Next   int            `json:"next"`
	// Loop is the loop of the current phase.
	Loop review.Loop `json:"loop"`
	// From is the commit on which the current phase is based. Change is its latest change; nil before there is one.
	From   activities.Checkpoint `json:"from"`
	Change *activities.Change    `json:"change,omitempty"`
	// Project is the repository in which a pull request can propose what was approved; nil if there is none.
	Project *forge.Project `json:"project,omitempty"`
	// Author is the latest session of the author in this phase; nil if there is none.
	Author *escalation.Session `json:"author,omitempty"`
	// Anew reports that the next session begins a new conversation, because a person wants it or the old one is lost.
	// Continues is the session that a person has chosen to continue, or that goes on after a limit of the account
	// (GoesOn); nil if there is none. Guidance is what the person said.
	Anew      bool                `json:"anew,omitempty"`
	Continues *escalation.Session `json:"continues,omitempty"`
	GoesOn    bool                `json:"goes_on,omitempty"`
	Guidance  string              `json:"guidance,omitempty"`
	// Passes lists the rules that the next session may pass, because a person has answered at the gate.
	Passes []escalation.Rule `json:"passes,omitempty"`
	// Refusal is what the session before got as an answer, if the next one begins anew because the model refused.
	Refusal string `json:"refusal,omitempty"`
	// Unseen says where authors may have committed what nobody knows, until a person has answered at a gate.
	Unseen []string `json:"unseen,omitempty"`
	// Ran is the state of the loop in which the latest session ran; empty if none has run in this phase.
	Ran review.State `json:"ran,omitempty"`
	// Reason is that of the latest decision on the work of this phase; empty before there is one.
	Reason string `json:"reason,omitempty"`
	// Why is the decision that led to the gate, and AtGate reports that the gate is open or was just closed.
	Why    escalation.Decision `json:"why,omitzero"`
	AtGate bool                `json:"at_gate,omitempty"`
}

// Review has a plan reviewed, and amended until it is approved. Its state is an escalation.Chain.
func Review(ctx workflow.Context, input Input) (escalation.Chain, error) {
	return runPlan(ctx, escalation.PlanReviewed, input)
}

// PhaseExecution has the phases of a plan carried out by an author, one after the other. The commit of each is checked
// and reviewed before the next begins. Its state is an escalation.Chain.
func PhaseExecution(ctx workflow.Context, input Input) (escalation.Chain, error) {
	return runPlan(ctx, escalation.PlanRun, input)
}

// runPlan works on a plan until it is approved, or a person ends the work.
func runPlan(ctx workflow.Context, task escalation.PlanTask, input Input) (escalation.Chain, error) {
	p := newPlanRun(ctx, task, input)
	err := p.setUp(ctx)
	if err == nil {
		err = p.run(ctx)
	}
	return p.EndRun(ctx, err)
}

// newPlanRun returns the work on a plan with its parts.
func newPlanRun(ctx workflow.Context, task escalation.PlanTask, input Input) *planRun {
	p := &planRun{task: task, input: input}
	if input.Carried != nil && parts.IsContinued(ctx) {
		p.Set, p.at = input.Carried.Restore(), input.Carried.Step
	} else { // checkInput refuses what a client passes as Carried
		p.Set = parts.NewSet(escalation.Chain{
			ID: workflow.GetInfo(ctx).WorkflowExecution.ID, Trigger: escalation.TriggerPlan,
			StartedAt: workflow.Now(ctx), Actor: input.Actor, Verified: input.Verified,
		})
	}
	p.Sessions.HasRequest = input.Prompt != ""
	return p
}

// setUp registers the handlers, checks the input and, for a new workflow, reads the policy and the plan.
func (p *planRun) setUp(ctx workflow.Context) error {
	if err := p.Handle(ctx); err != nil {
		return err
	}
	if err := p.checkInput(ctx); err != nil {
		return p.Log.Refuse(ctx, err)
	}
	if p.input.Carried != nil {
		p.Log.Show(ctx)
		return nil
	}
	found, err := p.load(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return p.end(ctx, escalation.Cancelled())
	case parts.Permanent(err):
		return p.Log.Refuse(ctx, errors.New(parts.RootMessage(err)))
	case err != nil:
		return err
	}
	return p.begin(ctx, found)
}

// checkInput returns the first error that can be found in the input before the policy is loaded. If this worker cannot
// decode what the previous run has passed on, checkInput panics, as that of a chain does.
func (p *planRun) checkInput(ctx workflow.Context) error {
	switch {
	case p.input.problem != nil && parts.IsContinued(ctx):
		panic(fmt.Sprintf("what the run before has handed over cannot be read: %v", p.input.problem))
	case p.input.Carried != nil && !parts.IsContinued(ctx):
		return parts.ErrCarried
	case escalation.IsConversation(p.Log.Chain.ID):
		return fmt.Errorf("the workflow ID must not begin with %s, which is for conversations",
			escalation.ConversationPrefix)
	case p.task == escalation.PlanReviewed && len(p.input.Phases) > 0:
		return errors.New("phases is not for a review, which is about the whole plan")
	}
	return p.input.Validate()
}

// load takes the snapshot of the policy, and reads the plan. A permanent error says why the input is not permitted.
func (p *planRun) load(ctx workflow.Context) (activities.PlanResult, error) {
	policy, err := parts.LoadPolicy(ctx)
	if err != nil {
		return activities.PlanResult{}, err
	}
	*p.Policy = parts.WithBudget(policy, p.input.BudgetUSD)
	refuse := func(problem error) error {
		return temporal.NewNonRetryableApplicationError(problem.Error(), parts.ErrorTypeInput, nil)
	}
	if reason := p.Policy.ForbidsAuthors(); reason != "" {
		return activities.PlanResult{}, refuse(errors.New(reason))
	}
	if err := parts.CheckActor(*p.Policy, p.input.Actor); err != nil {
		return activities.PlanResult{}, refuse(err)
	}
	if p.Sessions.Directory, err = parts.FindRepository(policy.Repositories, p.input.Repository); err != nil {
		return activities.PlanResult{}, refuse(err)
	}
	p.Log.Chain.MaxTier = p.Policy.AuthorTier()
	var tiers *activities.Tiers
	var found activities.PlanResult
	err = workflow.ExecuteActivity(parts.WithPush(ctx, "read the plan"), tiers.ReadPlan,
		activities.PlanRequest{Directory: p.Sessions.Directory, File: p.input.File}).Get(ctx, &found)
	if err == nil && found.Problem != "" {
		err = refuse(errors.New(found.Problem))
	}
	return found, err
}

// begin begins the work on a plan with its first phase.
func (p *planRun) begin(ctx workflow.Context, found activities.PlanResult) error {
	state := &escalation.PlanState{Task: p.task, File: p.input.File, Title: found.Plan.Title, Base: found.Change.Commit}
	if p.Sessions.Directory != "" {
		state.Repository = path.Base(p.Sessions.Directory)
	}
	p.at = planStep{Plan: found.Plan, From: activities.Checkpoint{
		Commit: found.Change.Commit,
		Base:   found.Change.Commit,
	}}
	if p.task == escalation.PlanReviewed {
		p.at.Phases, p.at.Change = []review.Phase{{Number: escalation.PlanItself, Title: found.Plan.Title}},
			&found.Change
		state.Phases = []escalation.PlanPhase{{
			Number: escalation.PlanItself, Title: found.Plan.Title,
			Status: escalation.PhaseWaiting,
		}}
	} else {
		chosen, err := found.Plan.Choose(p.input.Phases)
		if err != nil {
			return p.Log.Refuse(ctx, err)
		}
		p.at.Phases = chosen
		for _, phase := range found.Plan.Phases {
			status := escalation.PhaseSkipped
			if slices.ContainsFunc(chosen, func(one review.Phase) bool { return one.Number == phase.Number }) {
				status = escalation.PhaseWaiting
			}
			state.Phases = append(state.Phases, escalation.PlanPhase{
				Number: phase.Number, Title: phase.Title,
				Status: status,
			})
		}
	}
	state.NoRemote = found.NoRemote
	p.Log.Chain.Plan = state
	p.Log.Add(ctx, escalation.Event{Kind: escalation.EventChainStarted, Message: describePlanStart(*state, found.Plan)})
	if warning := state.Warning(); warning != "" {
		p.Log.Add(ctx, escalation.Event{
			Kind: escalation.EventChainStarted, Severity: escalation.SeverityWarning,
			Message: warning,
		})
	}
	return p.beginPhase(ctx)
}

// beginPhase begins the loop of the next phase.
func (p *planRun) beginPhase(ctx workflow.Context) error {
	limits := review.Limits{Fixes: p.Policy.Review.MaxFixes, Retries: p.Policy.Review.MaxFixes}
	next := review.NewLoop(limits)
	if p.task == escalation.PlanReviewed {
		next = review.NewReview(limits, p.at.From.Commit)
	} else {
		p.at.Change = nil
	}
	p.at.Loop, p.at.Ran, p.at.Reason = next.Accepting(p.at.Loop), "", ""
	p.at.Author, p.at.Anew, p.at.Continues, p.at.GoesOn, p.at.Guidance = nil, false, nil, false, ""
	p.Sessions.InFlight = nil
	state := p.Log.Chain.Plan
	state.Phase = p.at.Phases[p.at.Next].Number
	phase := state.Current()
	phase.Status = escalation.PhaseRunning
	p.Log.Add(ctx, escalation.Event{Kind: escalation.EventPhase, Message: describePhase(*phase) + " begins"})
	return p.show(ctx)
}

// show publishes the state of the loop.
func (p *planRun) show(ctx workflow.Context) error {
	p.Log.Chain.Plan.State = string(p.at.Loop.State)
	return p.Log.Publish(ctx)
}

// run works until the workflow has an outcome, or continues as new.
func (p *planRun) run(ctx workflow.Context) error {
	for p.Log.Chain.Outcome == "" {
		if err := p.step(ctx); err != nil {
			return err
		}
	}
	if p.Log.Chain.Outcome == escalation.OutcomeAborted {
		return ctx.Err() // nil unless the workflow was cancelled
	}
	return nil
}

// step does what the state of the loop asks for.
func (p *planRun) step(ctx workflow.Context) error {
	if !p.at.AtGate {
		p.Requests.RefuseAll(ctx, parts.ErrNoTiers)
	}
	switch {
	case p.at.AtGate:
		return p.waitAtGate(ctx)
	case ctx.Err() != nil:
		return p.end(ctx, escalation.Cancelled())
	case p.isLong(ctx):
		return p.continueAsNew(ctx)
	case p.at.Next == len(p.at.Phases) && p.at.Loop.State == review.StateApproved:
		return p.finish(ctx)
	}
	switch p.at.Loop.State {
	case review.StateExecute, review.StateQualityRetry, review.StateAutoFix:
		return p.author(ctx)
	case review.StateQuality:
		return p.check(ctx)
	case review.StateReview:
		return p.reviewPhase(ctx)
	case review.StateApproved:
		return p.approvePhase(ctx, escalation.PhaseApproved)
	case review.StateGate:
		return p.openGate(ctx)
	case review.StateAborted:
	}
	return fmt.Errorf("the loop of phase %s is %s, which is no state to go on from", p.Log.Chain.Plan.Phase,
		p.at.Loop.State)
}

// approvePhase ends the current phase: its commit becomes the one on which the next phase is based.
func (p *planRun) approvePhase(ctx workflow.Context, status escalation.PhaseStatus) error {
	state, change := p.Log.Chain.Plan, p.at.Change
	phase := state.Current()
	phase.Status = status
	if change != nil && change.Branch != "" && change.Commit == p.at.Loop.Commit {
		p.at.From, p.at.Project = change.Checkpoint(), change.Project
		phase.Commit, state.Commit, state.Branch = change.Commit, change.Commit, change.Branch
	}
	p.Log.Add(ctx, escalation.Event{Kind: escalation.EventPhase, Message: describePhase(*phase) + " is " +
		string(status)})
	if change != nil && change.Plan != nil && phase.Commit == change.Commit {
		p.adopt(ctx, *change.Plan)
	}
	p.at.Next++
	if p.at.Next < len(p.at.Phases) {
		return p.beginPhase(ctx)
	}
	p.at.Loop.State = review.StateApproved
	state.Phase = ""
	return p.show(ctx)
}

// adopt makes the plan of an approved commit the one to work on. If the author has rewritten it, a person has accepted
// that: phases that it adds are carried out, unless the input names phases, and phases that it no longer has are not.
func (p *planRun) adopt(ctx workflow.Context, plan review.Plan) {
	p.at.Plan = plan
	if p.task == escalation.PlanReviewed {
		return
	}
	state, waiting := p.Log.Chain.Plan, p.at.Phases[p.at.Next+1:]
	var next []review.Phase
	var shown []escalation.PlanPhase
	for _, phase := range state.Phases { // what was worked on stays, even if the plan no longer has it
		if phase.Turns > 0 && plan.Phase(phase.Number) == nil {
			shown = append(shown, phase)
		}
	}
	for _, phase := range plan.Phases {
		at := slices.IndexFunc(state.Phases,
			func(known escalation.PlanPhase) bool { return known.Number == phase.Number })
		if at >= 0 && state.Phases[at].Status != escalation.PhaseWaiting &&
			state.Phases[at].Status != escalation.PhaseSkipped {
			shown = append(shown, state.Phases[at])
			continue
		}
		asked := slices.ContainsFunc(waiting, func(one review.Phase) bool { return one.Number == phase.Number })
		if len(p.input.Phases) == 0 {
			asked = (asked || at < 0) && !phase.Done()
		}
		status := escalation.PhaseSkipped
		if asked {
			status, next = escalation.PhaseWaiting, append(next, phase)
		}
		shown = append(shown, escalation.PlanPhase{Number: phase.Number, Title: phase.Title, Status: status})
	}
	before := describeChosen(*state)
	state.Phases, p.at.Phases = shown, append(slices.Clone(p.at.Phases[:p.at.Next+1]), next...)
	if after := describeChosen(*state); after != before {
		p.Log.Add(ctx, escalation.Event{Kind: escalation.EventPhase, Message: "the plan now has " + after})
	}
}

// finish pushes what was approved, and ends the work. If it cannot be pushed, a person decides.
func (p *planRun) finish(ctx workflow.Context) error {
	state := p.Log.Chain.Plan
	if state.Commit == "" {
		return p.end(ctx, p.unchanged())
	}
	if state.NoRemote {
		return p.end(ctx, escalation.Approved(fmt.Sprintf("%s, and %s is on the branch %s of %s, which has no remote "+
			"origin",
			describePhases(*state), plaintext.Cut(state.Commit, 12), state.Branch,
			cmp.Or(state.Repository, "the repository"))))
	}
	loop := p.at.Loop
	loop.Commit = state.Commit
	change := activities.Change{
		Branch: state.Branch, Commit: state.Commit, Fork: p.at.From.Base, Pack: p.at.From.Pack, Project: p.at.Project,
	}
	if last := p.at.Change; last != nil && last.Commit == state.Commit {
		change.CheckOutput, change.Previews = last.CheckOutput, last.Previews
	}
	about := parts.Proposal{
		Tier: p.Policy.AuthorTier(), Title: state.Title, Problem: describePlan(*state),
		Phases: state.Phases,
	}
	about.Approved = slices.ContainsFunc(state.Phases, func(phase escalation.PlanPhase) bool {
		return phase.Commit == state.Commit && phase.Status == escalation.PhaseApproved
	})
	after, decision := p.Reviews.Push(ctx, loop, change, about)
	if after.State == review.StateGate {
		after.Resume = review.StateApproved // to push again
		p.at.Loop, p.at.Why = after, escalation.DecideReview(decision.Reason)
		return p.show(ctx)
	}
	latest := p.Reviews.ReviewOf(state.Commit)
	state.Pushed, state.PullRequest = latest.Pushed, latest.PullRequest
	if state.Pushed == "" { // its remote is gone since the start
		state.NoRemote = true
		return p.finish(ctx)
	}
	return p.end(ctx, escalation.Approved(fmt.Sprintf("%s, and %s is pushed to %s",
		describePhases(*state), plaintext.Cut(state.Commit, 12), state.Pushed)))
}

// unchanged returns the decision that ends the work without a commit.
func (p *planRun) unchanged() escalation.Decision {
	accepted := slices.ContainsFunc(p.Log.Chain.Plan.Phases, func(phase escalation.PlanPhase) bool {
		return phase.Status == escalation.PhaseAccepted
	})
	switch {
	case p.task == escalation.PlanRun:
		return escalation.Overridden("a person has passed over what was not committed, and no phase has a commit: " +
			"nothing is pushed")
	case accepted:
		return escalation.Overridden("a person accepts the plan as it is")
	default:
		return escalation.Approved("the plan is approved as it is")
	}
}

// end ends the work with a decision. A cancelled workflow does not wait for the database.
func (p *planRun) end(ctx workflow.Context, decision escalation.Decision) error {
	p.Gates.ReceiveReplies(ctx) // refuses answers to a gate that never opened
	if err := p.Sessions.Flush(ctx); err != nil {
		return err
	}
	p.Log.Decided(ctx, decision)
	p.Log.Ended(ctx, decision)
	if state := p.Log.Chain.Plan; state != nil {
		state.State = ""
	}
	if ctx.Err() != nil {
		return cmp.Or(p.Log.RecordEnd(ctx), ctx.Err())
	}
	return p.Log.RecordUnlessCancelled(ctx, "record the end", true)
}
