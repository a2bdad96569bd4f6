package escalation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestChooseContinuity(t *testing.T) {
	t.Parallel()
	parent := func(change func(*escalation.Session)) *escalation.Session {
		session := concluded(1, &escalation.Verdict{Status: escalation.VerdictEscalate})
		session.ReportedSessionID = "reported"
		session.ContextTokens = 100_000
		if change != nil {
			change(&session)
		}
		return &session
	}
	tests := map[string]struct {
		input escalation.ContinuityInput
		want  escalation.ContinuityChoice
	}{
		"first tier": {
			escalation.ContinuityInput{},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityFresh, Reason: escalation.ReasonFirstTier},
		},
		"first tier, handoff configured": {
			escalation.ContinuityInput{Mode: escalation.ContinuityHandoffOnly},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityFresh, Reason: escalation.ReasonFirstTier},
		},
		"room in the window": {
			escalation.ContinuityInput{Parent: parent(nil), Window: 200_000, Threshold: 0.8},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession},
		},
		"exactly at the threshold": {
			escalation.ContinuityInput{Parent: parent(nil), Window: 125_000, Threshold: 0.8},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession},
		},
		"one token over the threshold": {
			escalation.ContinuityInput{
				Parent: parent(func(s *escalation.Session) { s.ContextTokens++ }), Window: 125_000, Threshold: 0.8,
			},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonContextPressure},
		},
		"unknown window": {
			escalation.ContinuityInput{Parent: parent(nil), Threshold: 0.8},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession},
		},
		"exactly at the cap": {
			escalation.ContinuityInput{Parent: parent(nil), Window: 1_000_000, Threshold: 0.8, MaxTokens: 100_000},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession},
		},
		"one token over the cap": {
			escalation.ContinuityInput{Parent: parent(nil), Window: 1_000_000, Threshold: 0.8, MaxTokens: 99_999},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonContextPressure},
		},
		"over the cap, unknown window": {
			escalation.ContinuityInput{Parent: parent(nil), MaxTokens: 99_999},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonContextPressure},
		},
		"under the cap, over the threshold": {
			escalation.ContinuityInput{Parent: parent(nil), Window: 100_000, Threshold: 0.8, MaxTokens: 200_000},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonContextPressure},
		},
		"no id was reported": {
			escalation.ContinuityInput{Parent: parent(func(s *escalation.Session) { s.ReportedSessionID = "" })},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonSessionIDMissing},
		},
		"resume failed": {
			escalation.ContinuityInput{Parent: parent(nil).Disown(escalation.Session{})},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonResumeFailed},
		},
		"transcript lost": {
			escalation.ContinuityInput{Parent: parent(nil).Disown(endedAs(escalation.SessionTranscriptLost))},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonTranscriptLost},
		},
		"configured": {
			escalation.ContinuityInput{Parent: parent(nil), Mode: escalation.ContinuityHandoffOnly},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityHandoff, Reason: escalation.ReasonConfigured},
		},
		"configured, but the parent left nothing to hand off": {
			escalation.ContinuityInput{
				Parent: parent(func(s *escalation.Session) { s.Verdict = nil }), Mode: escalation.ContinuityHandoffOnly,
			},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession},
		},
		"interrupted": {
			escalation.ContinuityInput{Interrupted: true, Parent: parent(nil), Mode: escalation.ContinuityHandoffOnly},
			escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonInterrupted},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, escalation.ChooseContinuity(tt.input))
		})
	}
}

func TestChooseContinuityProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		input := escalation.ContinuityInput{
			Interrupted: rapid.Bool().Draw(t, "interrupted"),
			Window:      rapid.IntRange(0, 300_000).Draw(t, "window"),
			Threshold:   rapid.Float64Range(0.01, 1).Draw(t, "threshold"),
			MaxTokens:   rapid.IntRange(0, 300_000).Draw(t, "max tokens"),
			Mode: rapid.SampledFrom([]escalation.ContinuityMode{
				escalation.ContinuityAuto, escalation.ContinuityHandoffOnly,
			}).Draw(t, "mode"),
		}
		if rapid.Bool().Draw(t, "has parent") {
			parent := anySession().Draw(t, "parent")
			parent.Unusable = rapid.SampledFrom([]escalation.ContinuityReason{
				"", escalation.ReasonResumeFailed, escalation.ReasonTranscriptLost,
			}).Draw(t, "unusable")
			input.Parent = &parent
		}

		got := escalation.ChooseContinuity(input)

		require.NotEmpty(t, got.Reason)
		parent := input.Parent
		switch got.Continuity {
		case escalation.ContinuityResume:
			if got.Reason == escalation.ReasonInterrupted {
				require.True(t, input.Interrupted)
				return
			}
			require.NotEmpty(t, parent.ReportedSessionID, "resumes a conversation without an id")
			require.Empty(t, parent.Unusable, "resumes what could not be resumed")
			require.False(t, input.MaxTokens > 0 && parent.ContextTokens > input.MaxTokens)
			require.False(t, input.Window > 0 && float64(parent.ContextTokens) > input.Threshold*float64(input.Window))
		case escalation.ContinuityFresh:
			require.Nil(t, parent, "forgets the parent")
		case escalation.ContinuityHandoff:
			require.NotNil(t, parent, "hands off nothing")
		default:
			require.Fail(t, "unknown continuity", got.Continuity)
		}
	})
}

func endedAs(status escalation.SessionStatus) escalation.Session {
	return escalation.Session{Report: escalation.Report{Status: status}}
}
