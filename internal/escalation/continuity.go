package escalation

// Continuity says how a session gets the context of the previous session.
type Continuity string

// The continuities.
const (
	ContinuityFresh   Continuity = "fresh"   // no context
	ContinuityResume  Continuity = "resume"  // a fork of the conversation
	ContinuityHandoff Continuity = "handoff" // a summary of the conversation
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
	ReasonIndependent      ContinuityReason = "independent" // a reviewer judges without what was said before
	// ReasonPhase: the author of a plan begins each phase without earlier words
	ReasonPhase      ContinuityReason = "phase"
	ReasonCorrection ContinuityReason = "correction" // the author corrects what a review or a check has found
	ReasonContinued  ContinuityReason = "continued"  // an operator chose to continue an interrupted session
)

// ContinuityMode is the configured preference for resuming or for handing off.
type ContinuityMode string

// The modes.
const (
	ContinuityAuto        ContinuityMode = "auto"    // resume if possible
	ContinuityHandoffOnly ContinuityMode = "handoff" // never resume
)

// ContinuityInput is the input of ChooseContinuity.
type ContinuityInput struct {
	// Interrupted reports whether an earlier process of this session died and left a transcript.
	Interrupted bool
	// Parent is the session whose context the next session needs; nil if it needs none.
	Parent *Session
	// Window is the context window of the next model in tokens; 0 if unknown.
	Window int
	// Threshold is the largest part of Window that a resumed conversation is permitted to fill, from 0 to 1.
	Threshold float64
	// MaxTokens caps the size of a resumed conversation in tokens, independently of Window; 0 sets no cap.
	MaxTokens int
	Mode      ContinuityMode
}

// ContinuityChoice is a continuity with its reason.
type ContinuityChoice struct {
	Continuity Continuity       `json:"continuity"`
	Reason     ContinuityReason `json:"reason"`
}

// ChooseContinuity returns how the next session gets the context of its parent, the session s.Parent. If the parent's
// conversation has no ID, it is never resumed. The configured preference for handoffs applies only if the parent has a
// verdict, because a handoff is built from this verdict. The parent can lack a verdict if an operator named its
// conversation in the chain's input.
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
	case s.Parent.Unusable != "":
		return ContinuityChoice{ContinuityHandoff, s.Parent.Unusable}
	case s.Full():
		return ContinuityChoice{ContinuityHandoff, ReasonContextPressure}
	default:
		return ContinuityChoice{ContinuityResume, ReasonParentSession}
	}
}

// Full reports whether the conversation of s.Parent is too large to be resumed. It is too large if it has more
// than MaxTokens tokens, or fills a larger part of Window than Threshold. If Window is unknown, only MaxTokens is
// checked. In that case the CLI can still report that the prompt is too long.
func (s ContinuityInput) Full() bool {
	if s.MaxTokens > 0 && s.Parent.ContextTokens > s.MaxTokens {
		return true
	}
	return s.Window > 0 && float64(s.Parent.ContextTokens) > s.Threshold*float64(s.Window)
}
