package review_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
)

// interrupted is a session of a state that timed out and can be continued.
func interrupted(state, resume review.State) review.Stopped {
	return review.Stopped{
		State: state, Resume: resume, SessionID: "s", Status: escalation.SessionTimedOut, Transcript: escalation.TranscriptReachable,
	}
}

// TestContinuationOverEveryState checks all pairs of a state before the gate and a state after it.
func TestContinuationOverEveryState(t *testing.T) {
	t.Parallel()
	states := []review.State{
		review.StateExecute, review.StateQuality, review.StateQualityRetry, review.StateReview, review.StateAutoFix, review.StateGate,
		review.StateApproved, review.StateAborted,
	}
	roles := map[review.State]review.Role{
		review.StateExecute: review.Author, review.StateQualityRetry: review.Author, review.StateAutoFix: review.Author,
		review.StateReview: review.Reviewer,
	}
	for _, state := range states {
		for _, resume := range states {
			offered, why := review.ContinuationOf(interrupted(state, resume))
			if state != resume || roles[state] == "" {
				require.Nil(t, offered, "%s -> %s", state, resume)
				require.NotEmpty(t, why)
				continue
			}
			require.Equal(t, &review.Continuation{SessionID: "s", Resume: resume, Role: roles[state]}, offered, why)
		}
	}
	offered, why := review.ContinuationOf(interrupted(review.StateReview, review.StateAutoFix))
	require.Nil(t, offered)
	require.Contains(t, why, "the last session was that of the reviewer")
}

func TestContinuation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*review.Stopped)
		want   bool
	}{
		"a time-out keeps the conversation":    {func(*review.Stopped) {}, true},
		"unless it is to be given up":          {func(s *review.Stopped) { s.AbortOnTimeout = true }, false},
		"only a time-out gives it up":          {func(s *review.Stopped) { s.AbortOnTimeout, s.Status = true, escalation.SessionFailed }, true},
		"a failure":                            {func(s *review.Stopped) { s.Status = escalation.SessionFailed }, true},
		"a budget":                             {func(s *review.Stopped) { s.Status = escalation.SessionBudgetExhausted }, true},
		"a question":                           {func(s *review.Stopped) { s.Status, s.NeedsHuman = escalation.SessionCompleted, true }, true},
		"a continuation that failed":           {func(s *review.Stopped) { s.Continued = true }, false},
		"a continuation that asks for people":  {func(s *review.Stopped) { s.Continued, s.NeedsHuman, s.Status = true, true, escalation.SessionCompleted }, true},
		"an invalid verdict pins no session":   {func(s *review.Stopped) { s.Unusable, s.Status = true, escalation.SessionCompleted }, false},
		"stopped":                              {func(s *review.Stopped) { s.Status = escalation.SessionStopped }, false},
		"a conversation that cannot be loaded": {func(s *review.Stopped) { s.Status = escalation.SessionResumeFailed }, false},
		"a lost conversation":                  {func(s *review.Stopped) { s.Status = escalation.SessionTranscriptLost }, false},
		"no conversation":                      {func(s *review.Stopped) { s.SessionID = "" }, false},
		"no transcript":                        {func(s *review.Stopped) { s.Transcript = escalation.TranscriptGone }, false},
		"nobody knows":                         {func(s *review.Stopped) { s.Transcript = escalation.TranscriptUnknown }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, state := range []review.State{review.StateExecute, review.StateQualityRetry, review.StateReview, review.StateAutoFix} {
				stopped := interrupted(state, state)
				c.change(&stopped)
				offered, why := review.ContinuationOf(stopped)
				require.Equal(t, c.want, offered != nil, "%s: %s", state, why)
				require.Equal(t, c.want, why == "")
			}
		})
	}
}
