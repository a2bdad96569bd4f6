package escalation

// Continuity names the way in which a session gets the context of the previous session.
type Continuity string

// The continuities.
const (
	ContinuityFresh   Continuity = "fresh"   // no context
	ContinuityResume  Continuity = "resume"  // a fork of the conversation
	ContinuityHandoff Continuity = "handoff" // a summary of the conversation
)

// ContinuityReason names the reason for a continuity.
type ContinuityReason string

// The reasons.
const (
	ReasonFirstTier        ContinuityReason = "first_tier"
	ReasonParentSession    ContinuityReason = "parent_session"
	ReasonSessionIDMissing ContinuityReason = "session_id_missing"
	ReasonResumeFailed     ContinuityReason = "resume_failed"
	ReasonContextPressure  ContinuityReason = "context_pressure"
	ReasonTranscriptLost   ContinuityReason = "transcript_lost"
	ReasonConfigured       ContinuityReason = "configured"
	ReasonInterrupted      ContinuityReason = "interrupted"
	ReasonContinued        ContinuityReason = "continued" // an operator chose to continue an interrupted session
)

// ContinuityMode is the configured preference between resuming and handing off.
type ContinuityMode string

// The modes.
const (
	ContinuityAuto        ContinuityMode = "auto"    // resume if possible
	ContinuityHandoffOnly ContinuityMode = "handoff" // never resume
)

// ContinuityInput is the input of ChooseContinuity.
type ContinuityInput struct {
	// Interrupted reports whether an earlier process of the same session died and left a transcript.
	Interrupted bool
	// Parent is the session whose context is needed; nil if no context is needed.
	Parent *Session
	// ResumeFailed reports whether resuming Parent has already failed for this tier.
	ResumeFailed bool
	// TranscriptLost reports whether Parent's transcript is known to be lost.
	TranscriptLost bool
	// Window is the context window of the next model in tokens; 0 if unknown.
	Window int
	// Threshold is the share of Window that a resumed conversation may fill, 0 to 1.
	Threshold float64
	// MaxTokens caps the size of a resumed conversation in tokens, whatever the window; 0 sets no cap.
	MaxTokens int
	Mode      ContinuityMode
}

// ContinuityChoice is a continuity with its reason.
type ContinuityChoice struct {
	Continuity Continuity       `json:"continuity"`
	Reason     ContinuityReason `json:"reason"`
}

// ChooseContinuity returns the way in which the next session gets its context. A conversation without an ID is never
// resumed. The configured preference for handoffs applies only if the parent has a verdict. If an operator named the
// conversation, there is no verdict from which to build a handoff.
func ChooseContinuity(s ContinuityInput) ContinuityChoice {
	switch {
	case s.Interrupted:
		return ContinuityChoice{ContinuityResume, ReasonInterrupted}
	case s.Parent == nil:
		return ContinuityChoice{ContinuityFresh, ReasonFirstTier}
	case s.Mode == ContinuityHandoffOnly && s.Parent.Verdict != nil:
		return ContinuityChoice{ContinuityHandoff, ReasonConfigured}
	case s.Parent.ReportedSessionID == "":
		return ContinuityChoice{ContinuityHandoff, ReasonSessionIDMissing}
	case s.ResumeFailed:
		return ContinuityChoice{ContinuityHandoff, ReasonResumeFailed}
	case s.TranscriptLost:
		return ContinuityChoice{ContinuityHandoff, ReasonTranscriptLost}
	case underPressure(s):
		return ContinuityChoice{ContinuityHandoff, ReasonContextPressure}
	default:
		return ContinuityChoice{ContinuityResume, ReasonParentSession}
	}
}

// underPressure reports whether the parent's conversation exceeds the cap, or the threshold of the next model's window.
// An unknown window is not checked. In that case the CLI reports a prompt that is too long.
func underPressure(s ContinuityInput) bool {
	if s.MaxTokens > 0 && s.Parent.ContextTokens > s.MaxTokens {
		return true
	}
	return s.Window > 0 && float64(s.Parent.ContextTokens) > s.Threshold*float64(s.Window)
}
