package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// TestPlanContinuesAReviewer continues an interrupted reviewer of each workflow. No author runs again because of it.
func TestPlanContinuesAReviewer(t *testing.T) {
	t.Parallel()
	for workflowType, authors := range map[string]int{workflows.PhaseExecutionWorkflow: 2, workflows.PlanReviewWorkflow: 0} {
		t.Run(workflowType, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.review, _ = inTurn(t, breaksOff(escalation.SessionTimedOut), finds())
			gate := w.gateAfter(t, time.Hour)
			answered := w.answerAfter(2*time.Hour, said(escalation.GateContinue, "read compose.yaml first"))
			result, err := w.run(workflowType, workflows.PlanInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.NotNil(t, gate.Continuation, gate.NoContinuation)
			interrupted := result.Session(gate.Continuation.SessionID)
			require.Equal(t, []any{escalation.PurposeReview, escalation.SessionTimedOut}, []any{interrupted.Purpose, interrupted.Status})
			require.Equal(t, []string{"reviewer", "review"}, []string{gate.Role, gate.Resume})
			require.Equal(t, "the reviewer goes on and keeps what it knows, with the guidance",
				answered.resolution.Next)
			require.Equal(t, []string{interrupted.SessionID, "read compose.yaml first"}, []string{w.asked[1].Continues, w.asked[1].Guidance})
			require.Len(t, w.turns, authors)
			if authors > 0 {
				require.Empty(t, w.asked[2].Continues, "the conversation is used once")
				require.Empty(t, w.turns[1].Guidance)
			}
			require.Len(t, sessionsOf(result.Events, escalation.EventSessionReused), 1)
		})
	}
}

// TestPlanWithFourEyes refuses work that nobody starts, if somebody else must answer at its gates.
func TestPlanWithFourEyes(t *testing.T) {
	t.Parallel()
	for actor, want := range map[string]string{"": "actor is empty", "anna": ""} {
		w := newPlanWorld(t)
		w.policy.Gate.FourEyes = true
		_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Actor: actor})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Empty(t, w.turns)
	}
}

// TestPlanContinuesAnAuthor continues an author that was interrupted in each of its states.
func TestPlanContinuesAnAuthor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn   int // the turn that is interrupted
		failed bool
		state  review.State
		of     string
		phases []string
	}{
		"execute":           {1, false, review.StateExecute, workflows.PhaseExecutionWorkflow, []string{"1"}},
		"auto_fix":          {2, false, review.StateAutoFix, workflows.PhaseExecutionWorkflow, []string{"1"}},
		"quality_retry":     {2, true, review.StateQualityRetry, workflows.PhaseExecutionWorkflow, []string{"1"}},
		"a plan is amended": {1, false, review.StateAutoFix, workflows.PlanReviewWorkflow, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				result := w.commits(turn, input)
				if c.phases == nil {
					result.Change.Files = []review.File{{Path: "docs/plan.md", Listed: true, Added: 1}}
				}
				switch {
				case turn == c.turn || turn == c.turn+1:
					return timedOut(result.Report)
				case turn == 1 && c.failed:
					result.Change.Checks, result.Change.CheckOutput = review.QualityFailed, "exit code 1"
				}
				return result
			}
			if c.state == review.StateAutoFix {
				w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
			}
			first, second := w.gateAfter(t, time.Hour), w.gateAfter(t, 3*time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateContinue, "use port 8080"))
			refused := w.answerAfter(4*time.Hour, saidAt("gate-2", escalation.GateContinue, ""))
			w.answerAfter(5*time.Hour, saidAt("gate-2", escalation.GateFix, ""))
			result, err := w.run(c.of, workflows.PlanInput{Phases: c.phases})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.NotNil(t, first.Continuation, first.NoContinuation)
			require.Equal(t, []string{"author", string(c.state)}, []string{first.Continuation.Role, first.Continuation.Resume})
			continued := w.turns[c.turn]
			require.Equal(t, []any{true, first.Continuation.SessionID, "use port 8080", c.failed},
				[]any{continued.Continues, continued.ParentSessionID, continued.Guidance, continued.Correction != nil})
			require.Nil(t, second.Continuation)
			require.Contains(t, refused.refusal, "going on with it was tried, and failed")
			require.False(t, w.turns[c.turn+1].Continues)
			require.Equal(t, escalation.PurposeAuthor, result.Session(continued.SessionID).Purpose)
		})
	}
}

// TestPlanContinuesBySignal continues an author that was interrupted, by a signal. The gate names the plan.
func TestPlanContinuesBySignal(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 1 {
			result.Report.Worktree = &escalation.Worktree{Path: "/w", Branch: "claudeops/run", Origin: "/o", Kept: true, Commits: 1}
			return timedOut(result.Report)
		}
		return result
	}
	gate := w.gateAfter(t, time.Hour)
	w.replyAfter(2*time.Hour, said(escalation.GateContinue, "use port 8080"))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Equal(t, []string{"1", "docs/plan.md"}, []string{gate.Phase, gate.Plan})
	require.Equal(t, []string{"author, phase 1 (writer), $0.50: took too long"}, gate.Tried, "its commits are on the branch of the plan")
	require.Equal(t, []any{true, gate.Continuation.SessionID, "use port 8080"},
		[]any{w.turns[1].Continues, w.turns[1].ParentSessionID, w.turns[1].Guidance})
	require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventGateOpened), "\n"), "gate-1 waits for a person at phase 1, ")
}

// TestPlanOffersNoContinuation checks that no client can continue the session of a reviewer whose finding the author
// corrects next.
func TestPlanOffersNoContinuation(t *testing.T) {
	t.Parallel()
	for workflowType, input := range map[string]workflows.PlanInput{
		workflows.PhaseExecutionWorkflow: {Phases: []string{"1"}}, workflows.PlanReviewWorkflow: {},
	} {
		t.Run(workflowType, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			risk := objection("open-door")
			risk.Action = review.HumanRequired
			w.review = finds(risk)
			gate := w.gateAfter(t, time.Hour)
			byUpdate := w.answerAfter(2*time.Hour, said(escalation.GateContinue, "go on"))
			w.replyAfter(3*time.Hour, said(escalation.GateContinue, "go on"))
			w.answerAfter(4*time.Hour, said(escalation.GateAbort, ""))
			result, err := w.run(workflowType, input)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeAborted, result.Outcome)
			require.Equal(t, []string{"author", "auto_fix"}, []string{gate.Role, gate.Resume})
			require.Nil(t, gate.Continuation)
			require.Equal(t, []escalation.GateAction{escalation.GateFix, escalation.GateOverride, escalation.GateAbort}, gate.Options)
			const want = "gate-1 does not offer to continue: the next step is a correction, and the last session was that of the reviewer"
			require.Equal(t, want, byUpdate.refusal)
			require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventGateRefused), "\n"), want)
		})
	}
}

// TestAcceptedRiskOfAPhase accepts a finding in the first phase. In the second phase it returns only with new evidence.
func TestAcceptedRiskOfAPhase(t *testing.T) {
	t.Parallel()
	risk := objection("wrong-port")
	risk.Action = review.HumanRequired
	elsewhere := risk
	elsewhere.File = "other.yaml"
	for name, c := range map[string]struct {
		second review.Finding
		gates  int
	}{
		"the same evidence": {risk, 1}, "new evidence": {elsewhere, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.review, _ = inTurn(t, finds(risk), finds(c.second))
			w.answerAfter(2*time.Hour, said(escalation.GateOverride, "we live with it"))
			w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
			require.NoError(t, err)
			require.Equal(t, []review.Finding{opened(risk)}, w.asked[1].Accepted)
			require.Len(t, result.Gates, c.gates)
			require.Equal(t, c.gates == 1, result.Outcome == escalation.OutcomeApproved, result.Reason)
		})
	}
}

// TestWorkOfAnAuthorOnAnotherHost lets another host take over the author of a phase. What it may have committed on the
// first one is for a person, also after a correction.
func TestWorkOfAnAuthorOnAnotherHost(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		if turn == 1 {
			result.Report.Worktree = &escalation.Worktree{Path: "/w", EarlierHosts: []string{"host-1"}}
		}
		return result
	}
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, "its author was at work on the host host-1 before, and nobody knows what it has committed there")
	require.Equal(t, "c2", gate.Commit)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Len(t, result.Gates, 1)
}
