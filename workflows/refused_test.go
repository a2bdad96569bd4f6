package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// refusedAs returns a script of a session that has ended with a report like this one, without a verdict.
func refusedAs(report escalation.Report) tierScript {
	return func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		if report.Status == "" {
			report.Status = escalation.SessionFailed
		}
		report.Error, report.ReportedSessionID, report.Attempts = "it says why", input.SessionID, max(report.Attempts, 1)
		return report, nil
	}
}

// unusable is the report of a session that the provider has refused in the conversation that it resumed.
func unusable() escalation.Report {
	return escalation.Report{Status: escalation.SessionResumeFailed, Ending: escalation.EndingUnusable}
}

// TestFixDoesNotResumeARefusedConversation starts from a conversation that has no record and in which the model or its
// provider refuses. The fix begins without it: after work that was refused, and after an attempt that the provider did
// not answer.
func TestFixDoesNotResumeARefusedConversation(t *testing.T) {
	t.Parallel()
	again := unusable()
	again.Attempts = 2
	interrupted := again
	interrupted.Interrupted = true
	for name, report := range map[string]escalation.Report{
		"by the model, after work": {Ending: escalation.EndingRefused, ContextTokens: 20_000, Turns: 4},
		"by the provider":          unusable(),
		"after an outage":          again,
		"after an interruption":    interrupted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, refusedAs(report), concludes(escalation.VerdictResolved, 0.1))
			w.answerAfter(time.Hour, said(escalation.GateFix, ""))
			result, err := w.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"}})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.True(t, result.Gates[0].Fresh)
			require.Equal(t, escalation.ContinuityFresh, result.Sessions[1].Continuity)
		})
	}
}

// TestAnInterruptedTierBeginsAnew checks that a tier which began from a handoff, lost its worker and is refused in its
// own conversation begins once more, and is told what it did.
func TestAnInterruptedTierBeginsAnew(t *testing.T) {
	t.Parallel()
	cut := unusable()
	cut.Interrupted, cut.ContextTokens, cut.Turns = true, 20_000, 4
	w := handingOff(t, writesHandoff("as it was written"))
	w.policy.Gate = escalation.GatePolicy{Timeout: escalation.Duration(time.Hour), OnTimeout: escalation.GateAbort}
	w.tiers = []tierScript{w.tiers[0], refusedAs(cut), w.tiers[1]}
	w.inFlight = []activities.ToolCall{{Number: 3, Name: "Bash", Input: "redeploy web", State: activities.ToolRunning}}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Empty(t, result.Gates, "nobody need decide that")
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, escalation.ReasonInterrupted, result.Sessions[2].ContinuityReason)
	require.Contains(t, w.ran[2].Handoff.Remediation, "redeploy web")
}

// TestARefusedConversationIsNotResumedAgain checks that no later session of a chain resumes a conversation that the
// provider has refused: not the recheck after a wait, and not the recheck after news of another chain.
func TestARefusedConversationIsNotResumedAgain(t *testing.T) {
	t.Parallel()
	limited := func(w *world) tierScript {
		return func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			return w.limited(input.SessionID), nil
		}
	}
	t.Run("after a wait", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
		w.tiers = []tierScript{
			concludes(escalation.VerdictEscalate, 0.1), refusedAs(unusable()), limited(w), concludes(escalation.VerdictHealthy, 0.1),
		}
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
		require.Equal(t, escalation.PurposeRecheck, result.Sessions[3].Purpose)
		require.Equal(t, escalation.ContinuityHandoff, result.Sessions[3].Continuity)
		require.Equal(t, escalation.ReasonResumeFailed, result.Sessions[3].ContinuityReason)
	})
	t.Run("after a handoff that could not be written", func(t *testing.T) {
		t.Parallel()
		w := handingOff(t, func(input activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
			report := unusable()
			report.ReportedSessionID = input.SessionID
			return activities.WriteHandoffResult{Report: report, Problem: "tier 1 left no handoff"}, nil
		})
		w.policy.Continuity, w.policy.ResumeMaxTokens = escalation.ContinuityAuto, 10_000
		w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
		w.tiers = []tierScript{w.tiers[0], limited(w), concludes(escalation.VerdictHealthy, 0.1)}
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Len(t, w.asked, 1)
		require.Equal(t, escalation.PurposeRecheck, result.Sessions[3].Purpose)
		require.Equal(t, escalation.ReasonResumeFailed, result.Sessions[3].ContinuityReason)
	})
	t.Run("by another chain", func(t *testing.T) {
		t.Parallel()
		const look = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
		observer := escalation.Session{
			ID: 7, SessionID: look, Tier: 1, Report: escalation.Report{ReportedSessionID: look, Status: escalation.SessionCompleted},
		}
		w := newWorld(t, concludes(escalation.VerdictResolved, 0.1))
		w.known = map[string]escalation.Session{look: *observer.Disown(escalation.Session{})}
		result, err := w.run(t, workflows.ChainInput{StartTier: 2, ResumeFrom: &workflows.ResumeFrom{SessionID: look}})
		require.NoError(t, err)
		require.Equal(t, escalation.ContinuityHandoff, result.Sessions[0].Continuity)
	})
}

// TestAnAuthorLearnsWhyItBeginsAnew checks that an author which is refused, also in its own conversation after an
// interruption, begins anew once, with the model's words.
func TestAnAuthorLearnsWhyItBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]escalation.Report{
		"":            {Status: escalation.SessionResumeFailed, Ending: escalation.EndingUnusable, Interrupted: true, Attempts: 2},
		"it says why": {Status: escalation.SessionFailed, Ending: escalation.EndingRefused, Interrupted: true, Attempts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
				if len(w.turns) > 1 {
					return w.commits(turn, input)
				}
				report.Error, report.ReportedSessionID = "it says why", input.SessionID
				return activities.RunAuthorResult{Report: report}
			}
			result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Prompt: "quickly", Actor: "anna"})
			require.NoError(t, err)
			require.Empty(t, result.Gates)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.Equal(t, name, w.turns[1].Refusal)
			require.Empty(t, w.turns[2].Refusal)
			require.Empty(t, w.turns[1].ParentSessionID)
		})
	}
}
