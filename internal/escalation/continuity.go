package escalation

// Continuity is how a session got the context of the one before.
type Continuity string

// The continuities.
const (
	ContinuityFresh   Continuity = "fresh"   // it got none
	ContinuityResume  Continuity = "resume"  // the conversation itself, forked
	ContinuityHandoff Continuity = "handoff" // a summary of it
)

// ContinuityReason says why a continuity was chosen.
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
	ReasonContinued        ContinuityReason = "continued" // a person chose to go on with an interrupted session
)

// ContinuityMode is the configured preference.
type ContinuityMode string

// The modes.
const (
	ContinuityAuto        ContinuityMode = "auto"    // resume where possible
	ContinuityHandoffOnly ContinuityMode = "handoff" // never resume
)

// Situation is all that the choice of a continuity depends on.
type Situation struct {
	// Interrupted says that a process of this very session died and left a transcript.
	Interrupted bool
	// Parent is the session whose context the next one needs; nil if it needs none.
	Parent *Session
	// ResumeFailed says that resuming Parent was tried for this tier and failed.
	ResumeFailed bool
	// TranscriptLost says that Parent's transcript is known to be gone.
	TranscriptLost bool
	// Window is the context window of the next model, in tokens; 0 is unknown.
	Window int
	// Threshold is the share of Window that may be full, 0 to 1.
	Threshold float64
	// MaxTokens is how many tokens the conversation may hold, whatever the window; 0 is no cap.
	MaxTokens int
	Mode      ContinuityMode
}

// ContinuityChoice is a continuity and the reason for it.
type ContinuityChoice struct {
	Continuity Continuity       `json:"continuity"`
	Reason     ContinuityReason `json:"reason"`
}

// ChooseContinuity decides how the next session gets its context. It never resumes a
// conversation that has no id. A parent without a verdict, such as a conversation that a
// person named, has nothing to hand off, so the configured preference does not apply to it.
func ChooseContinuity(s Situation) ContinuityChoice {
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

// underPressure reports whether the parent's conversation holds more than the cap, or fills more of
// the next model's window than the threshold allows. An unknown window is no pressure: the CLI then
// says for itself that the prompt is too long.
func underPressure(s Situation) bool {
	if s.MaxTokens > 0 && s.Parent.ContextTokens > s.MaxTokens {
		return true
	}
	return s.Window > 0 && float64(s.Parent.ContextTokens) > s.Threshold*float64(s.Window)
}
