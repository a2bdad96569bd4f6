package review_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// interrupted is a session of a state that timed out and can be continued.
func interrupted(state, resume review.State) review.Stopped {
	return review.Stopped{
		State: state, Resume: resume, SessionID: "s", Tier: 2, Status: escalation.SessionTimedOut, Transcript: escalation.TranscriptReachable,
	}
}

// TestContinuationOverEveryState checks all pairs of a state before the gate and a state after it, with every status.
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
	resumable := map[escalation.SessionStatus]bool{
		escalation.SessionCompleted: true, escalation.SessionFailed: true, escalation.SessionTimedOut: true,
		escalation.SessionBudgetExhausted: true, escalation.SessionRunning: false, escalation.SessionStopped: false,
		escalation.SessionResumeFailed: false, escalation.SessionTranscriptLost: false,
	}
	for _, state := range states {
		for _, resume := range states {
			for status, usable := range resumable {
				stopped := interrupted(state, resume)
				stopped.Status = status
				offered, why := review.ContinuationOf(stopped)
				if state != resume || roles[state] == "" || !usable {
					require.Nil(t, offered, "%s -> %s, %s", state, resume, status)
					require.NotEmpty(t, why)
					continue
				}
				require.Equal(t, &escalation.Continuation{
					SessionID: "s", Tier: 2, Resume: string(resume), Role: string(roles[state]), Status: status,
				}, offered, why)
			}
		}
	}
	offered, why := review.ContinuationOf(interrupted(review.StateReview, review.StateAutoFix))
	require.Nil(t, offered)
	require.Contains(t, why, "the last session was that of the reviewer")
}

// TestStoppedAt checks what a gate learns from the session before it.
func TestStoppedAt(t *testing.T) {
	t.Parallel()
	session := func(change func(*escalation.Session)) *escalation.Session {
		s := &escalation.Session{SessionID: "s", Tier: 2, Report: escalation.Report{Status: escalation.SessionFailed, ReportedSessionID: "s"}}
		if change != nil {
			change(s)
		}
		return s
	}
	completed := func(s *escalation.Session) { s.Status = escalation.SessionCompleted }
	for name, c := range map[string]struct {
		state   review.State
		session *escalation.Session
		want    review.Stopped
	}{
		"none":            {review.StateReview, nil, review.Stopped{Resume: review.StateReview}},
		"failed":          {review.StateAutoFix, session(nil), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionFailed}},
		"no conversation": {review.StateAutoFix, session(func(s *escalation.Session) { s.ReportedSessionID = "" }), review.Stopped{Tier: 2, Status: escalation.SessionFailed}},
		"a continuation":  {review.StateAutoFix, session(func(s *escalation.Session) { s.ContinuityReason = escalation.ReasonContinued }), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionFailed, Continued: true}},
		"a correction": {review.StateAutoFix, session(func(s *escalation.Session) {
			s.Purpose, s.ContinuityReason = escalation.PurposeContinuation, escalation.ReasonCorrection
		}), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionFailed}},
		"an author":  {review.StateAutoFix, session(completed), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionCompleted}},
		"a reviewer": {review.StateReview, session(completed), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionCompleted, Unusable: true}},
		"it asks a person": {review.StateExecute, session(func(s *escalation.Session) {
			s.Status, s.Verdict = escalation.SessionCompleted, &escalation.Verdict{Status: escalation.VerdictNeedsHuman}
		}), review.Stopped{SessionID: "s", Tier: 2, Status: escalation.SessionCompleted, NeedsHuman: true}},
	} {
		c.want.Resume = review.StateReview
		if c.session != nil {
			c.want.State = c.state
		}
		require.Equal(t, c.want, review.StoppedAt(c.state, review.StateReview, c.session), name)
	}
}

func TestContinuation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*review.Stopped)
		want   bool
	}{
		"a time-out keeps the conversation":    {func(*review.Stopped) {}, true},
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
