package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// limited returns the report of a session that a limit of the account has ended. The limit ends two hours later.
func (w *world) limited(sessionID string) escalation.Report {
	return escalation.Report{
		Status: escalation.SessionFailed, Ending: escalation.EndingLimited, Error: "a limit of the account is used up",
		LimitedUntil: w.env.Now().Add(2 * time.Hour), ReportedSessionID: sessionID, Attempts: 1,
	}
}

// newLimitWorld returns a world with required reviews whose reviewer meets the limit of the account the given number of
// times. Each time it ends two hours later.
func newLimitWorld(t *testing.T, times int) (*world, *[]time.Time) {
	t.Helper()
	w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.5))
	w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	ready, asked := w.review, []time.Time{}
	w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		asked = append(asked, w.env.Now())
		if len(asked) > times {
			return ready(input)
		}
		report := w.limited(input.SessionID)
		return activities.RunReviewResult{Report: report, Problem: "the review ended failed: " + report.Error}, nil
	}
	return w, &asked
}

// requireToldOfLimits checks that people are told of limits of two hours that sessions have met at these times: once a
// day for each day on which they end.
func requireToldOfLimits(t *testing.T, people *audience, met ...time.Time) {
	t.Helper()
	days, keys := map[string]bool{}, map[string]bool{}
	for _, at := range met {
		days[at.UTC().Format(time.DateOnly)+at.Add(2*time.Hour).UTC().Format(time.DateOnly)] = true
	}
	for _, told := range people.got {
		if told.Kind == escalation.NotifyLimited {
			keys[told.Key] = true
		}
	}
	require.Len(t, keys, len(days))
}

// TestAReviewerWaitsForTheLimit checks that a reviewer that the limit of the account has ended is asked again after
// that limit, and not before.
func TestAReviewerWaitsForTheLimit(t *testing.T) {
	t.Parallel()
	w, asked := newLimitWorld(t, 1)
	people := w.listen()
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, *asked, 2)
	require.GreaterOrEqual(t, (*asked)[1].Sub((*asked)[0]), 2*time.Hour)
	require.Len(t, messagesOf(w.events, escalation.EventWaitStarted), 1)
	require.Equal(t, escalation.ReasonIndependent, result.Sessions[3].ContinuityReason, "it had not begun")
	require.True(t, slices.ContainsFunc(w.recorded, func(recorded activities.RecordEventsInput) bool {
		return recorded.Release && len(messagesOf(recorded.Events, escalation.EventWaitStarted)) > 0
	}), "other chains may repair meanwhile")
	requireToldOfLimits(t, people, (*asked)[0])
	require.Len(t, w.pushed, 1)
}

// TestAReviewerDoesNotWaitForEver checks that a limit that returns leads to a person after the longest wait of a chain.
func TestAReviewerDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	w, asked := newLimitWorld(t, 99)
	people := w.listen()
	w.answerAfter(10*time.Hour, said(escalation.GateAbort, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
	require.Len(t, *asked, 4, "at 0, 2, 4 and 6 hours")
	require.Len(t, result.Gates, 1)
	require.Contains(t, result.Gates[0].Reason, "a limit of the account is used up")
	requireToldOfLimits(t, people, (*asked)[:3]...) // the fourth time a gate opens
}

// TestAnAuthorWaitsForTheLimit checks the same for the author of a plan: it goes on in its conversation after the
// limit, and a limit that returns leads to a person.
func TestAnAuthorWaitsForTheLimit(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]int{"once": 1, "for ever": 99} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
			people := w.listen()
			var asked []time.Time
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				asked = append(asked, w.env.Now())
				if len(asked) > times {
					return w.commits(turn, input)
				}
				report := w.limited(input.SessionID)
				report.ContextTokens = 20_000
				return activities.RunAuthorResult{Report: report}
			}
			w.answerAfter(10*time.Hour, said(escalation.GateAbort, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Prompt: "quickly", Actor: "anna"})
			require.NoError(t, err)
			require.GreaterOrEqual(t, asked[1].Sub(asked[0]), 2*time.Hour)
			require.Equal(t, escalation.ReasonInterrupted, result.Sessions[1].ContinuityReason, "no person has chosen it")
			if times == 1 {
				require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
				requireToldOfLimits(t, people, asked[0])
				return
			}
			require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
			require.Len(t, asked, 4, "at 0, 2, 4 and 6 hours")
			requireToldOfLimits(t, people, asked[:3]...)
		})
	}
}

// TestNoCommitIsLostToALimit ends sessions of an author that have committed: by a limit, and by a refusal. Then the
// conversation cannot be continued. The new author works on the commit, on any host.
func TestNoCommitIsLostToALimit(t *testing.T) {
	t.Parallel()
	for name, interrupted := range map[string]int{"of its first turn": 1, "of a correction": 2} {
		for _, limited := range []bool{true, false} {
			if interrupted == 1 && !limited {
				continue // a refusal of a first turn ends at a gate
			}
			t.Run(fmt.Sprint(name, ", limited ", limited), func(t *testing.T) {
				t.Parallel()
				w := newPlanWorld(t)
				w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
				if interrupted == 2 {
					w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
				}
				anew := interrupted + 1
				w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
					result := w.commits(turn, input)
					switch {
					case turn == interrupted && limited:
						anew = turn + 2
						result.Work, result.Report = nil, w.limited(input.SessionID)
						result.Report.ContextTokens = 20_000
					case turn == interrupted:
						result.Work, result.Report = nil, escalation.Report{
							Status: escalation.SessionFailed, Ending: escalation.EndingRefused, Attempts: 1, ContextTokens: 20_000, ReportedSessionID: input.SessionID,
						}
					case turn < anew && turn > interrupted:
						return activities.RunAuthorResult{Report: escalation.Report{Status: escalation.SessionTranscriptLost, Attempts: 1}}
					}
					return result
				}
				result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Phases: []string{"1"}})
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
				require.Len(t, w.turns, anew)
				last, left := w.turns[anew-1], fmt.Sprint("c", interrupted)
				require.Equal(t, left, last.At.Commit)
				require.Equal(t, []any{false, ""}, []any{last.Begins, last.ParentSessionID})
				require.NotNil(t, last.Correction, "it must know of the commit")
				if interrupted == 1 {
					require.Equal(t, left, last.Correction.Commit)
					require.Contains(t, last.Correction.Why, "cannot go on in its conversation")
				}
				require.Equal(t, fmt.Sprint("c", anew), w.pushed[0].Commit)
			})
		}
	}
}

// TestAWaitOutlastsARun lets the work on a plan continue as new while its author waits for the limit of the account.
// The longest wait is counted from its beginning, in the run before.
func TestAWaitOutlastsARun(t *testing.T) {
	t.Parallel()
	limited := func() (*planWorld, *[]time.Time) {
		w := newPlanWorld(t)
		w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
		var asked []time.Time
		w.author = func(_ int, input activities.RunAuthorInput) activities.RunAuthorResult {
			asked = append(asked, w.env.Now())
			return activities.RunAuthorResult{Report: w.limited(input.SessionID)}
		}
		return w, &asked
	}
	w, before := limited()
	w.longHistory(3 * time.Hour)
	_, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Prompt: "quickly", Actor: "anna"})
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &anew)
	require.Len(t, *before, 2, "at 0 and 2 hours")
	var input workflows.PlanInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))

	again, after := limited()
	again.env.SetContinuedExecutionRunID("the-run-before")
	again.env.SetStartTime(w.env.Now())
	again.answerAfter(10*time.Hour, said(escalation.GateAbort, ""))
	result, err := again.run(workflows.PhaseExecutionWorkflow, input)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
	require.Len(t, *after, 2, "at 4 and 6 hours, as without a new run")
}
