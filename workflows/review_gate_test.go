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

// breaksOff returns a reviewer whose session ends with this status and without a verdict.
func breaksOff(status escalation.SessionStatus) func(activities.RunReviewInput) (activities.RunReviewResult, error) {
	return func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		return activities.RunReviewResult{Problem: "the review ended " + string(status), Report: escalation.Report{
			Status: status, Cost: escalation.Cost{CostUSD: 0.1}, Error: "what went wrong", ReportedSessionID: input.SessionID, Attempts: 1,
		}}, nil
	}
}

// newReviewGate returns a world with required reviews, in which Tier 2 concludes each time and the reviewer takes these
// turns.
func newReviewGate(t *testing.T, turns ...func(activities.RunReviewInput) (activities.RunReviewResult, error)) (
	*world, *[]activities.RunReviewInput,
) {
	t.Helper()
	w := newReviewedWorld(t, escalation.ReviewRequired, repeated(5, concludes(escalation.VerdictResolved, 0.1))...)
	w.policy.Review.MaxFixes = 3
	var asked *[]activities.RunReviewInput
	w.review, asked = inTurn(t, turns...)
	return w, asked
}

// sessionsOf returns the sessions in the events of a kind.
func sessionsOf(events []escalation.Event, kind escalation.EventKind) []string {
	var sessions []string
	for _, event := range events {
		if event.Kind == kind {
			sessions = append(sessions, event.SessionID)
		}
	}
	return sessions
}

// TestContinuedReview continues the conversation of a reviewer that was interrupted. The author does not run again.
func TestContinuedReview(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{
		escalation.SessionTimedOut, escalation.SessionFailed, escalation.SessionBudgetExhausted,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, breaksOff(status), finds(objection("wrong-port")), finds())
			gate := w.gateAfter(t, time.Hour)
			answered := w.answerAfter(2*time.Hour, said(escalation.GateContinue, "read compose.yaml first"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)

			author, first, second := result.Sessions[1], result.Sessions[2], result.Sessions[3]
			require.Equal(t, &escalation.Continuation{
				SessionID: first.SessionID, Tier: escalation.TierObserve, Role: "reviewer", Resume: "review", Status: status,
			}, gate.Continuation, gate.NoContinuation)
			require.Equal(t, []any{"reviewer", "review", first.SessionID}, []any{gate.Role, gate.Resume, gate.SessionID})
			require.Equal(t, "the reviewer goes on and keeps what it knows, with the guidance",
				answered.resolution.Next)

			require.Equal(t, []any{first.SessionID, "read compose.yaml first", "c2"},
				[]any{(*asked)[1].Continues, (*asked)[1].Guidance, (*asked)[1].Change.Commit})
			require.Equal(t, []any{escalation.PurposeReview, escalation.ContinuityResume, escalation.ReasonContinued, first.ID},
				[]any{second.Purpose, second.Continuity, second.ContinuityReason, second.ParentID})
			require.Equal(t, first.SessionID, w.requests[3].Parent)

			// The conversation is used once: the correction continues the author's, and the review after it begins a
			// new one.
			require.Equal(t, author.SessionID, w.ran[2].ParentSessionID)
			require.Equal(t, []string{"", ""}, []string{(*asked)[2].Continues, (*asked)[2].Guidance})
			correction := result.Sessions[4]
			require.Equal(t, escalation.ReasonCorrection, correction.ContinuityReason)
			require.Equal(t, []string{second.SessionID, correction.SessionID}, sessionsOf(result.Events, escalation.EventSessionReused))
			require.Equal(t, []string{
				result.Sessions[0].SessionID, author.SessionID, first.SessionID, result.Sessions[5].SessionID,
			}, sessionsOf(result.Events, escalation.EventSessionCreated))
			require.Equal(t, []activities.PushRequest{{Branch: "claudeops/x", Commit: "c3", Base: "b0", Pack: []byte("3")}}, w.pushed)
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestReviewAnew answers the gate of an interrupted review with fix: a new reviewer gets the guidance.
func TestReviewAnew(t *testing.T) {
	t.Parallel()
	w, asked := newReviewGate(t, breaksOff(escalation.SessionTimedOut), finds())
	answered := w.answerAfter(2*time.Hour, said(escalation.GateFix, "read compose.yaml first"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, "the reviewer starts fresh, with the guidance", answered.resolution.Next)
	require.Equal(t, []string{"", "read compose.yaml first"}, []string{(*asked)[1].Continues, (*asked)[1].Guidance})
	require.Equal(t, []any{escalation.ContinuityFresh, escalation.ReasonIndependent, int64(0)},
		[]any{result.Sessions[3].Continuity, result.Sessions[3].ContinuityReason, result.Sessions[3].ParentID})
	require.Empty(t, sessionsOf(result.Events, escalation.EventSessionReused))
	require.Len(t, w.ran, 2)
}

// TestContinuedReviewFails checks that a continuation that failed is not offered again, even if its process was
// interrupted. A new review can be continued again.
func TestContinuedReviewFails(t *testing.T) {
	t.Parallel()
	interrupted := func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		result, err := breaksOff(escalation.SessionFailed)(input)
		result.Report.Interrupted = true
		return result, err
	}
	w, asked := newReviewGate(t, breaksOff(escalation.SessionTimedOut), interrupted, breaksOff(escalation.SessionBudgetExhausted), finds())
	w.answerAfter(1*time.Hour, said(escalation.GateContinue, ""))
	again := w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateContinue, ""))
	w.replyAfter(2*time.Hour, saidAt("gate-2", escalation.GateContinue, ""))
	w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateFix, ""))
	w.answerAfter(4*time.Hour, saidAt("gate-3", escalation.GateContinue, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, result.Gates, 3)
	const why = "gate-2 does not offer to continue: going on with it was tried, and failed: only a new session may do better"
	require.Equal(t, why, again.refusal)
	require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventGateRefused), "\n"), why)
	require.Nil(t, result.Gates[1].Continuation)
	require.Equal(t, result.Sessions[4].SessionID, result.Gates[2].Continuation.SessionID)
	require.Equal(t, []string{"", result.Sessions[2].SessionID, "", result.Sessions[4].SessionID}, []string{
		(*asked)[0].Continues, (*asked)[1].Continues, (*asked)[2].Continues, (*asked)[3].Continues,
	})
}

// TestNoContinuedReview checks when the gate of a review offers no continuation, and says why.
func TestNoContinuedReview(t *testing.T) {
	t.Parallel()
	human := objection("a")
	human.Action = review.HumanRequired
	for name, c := range map[string]struct {
		reviewer func(activities.RunReviewInput) (activities.RunReviewResult, error)
		change   func(*world)
		why      string
		role     string
	}{
		"the reviewer's findings lead to the author": {
			reviewer: finds(human), why: "the next step is a correction, and the last session was that of the reviewer", role: "author",
		},
		"the invalid verdict": {
			reviewer: breaksOff(escalation.SessionCompleted), why: "it ended without a valid verdict", role: "reviewer",
		},
		"no transcript": {
			reviewer: breaksOff(escalation.SessionTimedOut), change: func(w *world) { w.transcript = func() (bool, error) { return false, nil } },
			why: "its transcript is gone", role: "reviewer",
		},
		"no reviewer has run": {
			change: func(w *world) { w.policy.ChainBudgetUSD = 0.13 },
			why:    "the next step is review, and the last session was that of the author", role: "reviewer",
		},
		"the day's budget is spent": {
			change: func(w *world) {
				w.policy.DayBudgetUSD = 1
				w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
					if request.Purpose == escalation.PurposeReview {
						return escalation.AdmissionFacts{DaySpentUSD: 2}
					}
					return escalation.AdmissionFacts{}
				}
			},
			why: "the next step is review, and the last session was that of the author", role: "reviewer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewGate(t, c.reviewer)
			if c.change != nil {
				c.change(w)
			}
			gate := w.gateAfter(t, time.Hour)
			byUpdate := w.answerAfter(2*time.Hour, said(escalation.GateContinue, "go on"))
			w.replyAfter(3*time.Hour, said(escalation.GateContinue, "go on"))
			w.answerAfter(4*time.Hour, said(escalation.GateAbort, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeAborted, result.Outcome)
			require.Nil(t, gate.Continuation)
			require.Equal(t, c.role, gate.Role)
			require.Contains(t, gate.NoContinuation, c.why)
			require.NotContains(t, gate.Options, escalation.GateContinue)

			want := "gate-1 does not offer to continue: " + gate.NoContinuation
			require.Equal(t, want, byUpdate.refusal)
			require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventGateRefused), "\n"), want)
			_, err = escalation.ParseGateReply(*gate, "c: go on")
			require.EqualError(t, err, want, "the terminal")
		})
	}
}

// TestContinuedCorrection continues an author's session that was interrupted in a correction. The chain continues at
// the gate in a new run in one case.
func TestContinuedCorrection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failedChecks bool
		resume       review.State
	}{
		"auto_fix":      {false, review.StateAutoFix},
		"quality_retry": {true, review.StateQualityRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, finds(objection("wrong-port")), finds())
			if c.failedChecks {
				w.review, asked = inTurn(t, finds())
				commit := w.change
				w.change = func(session int) *activities.Change {
					change := commit(session)
					if session == 2 {
						change.Checks, change.CheckOutput = review.QualityFailed, "exit code 1"
					}
					return change
				}
			}
			w.tiers[2] = ends(escalation.SessionTimedOut)
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateContinue, "use port 8080"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			interrupted := result.Sessions[len(result.Sessions)-3]
			require.Equal(t, &escalation.Continuation{
				SessionID: interrupted.SessionID, Tier: escalation.TierSafeRepair, Role: "author", Resume: string(c.resume),
				Status: escalation.SessionTimedOut,
			}, gate.Continuation, gate.NoContinuation)
			require.Equal(t, escalation.GateTimedOut, gate.Source)
			continued := w.ran[3]
			require.Equal(t, []any{true, interrupted.SessionID, "use port 8080"},
				[]any{continued.Continues, continued.ParentSessionID, continued.Guidance})
			require.Equal(t, c.failedChecks, continued.Correction != nil, "the conversation has the findings")
			require.Equal(t, escalation.ReasonContinued, result.Sessions[len(result.Sessions)-2].ContinuityReason)
			require.Equal(t, "c4", (*asked)[len(*asked)-1].Change.Commit)
			require.Equal(t, []activities.PushRequest{{Branch: "claudeops/x", Commit: "c4", Base: "b0", Pack: []byte("4")}}, w.pushed)
		})
	}
}

// TestContinuedCorrectionFails checks that a correction that a person let continue is offered again only if it asks for
// a person.
func TestContinuedCorrectionFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends    tierScript
		offered bool
	}{
		"its time is up":     {ends(escalation.SessionTimedOut), false},
		"it cannot do it":    {concludes(escalation.VerdictFailed, 0.1), false},
		"it asks for people": {concludes(escalation.VerdictNeedsHuman, 0.1), true},
		"it commits nothing": {concludes(escalation.VerdictResolved, 0.1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewGate(t, finds(objection("wrong-port")), finds())
			commit := w.change
			w.change = func(int) *activities.Change { return commit(2) }
			w.tiers[2], w.tiers[3] = ends(escalation.SessionTimedOut), c.ends
			w.answerAfter(1*time.Hour, said(escalation.GateContinue, ""))
			gate := w.gateAfter(t, 2*time.Hour)
			w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, "gate-2", gate.ID)
			require.Equal(t, c.offered, gate.Continuation != nil, gate.NoContinuation)
			if c.offered {
				require.Equal(t, []any{result.Sessions[4].SessionID, "author", "auto_fix"},
					[]any{gate.Continuation.SessionID, gate.Continuation.Role, gate.Continuation.Resume})
			} else {
				require.Contains(t, gate.NoContinuation, "was tried, and failed")
			}
		})
	}
}

// TestCorrectionGoesOnInANewRun lets a chain continue as new while a person decides on a correction.
func TestCorrectionGoesOnInANewRun(t *testing.T) {
	t.Parallel()
	for action, corrects := range map[escalation.GateAction]bool{escalation.GateFix: true, escalation.GateContinue: false} {
		before, _ := newReviewGate(t, finds(objection("wrong-port")))
		before.tiers[2] = ends(escalation.SessionTimedOut)
		before.policy.Gate.Remind = []escalation.Duration{escalation.Duration(time.Hour)}
		before.longHistory(70 * time.Minute)
		saved, _ := before.continueAsNew(t, workflows.ChainInput{})

		w, asked := newReviewGate(t, finds())
		w.env.SetContinuedExecutionRunID("the-run-before")
		w.policy, w.opened = escalation.Policy{}, before.opened
		w.change = func(int) *activities.Change {
			return &activities.Change{Branch: "claudeops/x", Commit: "c9", Files: []review.File{{Path: "a", Listed: true, Added: 1}}, Checks: review.QualityNone}
		}
		saved.Carried.FirstRunID = "run-1"
		w.env.SetStartTime(saved.Carried.State.Gates[0].OpenedAt.Add(70 * time.Minute))
		w.tiers = []tierScript{concludes(escalation.VerdictResolved, 0.1)}
		w.answerAfter(2*time.Hour, said(action, "use port 8080"))
		result, err := w.run(t, saved)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
		require.Equal(t, corrects, w.ran[0].Correction != nil)
		require.Equal(t, !corrects, w.ran[0].Continues)
		require.Equal(t, "use port 8080", w.ran[0].Guidance)
		require.Equal(t, []review.Finding{opened(objection("wrong-port"))}, (*asked)[0].Before)
		require.Equal(t, []activities.PushRequest{{Branch: "claudeops/x", Commit: "c9"}}, w.pushed)
	}
}

// TestCorrectionPassesTheCooldown checks that the cooldown that a chain's own repair has started does not delay its
// correction. It still delays other repairs.
func TestCorrectionPassesTheCooldown(t *testing.T) {
	t.Parallel()
	w, _ := newReviewGate(t, finds(objection("wrong-port")), finds())
	repaired := func() bool { return len(w.ran) >= 2 }
	w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		if !repaired() {
			return escalation.AdmissionFacts{}
		}
		return coolingUntil(func() time.Time { return now.Add(time.Hour) })(request, now)
	}
	w.policy.Cooldowns.MaxWait = escalation.Duration(24 * time.Hour)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Empty(t, messagesOf(result.Events, escalation.EventWaitStarted))
	require.Len(t, w.ran, 3)
	var corrections []bool
	for _, request := range w.requests {
		corrections = append(corrections, request.Correction)
	}
	require.Equal(t, []bool{false, false, false, true, false}, corrections)
}

// TestOverrideAfterAFailedPush has a push repeated that the remote did not take: by itself, and by a person, who
// overrides or has it repeated. The chain ends as the person has decided who accepted the change.
func TestOverrideAfterAFailedPush(t *testing.T) {
	t.Parallel()
	for _, action := range []escalation.GateAction{escalation.GateOverride, escalation.GateFix} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewGate(t, finds(objection("a")))
			w.policy.Review.MaxFixes = 0
			w.pushProblem = "no route"
			first := w.gateAfter(t, 30*time.Minute)
			w.answerAfter(1*time.Hour, said(escalation.GateOverride, ""))
			gate := w.gateAfter(t, 80*time.Minute)
			w.env.RegisterDelayedCallback(func() { w.pushProblem = "" }, 90*time.Minute)
			w.answerAfter(2*time.Hour, saidAt("gate-2", action, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, "commit c2 is pushed as it is with what is open (finding 1: P1 a (compose.yaml:4): the port is wrong), "+
				"and the chain ends",
				first.Next(escalation.GateClosing{Action: escalation.GateOverride}))
			require.Equal(t, "the chain ends, and commit c2 stays on its branch without a push",
				first.Next(escalation.GateClosing{Action: escalation.GateAbort}))
			require.Contains(t, gate.Reason, "no route")
			require.Equal(t, "what is approved is pushed again", gate.Next(escalation.GateClosing{Action: escalation.GateFix}))
			require.Equal(t, escalation.OutcomeOverridden, result.Outcome, result.Reason)
			require.Len(t, w.pushed, 4, "three attempts before a person is asked")
			require.Equal(t, "https://git.example.org/infra", result.Reviews[0].Pushed)
			require.Len(t, w.ran, 2)
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestChecksThatCannotRun lets the author repair what keeps the checks from running. They run again, on its new commit
// or on the one before.
func TestChecksThatCannotRun(t *testing.T) {
	t.Parallel()
	for name, latest := range map[string]string{"the author commits": "c3", "the author has nothing to commit": "c2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, finds())
			commit := w.change
			w.change = func(session int) *activities.Change {
				if session == 2 || latest == "c2" {
					change := commit(2)
					change.Checks, change.CheckOutput = review.QualityUnknown, "the worktree has changes"
					if session > 2 {
						change.Checks, change.CheckOutput = review.QualityPassed, ""
					}
					return change
				}
				return commit(session)
			}
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateFix, "commit them"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, []any{"", "quality"}, []any{gate.Role, gate.Resume})
			require.Equal(t, "tier 2 starts fresh", gate.Next(escalation.GateClosing{Action: escalation.GateFix}))
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.Equal(t, &activities.Correction{Commit: "c2", Why: "the checks could not run: the worktree has changes"}, w.ran[2].Correction)
			require.Equal(t, latest, (*asked)[0].Change.Commit)
			require.Equal(t, []activities.PushRequest{{Branch: "claudeops/x", Commit: latest, Base: "b0", Pack: []byte(latest[1:])}}, w.pushed)
		})
	}
}
