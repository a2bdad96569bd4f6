package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

const planText = "# Ports\n\n## Phase 1: web\n- [ ] set the port\n\n## Phase 2: db\n- [ ] set the port\n"

// planWorld is the environment of the work on a plan under test: a plan, a scripted author and a reviewer.
type planWorld struct {
	*world
	t    *testing.T
	text string
	// author returns the result of the author's turn with this number, from 1.
	author func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult
	turns  []activities.RunAuthorInput
	// fails returns the error of the activity that runs the author; nil for none.
	fails func() error
	// inspect returns what a run has committed, for checks that run again.
	inspect   func(input activities.RunAuthorInput) activities.Change
	inspected int
	noRemote  bool
	asked     []activities.RunReviewInput
}

// newPlanWorld returns a world in which the author commits what each phase asks for, and the reviewer finds it ready.
func newPlanWorld(t *testing.T) *planWorld {
	t.Helper()
	w := &planWorld{world: newGatedWorld(t), t: t, text: planText}
	role := escalation.TierPolicy{Model: "writer", ContextWindow: 100_000, Timeout: escalation.Duration(time.Minute), BudgetUSD: 2}
	w.policy.Author = escalation.AuthorPolicy{Tier: escalation.TierSafeRepair, Role: role}
	role.Model = "reader"
	w.policy.Review = escalation.ReviewPolicy{Mode: escalation.ReviewAdvisory, MaxFiles: 9, MaxLines: 99, MaxFixes: 3, Reviewer: role}
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		return w.commits(turn, input)
	}
	w.review = finds()
	w.env.RegisterWorkflowWithOptions(workflows.PlanReview, workflow.RegisterOptions{Name: workflows.PlanReviewWorkflow})
	w.env.RegisterWorkflowWithOptions(workflows.PhaseExecution, workflow.RegisterOptions{Name: workflows.PhaseExecutionWorkflow})
	return w
}

// commits returns the result of a turn that has committed c and its number.
func (w *planWorld) commits(turn int, input activities.RunAuthorInput, files ...review.File) activities.RunAuthorResult {
	if files == nil {
		files = []review.File{{Path: "compose.yaml", Listed: true, Added: 1, Removed: 1}}
	}
	plan, err := review.ParsePlan(w.text)
	require.NoError(w.t, err)
	for i, phase := range plan.Phases { // authors tick off what they do
		worked := slices.ContainsFunc(w.turns, func(turn activities.RunAuthorInput) bool { return turn.Task.Phase.Number == phase.Number })
		for j := range phase.Items {
			plan.Phases[i].Items[j].Done = phase.Items[j].Done || worked
		}
	}
	return activities.RunAuthorResult{
		Work: &review.Work{Status: review.WorkComplete, Summary: "done"},
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5}, ReportedSessionID: input.SessionID, Attempts: 1,
			Verdict: &escalation.Verdict{Status: "complete", Summary: "done"},
		},
		Change: &activities.Change{
			Branch: "claudeops/run", Base: input.From.Commit, Commit: fmt.Sprint("c", turn), Files: files, Checks: review.QualityPassed,
			Plan: &plan, Fork: "b0", Pack: []byte(fmt.Sprint(turn)),
		},
	}
}

// run works on the plan to the end.
func (w *planWorld) run(workflowType string, input workflows.PlanInput) (workflows.ChainResult, error) {
	w.t.Helper()
	input.File = "docs/plan.md"
	w.answer(w.t)
	w.env.OnActivity("ReadPlan", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, request activities.PlanRequest) (activities.PlanResult, error) {
			plan, err := review.ParsePlan(w.text)
			if err != nil || request.File != "docs/plan.md" {
				return activities.PlanResult{Problem: fmt.Sprintf("docs/plan.md: %v", err)}, nil
			}
			return activities.PlanResult{Plan: plan, Change: activities.Change{Base: "b0", Commit: "b0", Patch: "+" + w.text, Fork: "b0"}, NoRemote: w.noRemote}, nil
		})
	w.env.OnActivity("RunAuthor", mock.Anything, mock.Anything).Maybe().After(w.tierTakes).Return(
		func(_ context.Context, input activities.RunAuthorInput) (activities.RunAuthorResult, error) {
			w.turns = append(w.turns, input)
			if w.fails != nil {
				if err := w.fails(); err != nil {
					return activities.RunAuthorResult{}, err
				}
			}
			return w.author(len(w.turns), input), nil
		})
	w.env.OnActivity("InspectRun", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.RunAuthorInput) (activities.Change, error) {
			w.inspected++
			return w.inspect(input), nil
		})
	reviewer := w.review
	w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		w.asked = append(w.asked, input)
		return reviewer(input)
	}
	w.env.ExecuteWorkflow(workflowType, input)
	require.True(w.t, w.env.IsWorkflowCompleted())
	var result workflows.ChainResult
	if err := w.env.GetWorkflowError(); err != nil {
		return result, err
	}
	require.NoError(w.t, w.env.GetWorkflowResult(&result))
	return result, nil
}

// statuses lists the statuses of the phases.
func statuses(result workflows.ChainResult) []escalation.PhaseStatus {
	var all []escalation.PhaseStatus
	for _, phase := range result.Plan.Phases {
		all = append(all, phase.Status)
	}
	return all
}

// TestPhaseExecution carries out two phases. Each has its own author and reviewer, and the second builds on the first.
func TestPhaseExecution(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	people := w.listen()
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Prompt: "quickly", Actor: "anna"})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Contains(t, result.Reason, "2 phases approved, and c2 is pushed to https://git.example.org/infra")
	require.Equal(t, []escalation.PhaseStatus{escalation.PhaseApproved, escalation.PhaseApproved}, statuses(result))
	require.Equal(t, []activities.PushRequest{{Branch: "claudeops/run", Commit: "c2", Base: "b0", Pack: []byte("2")}}, w.pushed, "only the end is pushed")
	var sessions []string
	for _, session := range result.Sessions {
		sessions = append(sessions, fmt.Sprintf("%s %s %s %s", session.Purpose, session.Phase, session.Model, session.Continuity))
	}
	require.Equal(t, []string{
		"author 1 writer fresh", "review 1 reader fresh", "author 2 writer fresh", "review 2 reader fresh",
	}, sessions)
	require.Equal(t, []activities.Checkpoint{
		{Commit: "b0", Base: "b0"}, {Commit: "c1", Base: "b0", Pack: []byte("1")},
	}, []activities.Checkpoint{w.turns[0].From, w.turns[1].From})
	require.Equal(t, []string{"1", "2"}, []string{w.turns[0].Task.Phase.Number, w.turns[1].Task.Phase.Number})
	require.Equal(t, "quickly", w.turns[1].Request)
	require.Equal(t, []byte("1"), w.asked[0].Change.Pack, "the reviewer's host may not have the commit")
	require.Equal(t, "c1", w.asked[0].Change.Commit)
	phase := result.Plan.Phases[0]
	require.Equal(t, []any{1, 1, "c1"}, []any{phase.Turns, phase.Reviews, phase.Commit})
	require.InDeltaSlice(t, []float64{0.6, 0.1, 1.2}, []float64{phase.CostUSD, phase.ReviewCostUSD, result.CostUSD}, 1e-9)
	require.Contains(t, messagesOf(result.Events, escalation.EventPhase), "phase 1 (web) is approved")
	require.Equal(t, escalation.NotifyApproved, people.got[len(people.got)-1].Kind)
	require.Len(t, w.closed, 4)
	requireRecorded(t, result.Events, w.events)
	requireDistinctKeys(t, result.Events)
}

// TestStartOfAPlan checks that the start names the phases that were found, and those that are not carried out.
func TestStartOfAPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of     string
		phases []string
		text   string
		want   string
	}{
		"all":    {workflows.PhaseExecutionWorkflow, nil, planText, "run of the plan docs/plan.md at b0 begins: phase 1 (web), phase 2 (db)"},
		"chosen": {workflows.PhaseExecutionWorkflow, []string{"2"}, planText, "begins: phase 2 (db); not phase 1 (web)"},
		"review": {workflows.PlanReviewWorkflow, nil, planText, "review of the plan docs/plan.md at b0 begins: phase 1 (web), phase 2 (db)"},
		"many": {
			workflows.PlanReviewWorkflow, nil,
			"## Phase 1: " + strings.Repeat("a", 200) + "\n" + manyPhases(50),
			"begins: the phases 1, 2, 3, 4, 5,",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.text = c.text
			result, err := w.run(c.of, workflows.PlanInput{Phases: c.phases})
			require.NoError(t, err)
			started := messagesOf(result.Events, escalation.EventChainStarted)
			require.Len(t, started, 1)
			require.Contains(t, started[0], c.want)
			require.NotContains(t, started[0], "…", "no phase is cut off")
		})
	}
}

// manyPhases returns the headings of phases, from 2.
func manyPhases(last int) string {
	var b strings.Builder
	for number := 2; number <= last; number++ {
		_, _ = fmt.Fprintf(&b, "## Phase %d: %s\n", number, strings.Repeat("b", 50))
	}
	return b.String()
}

// TestPlanWithoutARemote says at the start that nothing can be pushed, and ends approved.
func TestPlanWithoutARemote(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.noRemote = true
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Contains(t, result.Reason, "2 phases approved, and c2 is on the branch claudeops/run of the repository, which has no remote origin")
	require.Empty(t, w.pushed)
	require.Empty(t, result.Gates)
	warning := result.Events[1]
	require.Equal(t, []any{escalation.EventChainStarted, escalation.SeverityWarning}, []any{warning.Kind, warning.Severity})
	require.Contains(t, warning.Message, "no remote origin")
}

// TestAcceptedRewriteIsThePlan lets the author of phase 1 rewrite the plan. A person accepts that: from then on the
// phases are those of the new plan, in its words.
func TestAcceptedRewriteIsThePlan(t *testing.T) {
	t.Parallel()
	const rewritten = "# Ports\n\n## Phase 0: dns\n- [ ] a name\n## Phase 1: web\n- [x] set the port\n\n## Phase 3: cache\n- [ ] a port\n- [ ] a limit\n" +
		"## Phase 4: done\n- [x] x\n"
	for name, c := range map[string]struct {
		phases   []string
		turns    []string
		statuses string
	}{
		"all phases": {
			nil, []string{"1 web [set the port]", "0 dns [a name]", "3 cache [a port a limit]"}, "0 approved 1 accepted 3 approved 4 skipped",
		},
		"chosen phases": {[]string{"1", "2"}, []string{"1 web [set the port]"}, "0 skipped 1 accepted 3 skipped 4 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				w.text = rewritten
				return w.commits(turn, input)
			}
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: c.phases})
			require.NoError(t, err)
			require.Contains(t, gate.Reason, "phase 2 (db) was removed")
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			var turns, statuses []string
			for _, turn := range w.turns {
				phase := turn.Task.Phase
				turns = append(turns, fmt.Sprintf("%s %s %v", phase.Number, phase.Title, phase.Open()))
			}
			for _, phase := range result.Plan.Phases {
				statuses = append(statuses, fmt.Sprintf("%s %s", phase.Number, phase.Status))
			}
			require.Equal(t, c.turns, turns)
			require.Equal(t, c.statuses, strings.Join(statuses, " "))
			require.Contains(t, messagesOf(result.Events, escalation.EventPhase), map[string]string{
				"all phases":    "the plan now has phase 0 (dns), phase 1 (web), phase 3 (cache); not phase 4 (done)",
				"chosen phases": "the plan now has phase 1 (web); not phase 0 (dns), phase 3 (cache), phase 4 (done)",
			}[name])
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestPhaseIsCorrected lets checks fail once, and the reviewer find something once. The author goes on in its
// conversation.
func TestPhaseIsCorrected(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 1 {
			result.Change.Checks, result.Change.CheckOutput = review.QualityFailed, "exit code 1"
		}
		return result
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port"), objection("no-limit")), finds())
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"2"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Equal(t, []escalation.PhaseStatus{escalation.PhaseSkipped, escalation.PhaseApproved}, statuses(result))
	require.Len(t, w.turns, 3)
	retry, fix := w.turns[1], w.turns[2]
	require.Equal(t, "exit code 1", retry.Correction.CheckOutput)
	require.Zero(t, w.turns[0].At)
	require.Equal(t, []activities.Checkpoint{{Commit: "c1", Base: "b0", Pack: []byte("1")}, {Commit: "c2", Base: "b0", Pack: []byte("2")}},
		[]activities.Checkpoint{retry.At, fix.At}, "on another host, the author's own commits must be there")
	require.Equal(t, w.turns[0].SessionID, retry.ParentSessionID)
	require.Len(t, fix.Correction.Findings, 2)
	require.Equal(t, []string{retry.SessionID, "c2"}, []string{fix.ParentSessionID, fix.Since})
	require.False(t, fix.Continues)
	require.Equal(t, escalation.ReasonCorrection, result.Sessions[1].ContinuityReason)
	require.Len(t, messagesOf(result.Events, escalation.EventSessionReused), 2)
	phase := result.Plan.Phases[1]
	require.Equal(t, []int{3, 2, 2, 2}, []int{phase.Turns, phase.Reviews, phase.Found, phase.Fixed})
	require.InDelta(t, 0.1, phase.CostPerFixUSD, 1e-9)
	require.Equal(t, "c3", w.pushed[0].Commit)
}

// TestAuthorIsRefused lets the model refuse an author's correction, once or for ever. The correction begins in a new
// conversation, once.
func TestAuthorIsRefused(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]int{"once": 1, "for ever": 99} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				if turn == 1 || turn > 1+times {
					return w.commits(turn, input)
				}
				return activities.RunAuthorResult{Problem: "the author ended failed: the model refused", Report: escalation.Report{
					Status: escalation.SessionFailed, Ending: escalation.EndingRefused, Error: "the model refused", Attempts: 1, ContextTokens: 20_000,
					ReportedSessionID: input.SessionID,
				}}
			}
			w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
			w.answerAfter(time.Hour, said(escalation.GateAbort, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
			require.NoError(t, err)
			require.Len(t, w.turns, 3)
			require.Equal(t, w.turns[0].SessionID, w.turns[1].ParentSessionID)
			require.Empty(t, w.turns[2].ParentSessionID, "a new conversation")
			require.Len(t, w.turns[2].Correction.Findings, 1)
			if times > 1 {
				require.Equal(t, escalation.OutcomeAborted, result.Outcome, "a person decides")
				require.Contains(t, result.Gates[0].Reason, "the model refused")
				return
			}
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
		})
	}
}

// TestCorrectionOfAFullConversation checks that an author whose conversation fills the window begins a new one.
func TestCorrectionOfAFullConversation(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		result.Report.ContextTokens, result.Report.ContextWindow = 170_000, 200_000
		return result
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	again := result.Sessions[2]
	require.Equal(t, []any{escalation.ContinuityFresh, escalation.ReasonContextPressure}, []any{again.Continuity, again.ContinuityReason})
	require.Empty(t, w.turns[1].ParentSessionID)
	require.Equal(t, []review.Finding{opened(objection("wrong-port"))}, w.turns[1].Correction.Findings)
}

// TestCorrectionWithoutItsConversation checks that an author whose conversation is gone begins a new one.
func TestCorrectionWithoutItsConversation(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		if turn == 2 {
			return activities.RunAuthorResult{Report: escalation.Report{Status: escalation.SessionTranscriptLost, Attempts: 1}}
		}
		return w.commits(turn, input)
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Len(t, w.turns, 3)
	require.NotEmpty(t, w.turns[1].ParentSessionID)
	require.Empty(t, w.turns[2].ParentSessionID)
	require.Len(t, w.turns[2].Correction.Findings, 1, "the new conversation gets the findings")
}

// TestAuthorIsCaught checks what an author may not do. Each case ends at a gate, and nothing is pushed.
func TestAuthorIsCaught(t *testing.T) {
	t.Parallel()
	within := func(file review.File) func(*planWorld, *activities.RunAuthorResult) {
		return func(_ *planWorld, result *activities.RunAuthorResult) {
			result.Change.Within, result.Change.Files = "site", []review.File{file}
		}
	}
	plan := func(text string) func(*planWorld, *activities.RunAuthorResult) {
		return func(w *planWorld, result *activities.RunAuthorResult) {
			after, err := review.ParsePlan(text)
			require.NoError(w.t, err)
			result.Change.Plan = &after
		}
	}
	for name, c := range map[string]struct {
		change func(*planWorld, *activities.RunAuthorResult)
		reason string
	}{
		"weakens a test":   {within(review.File{Path: "site/web_test.py", Removed: 4}), `review.paths do not name: site/web_test.py`},
		"edits CI":         {within(review.File{Path: "site/.github/workflows/ci.yml", Added: 1}), `review.paths do not name: site/.github/workflows/ci.yml`},
		"edits the checks": {within(review.File{Path: "site/.claudeops-checks", Removed: 1}), `review.paths do not name: site/.claudeops-checks`},
		"edits policy":     {within(review.File{Path: "site/CLAUDE.md", Added: 1}), `review.paths do not name: site/CLAUDE.md`},
		"commits outside":  {within(review.File{Path: "other/compose.yaml", Added: 1}), `it changes files outside of site: other/compose.yaml`},
		"removes a phase":  {plan("# Ports\n\n## Phase 1: web\n- [x] set the port\n"), "phase 2 (db) was removed"},
		"removes an entry": {plan("# Ports\n\n## Phase 1: web\n\n## Phase 2: db\n- [ ] set the port\n"), `"set the port" of phase 1 was removed`},
		"leaves an entry open": {
			plan("# Ports\n\n## Phase 1: web\n- [ ] set the port\n\n## Phase 2: db\n- [ ] set the port\n"),
			"it leaves entries of its checklist open: set the port",
		},
		"rewrites another phase": {
			plan("# Ports\n\n## Phase 1: web\n- [x] set the port\n\n## Phase 2: db\nOpen it to everybody.\n- [ ] set the port\n"),
			"it changes the text of the plan",
		},
		"spoils the plan": {func(_ *planWorld, r *activities.RunAuthorResult) {
			r.Change.Plan, r.Change.PlanProblem = nil, "no phases"
		}, "cannot be read any more: no phases"},
		"commits nothing": {func(_ *planWorld, r *activities.RunAuthorResult) { r.Change.Commit, r.Change.Files = "b0", nil }, "no new commit"},
		"an empty commit": {func(_ *planWorld, r *activities.RunAuthorResult) { r.Change.Files = []review.File{} }, "no new commit"},
		"rewrites history": {func(_ *planWorld, r *activities.RunAuthorResult) {
			*r.Change = activities.Change{Branch: "x", Problem: "no longer has b0"}
		}, "no longer has b0"},
		"hides characters": {func(_ *planWorld, r *activities.RunAuthorResult) {
			r.Change.Files[0].Unread = "characters that cannot be seen"
		}, "(characters that cannot be seen)"},
		"too large": {func(_ *planWorld, r *activities.RunAuthorResult) {
			r.Change.Files = []review.File{{Path: "a", Added: 100}}
		}, "has 100 lines"},
		"needs a person": {func(_ *planWorld, r *activities.RunAuthorResult) {
			r.Work.Status, r.Work.Summary = "needs_human", "which port?"
		}, "the author says needs_human: which port?"},
		"gives no report":  {func(_ *planWorld, r *activities.RunAuthorResult) { r.Work, r.Problem = nil, "no valid report" }, "no valid report"},
		"runs out of time": {func(_ *planWorld, r *activities.RunAuthorResult) { *r = timedOut(r.Report) }, "took too long"},
		"the checks keep failing": {func(_ *planWorld, r *activities.RunAuthorResult) {
			r.Change.Checks, r.Change.CheckOutput = review.QualityFailed, "exit code 1"
		}, "the checks have failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input)
				c.change(w, &result)
				return result
			}
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateAbort, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
			require.Contains(t, gate.Reason, c.reason)
			require.Equal(t, "1", gate.Phase)
			require.Contains(t, gate.Next(escalation.GateClosing{Action: escalation.GateOverride}), ", and the work on the plan goes on")
			require.Empty(t, w.pushed)
			requireRecorded(t, result.Events, w.events)
			require.Len(t, w.closed, len(result.Sessions), "each record is closed once")
		})
	}
}

// timedOut returns the result of a turn whose time is up.
func timedOut(report escalation.Report) activities.RunAuthorResult {
	report.Status, report.Verdict, report.Error = escalation.SessionTimedOut, nil, "its time is up"
	return activities.RunAuthorResult{Report: report, Problem: "its time is up"}
}

// TestPlanGate checks the answers at the gate of a phase.
func TestPlanGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action   escalation.GateAction
		outcome  escalation.Outcome
		statuses []escalation.PhaseStatus
		turns    int
	}{
		"override": {escalation.GateOverride, escalation.OutcomeApproved, []escalation.PhaseStatus{escalation.PhaseAccepted, escalation.PhaseApproved}, 2},
		"fix":      {escalation.GateFix, escalation.OutcomeApproved, []escalation.PhaseStatus{escalation.PhaseApproved, escalation.PhaseApproved}, 3},
		"abort":    {escalation.GateAbort, escalation.OutcomeAborted, []escalation.PhaseStatus{escalation.PhaseRunning, escalation.PhaseWaiting}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			needs := objection("wrong-port")
			needs.Action = review.HumanRequired
			w.review, _ = inTurn(t, finds(needs), finds())
			w.answerAfter(2*time.Hour, said(c.action, "as you see it"))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Equal(t, c.statuses, statuses(result))
			require.Len(t, w.turns, c.turns)
			if c.action == escalation.GateFix {
				require.Equal(t, []string{"as you see it", ""}, []string{w.turns[1].Guidance, w.turns[1].ParentSessionID})
				require.Len(t, w.turns[1].Correction.Findings, 1)
				require.Empty(t, w.turns[2].Guidance, "the guidance is for one turn")
			}
			if c.action == escalation.GateOverride {
				require.Equal(t, "c1", w.turns[1].From.Commit, "the next phase builds on the accepted commit")
			}
		})
	}
}

// TestPlanOverride lets a person accept the work of an author that did not conclude.
func TestPlanOverride(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  bool
		outcome escalation.Outcome
		pushed  int
	}{
		"a commit": {true, escalation.OutcomeApproved, 1},
		"nothing":  {false, escalation.OutcomeOverridden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input)
				result.Work.Status = "needs_human"
				if !c.change {
					result.Change = nil
				}
				return result
			}
			w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Equal(t, escalation.PhaseAccepted, result.Plan.Phases[0].Status)
			require.Len(t, w.pushed, c.pushed)
			require.Equal(t, c.change, strings.Contains(result.Gates[0].Reason, "it has committed c1"), result.Gates[0].Reason)
		})
	}
}

// TestPlanResetByItsAuthor lets an author go back to the base of the phase when it should correct. Its commit is not
// lost: a person may accept it.
func TestPlanResetByItsAuthor(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 2 {
			result.Change.Commit, result.Change.Files, result.Change.Pack = "b0", nil, nil
		}
		return result
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Equal(t, string(review.RuleNoCommit), result.Reviews[1].Rule)
	require.Equal(t, "c1", result.Plan.Phases[0].Commit)
	require.Equal(t, "c1", w.pushed[0].Commit)
}

// TestPlanGateExpires lets nobody answer: the work ends, and what was approved stays on its branch.
func TestPlanGateExpires(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 2 {
			return timedOut(result.Report)
		}
		return result
	}
	people := w.listen()
	gate := w.gateAfter(t, time.Hour)
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	require.Equal(t, []string{"c1", "claudeops/run"}, []string{result.Plan.Commit, result.Plan.Branch})
	const left = "what was approved, up to commit c1, stays on its branch without a push"
	require.Contains(t, gate.Next(escalation.GateClosing{Action: escalation.GateAbort}), left)
	require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventGateClosed), "\n"), left)
	ended := messagesOf(result.Events, escalation.EventChainEnded)
	require.Contains(t, ended[len(ended)-1], "c1 is approved on claudeops/run, and not pushed")
	require.True(t, slices.ContainsFunc(people.got, func(told escalation.Notification) bool { return strings.Contains(told.Text, left) }))
}

// TestPlanFixSaysWhy lets a person have a phase carried out again. The new author gets the reason, and knows which
// commit there is.
func TestPlanFixSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*activities.RunAuthorResult)
		of     activities.Correction
	}{
		"too large": {func(r *activities.RunAuthorResult) {
			r.Change.Files = []review.File{{Path: "a", Listed: true, Added: 100}}
		}, activities.Correction{Commit: "c1", Why: "has 100 lines"}},
		"its time is up":                {func(r *activities.RunAuthorResult) { r.Work, r.Report.Status = nil, escalation.SessionTimedOut }, activities.Correction{Commit: "c1", Why: "took too long"}},
		"its time is up, and no commit": {func(r *activities.RunAuthorResult) { *r = timedOut(r.Report) }, activities.Correction{Why: "took too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input)
				if turn == 1 {
					c.change(&result)
				}
				return result
			}
			w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.Len(t, w.turns, 3)
			require.NotNil(t, w.turns[1].Correction)
			require.Equal(t, c.of.Commit, w.turns[1].Correction.Commit)
			require.Contains(t, w.turns[1].Correction.Why, c.of.Why)
			require.Nil(t, w.turns[2].Correction, "the next phase begins")
		})
	}
}

// TestPlanFixOfACorrectionSaysWhy checks the same for a correction that fails: the next author gets the findings, and
// what is wrong with it.
func TestPlanFixOfACorrectionSaysWhy(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 2 {
			result.Change.Plan, result.Change.PlanProblem = nil, "no phases"
		}
		return result
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Empty(t, w.turns[1].Correction.Why)
	require.Len(t, w.turns[2].Correction.Findings, 1)
	require.Contains(t, w.turns[2].Correction.Why, "cannot be read any more: no phases")
}

// TestChecksRunAgain checks that a person can have checks repeated that could not run, without another turn of the
// author.
func TestChecksRunAgain(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	var done activities.Change
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		done = *result.Change
		result.Change.Checks, result.Change.CheckOutput = review.QualityUnknown, "no shell"
		return result
	}
	w.inspect = func(activities.RunAuthorInput) activities.Change { return done }
	answered := w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Equal(t, []int{1, 1}, []int{w.inspected, len(w.turns)})
	require.Equal(t, "the checks run again", answered.resolution.Next)
}

// TestChecksRunAgainFindMore checks that a change which weakens a check needs a person, also if that is known only when
// the checks run again.
func TestChecksRunAgainFindMore(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	var done activities.Change
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input, review.File{Path: "verify.sh", Listed: true, Added: 1})
		done = *result.Change
		done.Files, done.Doubts = []review.File{{Path: "verify.sh", Added: 1}}, []string{"the checks pass only with its own version"}
		result.Change.Checks, result.Change.CheckOutput = review.QualityUnknown, "no worktree"
		return result
	}
	w.inspect = func(activities.RunAuthorInput) activities.Change { return done }
	w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	gate := w.gateAfter(t, 3*time.Hour)
	w.answerAfter(4*time.Hour, said(escalation.GateAbort, ""))
	_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, `do not name: verify.sh; the checks pass only with its own version`)
	require.Empty(t, w.pushed)
}

// TestReviewerWithoutEnd has a reviewer that always finds something: the work stops at a gate, within its budget.
func TestReviewerWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		finding func(n int) review.Finding
		budget  float64
		reason  string
	}{
		"the same":        {func(int) review.Finding { return objection("a") }, 0, "after 3 reviews it is still there"},
		"something else":  {func(n int) review.Finding { return objection(fmt.Sprint("a", n)) }, 0, "did not reduce the findings"},
		"within a budget": {func(int) review.Finding { return objection("a") }, 1, "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				return w.commits(turn, input)
			}
			w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
				return finds(c.finding(len(w.asked)))(input)
			}
			gate := w.gateAfter(t, time.Hour)
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{BudgetUSD: c.budget})
			require.NoError(t, err)
			require.Contains(t, gate.Reason, c.reason)
			require.LessOrEqual(t, len(w.turns), 4)
			if c.budget > 0 {
				require.LessOrEqual(t, result.CostUSD, c.budget+0.5, "the last session may overrun its rest")
			}
			require.Empty(t, w.pushed)
		})
	}
}

// TestPushOfAPlanFails checks that a person can have a push repeated.
func TestPushOfAPlanFails(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.pushProblem = "no route"
	gate := w.gateAfter(t, time.Hour)
	w.env.RegisterDelayedCallback(func() { w.pushProblem = "" }, 90*time.Minute)
	w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, "no route")
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Len(t, w.pushed, 4, "three attempts before a person is asked")
	require.Len(t, w.turns, 2, "no phase runs again")
	require.Equal(t, "what is approved is pushed again", gate.Next(escalation.GateClosing{Action: escalation.GateFix}))
}

// TestPushOfAPlanAfterItsBudget lets the last review spend more than the plan may. What is approved can still be
// pushed.
func TestPushOfAPlanAfterItsBudget(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.pushProblem = "no route"
	w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		result, err := finds()(input)
		result.Report.CostUSD = 1.6
		return result, err
	}
	gate := w.gateAfter(t, time.Hour)
	w.env.RegisterDelayedCallback(func() { w.pushProblem = "" }, 90*time.Minute)
	w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}, BudgetUSD: 2})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, "no route")
	require.Greater(t, result.CostUSD, 2.0)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Equal(t, "https://git.example.org/infra", result.Plan.Pushed)
}

// TestUnpushedPlanIsLeft checks that a person can end work that cannot be pushed.
func TestUnpushedPlanIsLeft(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.pushProblem = "no route"
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.PlanItself, gate.Phase)
	require.Contains(t, gate.Next(escalation.GateClosing{Action: escalation.GateOverride}), "nothing is pushed")
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome, result.Reason)
	require.Equal(t, []escalation.PhaseStatus{escalation.PhaseApproved, escalation.PhaseApproved}, statuses(result))
	require.Equal(t, "c2", result.Plan.Commit)
	require.Empty(t, result.Plan.Pushed)
	require.Len(t, w.pushed, 3)
}

// TestPlanReview has a plan reviewed, and amended where that is needed.
func TestPlanReview(t *testing.T) {
	t.Parallel()
	amended := review.File{Listed: true, Path: "site/docs/plan.md", Added: 1}
	for name, c := range map[string]struct {
		reviews []func(activities.RunReviewInput) (activities.RunReviewResult, error)
		file    review.File
		plan    string
		reason  string
		outcome escalation.Outcome
		pushed  int
	}{
		"ready":   {reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds()}, reason: "approved as it is", outcome: escalation.OutcomeApproved},
		"amended": {reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("vague")), finds()}, file: amended, reason: "the plan is amended and approved", outcome: escalation.OutcomeApproved, pushed: 1},
		"rewrites its checklists": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("vague")), finds()}, file: amended,
			plan:   "# Ports\n\n## Phase 1: web server\n- [ ] set port 80\n\n## Phase 2: db\n",
			reason: "the plan is amended and approved", outcome: escalation.OutcomeApproved, pushed: 1,
		},
		"removes a phase": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("vague")), finds()}, file: amended,
			plan: "# Ports\n\n## Phase 1: web\n", reason: "phase 2 (db) was removed", outcome: escalation.OutcomeAborted,
		},
		"changes something else": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("vague")), finds()},
			file:    review.File{Path: "site/compose.yaml", Added: 1}, reason: `files outside of site/docs/plan.md`, outcome: escalation.OutcomeAborted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.review, _ = inTurn(t, c.reviews...)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input, c.file)
				result.Change.Within = "site"
				if c.plan != "" {
					after, err := review.ParsePlan(c.plan)
					require.NoError(t, err)
					result.Change.Plan = &after
				}
				return result
			}
			result, err := w.run(workflows.PlanReviewWorkflow, workflows.PlanInput{})
			said := messagesOf(result.Events, escalation.EventReview)
			require.NoError(t, err)
			require.Regexp(t, "^the plan is (not )?approved: ", said[0], "it has no branch yet")
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Contains(t, result.Reason, c.reason)
			require.Len(t, w.pushed, c.pushed)
			require.True(t, w.asked[0].Task.Amend)
			require.Equal(t, "b0", w.asked[0].Change.Commit)
			require.Equal(t, escalation.PlanItself, result.Plan.Phases[0].Number)
			if len(w.turns) > 0 {
				require.True(t, w.turns[0].Task.Amend)
				require.Len(t, w.turns[0].Correction.Findings, 1)
			}
		})
	}
}

// TestOverrideOfAnAmendedPlan checks that the gate says which commit becomes the plan, and that it is pushed.
func TestOverrideOfAnAmendedPlan(t *testing.T) {
	t.Parallel()
	for _, noRemote := range []bool{false, true} {
		w := newPlanWorld(t)
		w.noRemote = noRemote
		w.review, _ = inTurn(t, finds(objection("vague")))
		w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
			result := w.commits(turn, input, review.File{Path: "docs/plan.md", Listed: true, Added: 100})
			return result
		}
		answered := w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
		result, err := w.run(workflows.PlanReviewWorkflow, workflows.PlanInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
		if noRemote {
			require.Regexp(t, `^the plan is accepted as commit c1 has it.*, which stays on its branch \(the repository has no remote\)$`, answered.resolution.Next)
			require.Empty(t, w.pushed)
			continue
		}
		require.Regexp(t, "^the plan is accepted as commit c1 has it.*, which is pushed$", answered.resolution.Next)
		require.Equal(t, "c1", w.pushed[0].Commit)
	}
}

// TestPlanRefusesInput checks that nothing runs for an input that is not permitted.
func TestPlanRefusesInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workflow string
		input    workflows.PlanInput
		change   func(*planWorld)
		want     string
	}{
		"no such phase":      {input: workflows.PlanInput{Phases: []string{"7"}}, want: "the plan has no phase 7"},
		"phases of a review": {workflow: workflows.PlanReviewWorkflow, input: workflows.PlanInput{Phases: []string{"1"}}, want: "phases is not for a review"},
		"all done":           {change: func(w *planWorld) { w.text = strings.ReplaceAll(planText, "[ ]", "[x]") }, want: "all phases of the plan are done"},
		"no plan":            {change: func(w *planWorld) { w.text = "# Notes\n" }, want: "the plan has no phases"},
		"a dry run":          {change: func(w *planWorld) { w.policy.DryRun = true }, want: "cannot change anything in a dry run"},
		"repository":         {input: workflows.PlanInput{Repository: "x"}, want: "CLAUDEOPS_REPOSITORIES"},
		"carried":            {input: workflows.PlanInput{Carried: &workflows.CarriedPlan{}}, want: "carried is not for people"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			if c.change != nil {
				c.change(w)
			}
			if c.workflow == "" {
				c.workflow = workflows.PhaseExecutionWorkflow
			}
			_, err := w.run(c.workflow, c.input)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, workflows.ErrorTypeInput, refused.Type())
			require.Contains(t, refused.Message(), c.want)
			require.Empty(t, w.opened)
		})
	}
}

// TestPlanInput checks the path of a plan.
func TestPlanInput(t *testing.T) {
	t.Parallel()
	for file, valid := range map[string]bool{
		"docs/plan.md": true, "plan.md": true, "": false, "/etc/plan.md": false, "../plan.md": false, "docs/../plan.md": false, "a\nb": false,
		"..": false, "./plan.md": false,
	} {
		err := workflows.PlanInput{File: file}.Validate()
		require.Equal(t, valid, err == nil, "%q: %v", file, err)
	}
}

// TestPlanIsCancelled cancels the work in each state. The running session is stopped and its record closed.
func TestPlanIsCancelled(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{
		"as the author works": 5 * time.Minute, "as the reviewer reads": 15 * time.Minute, "in the second phase": 25 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.tierTakes = 10 * time.Minute
			w.env.RegisterDelayedCallback(w.env.CancelWorkflow, at)
			_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			require.True(t, temporal.IsCanceledError(err), "%v", err)
			require.Equal(t, escalation.SessionStopped, w.closed[len(w.closed)-1].Report.Status)
			chain := w.query(t)
			require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
			require.Len(t, w.closed, len(chain.Sessions))
			require.Empty(t, w.pushed)
		})
	}
}

// TestPlanContinuesAsNew lets the history become long in each state. The next run goes on there: no phase runs twice.
func TestPlanContinuesAsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    time.Duration
		turns int // of the first run
	}{
		"before a correction": {5 * time.Minute, 1}, "between two phases": {35 * time.Minute, 2}, "at a gate": {2 * time.Hour, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reviews := []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("a")), finds(), finds(person("b")), finds()}
			w := newPlanWorld(t)
			w.tierTakes = 10 * time.Minute
			w.review, _ = inTurn(t, reviews...)
			w.longHistory(c.at)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input)
				result.Report.ContextWindow = 77_000
				return result
			}
			for at := range 3 { // requests for a tier, which a plan does not have, keep nothing from continuing as new
				w.env.RegisterDelayedCallback(func() {
					w.env.SignalWorkflow(workflows.EscalateSignalName, workflows.EscalateSignal{ToTier: 3})
				}, time.Duration(at)*30*time.Minute+time.Minute)
			}
			_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			var anew *workflow.ContinueAsNewError
			require.ErrorAs(t, err, &anew)
			require.Equal(t, workflows.PhaseExecutionWorkflow, anew.WorkflowType.Name)
			require.Len(t, w.turns, c.turns)
			var input workflows.PlanInput
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))
			require.Len(t, w.closed, len(w.opened), "every record is closed")
			require.Equal(t, 77_000, input.Carried.Policy.Author.Role.ContextWindow, "the next run lacks the older sessions")

			again := newPlanWorld(t)
			again.env.SetContinuedExecutionRunID("the-run-before")
			again.policy = escalation.Policy{} // the new run must not read the policy again
			again.review, _ = inTurn(t, reviews[len(w.asked):]...)
			first := again.author
			again.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				return first(turn+c.turns, input)
			}
			if c.turns == 3 {
				again.answerAfter(time.Hour, said(escalation.GateOverride, ""))
			} else {
				again.answerAfter(3*time.Hour, said(escalation.GateOverride, ""))
			}
			result, err := again.run(workflows.PhaseExecutionWorkflow, input)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.Equal(t, []escalation.PhaseStatus{escalation.PhaseApproved, escalation.PhaseAccepted}, statuses(result))
			require.Equal(t, 3, len(w.turns)+len(again.turns), "no turn is made twice")
			require.Equal(t, "c3", again.pushed[0].Commit)
			requireRecorded(t, result.Events, append(w.events, again.events...))
		})
	}
}

// TestPlanContinuesAnAuthorAnew lets the history become long while an author's question waits at the gate. The next run
// offers to continue the author's conversation, and does.
func TestPlanContinuesAnAuthorAnew(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		result.Work, result.Change = &review.Work{Status: review.WorkNeedsHuman, Summary: "which port?"}, nil
		result.Report.Verdict = &escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "which port?"}
		return result
	}
	w.longHistory(2 * time.Hour)
	_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &anew)
	var input workflows.PlanInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))

	again := newPlanWorld(t)
	again.env.SetContinuedExecutionRunID("the-run-before")
	gate := again.gateAfter(t, 30*time.Minute)
	again.answerAfter(time.Hour, said(escalation.GateContinue, "8080"))
	result, err := again.run(workflows.PhaseExecutionWorkflow, input)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	asked := w.turns[0].SessionID
	require.NotNil(t, gate.Continuation, gate.NoContinuation)
	require.Equal(t, []string{asked, "author", "execute"}, []string{gate.Continuation.SessionID, gate.Continuation.Role, gate.Continuation.Resume})
	require.Len(t, again.turns, 1)
	turn := again.turns[0]
	require.Equal(t, []any{asked, true, "8080"}, []any{turn.ParentSessionID, turn.Continues, turn.Guidance})
	require.Equal(t, []string{turn.SessionID}, sessionsOf(result.Events, escalation.EventSessionReused))
	requireRecorded(t, result.Events, append(w.events, again.events...))
}

// person is a finding that needs the decision of a person.
func person(fingerprint string) review.Finding {
	finding := objection(fingerprint)
	finding.Action = review.HumanRequired
	return finding
}
