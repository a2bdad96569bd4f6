package review

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Continuation is a session of a loop that a person can have continued.
type Continuation struct {
	SessionID string `json:"session_id"`
	// Resume is the state in which it continues, and Role the role of the session.
	Resume State `json:"resume"`
	Role   Role  `json:"role"`
}

// Stopped describes the session before a gate of a loop.
type Stopped struct {
	// State is the state of the session. Resume is the state that follows the gate.
	State, Resume State
	// SessionID is the conversation as the CLI reported it; empty if it reported none.
	SessionID string
	Status    escalation.SessionStatus
	// NeedsHuman reports whether the session ended with the question for a person.
	NeedsHuman bool
	// Unusable reports whether the session ended with a verdict that is missing or invalid.
	Unusable bool
	// Continued reports whether the session itself continued an earlier one.
	Continued bool
	// AbortOnTimeout gives up the conversation when the session's time is up.
	AbortOnTimeout bool
	Transcript     escalation.TranscriptState
}

// ContinuationOf returns the session that a gate of a loop offers to continue. If it offers none, ContinuationOf returns nil
// and the reason in a sentence. The session that follows must have the same state, and so the same role: an author never
// continues the conversation of a reviewer.
func ContinuationOf(s Stopped) (*Continuation, string) {
	switch {
	case s.State.Role() == "":
		return nil, "no session has run"
	case s.State.Role() != s.Resume.Role():
		return nil, fmt.Sprintf("the next step is %s, and the last session was that of the %s", s.Resume, s.State.Role())
	case s.State != s.Resume:
		return nil, fmt.Sprintf("the next step is %s, and the last session was %s", s.Resume, s.State)
	case s.Continued && !s.NeedsHuman:
		return nil, "going on with it was tried, and failed: only a new session may do better"
	case s.Unusable:
		return nil, "it ended without a valid verdict"
	}
	if reason := s.lost(); reason != "" {
		return nil, reason
	}
	return &Continuation{SessionID: s.SessionID, Resume: s.Resume, Role: s.State.Role()}, ""
}

// lost returns why the conversation cannot be continued; empty if it can.
func (s Stopped) lost() string {
	switch s.Status {
	case escalation.SessionTimedOut:
		if s.AbortOnTimeout {
			return "it gives up its conversation when its time is up (ABORT_ON_TIMEOUT)"
		}
	case escalation.SessionStopped, escalation.SessionRunning:
		return "it was stopped"
	case escalation.SessionTranscriptLost, escalation.SessionResumeFailed:
		return "it could not load its conversation"
	case escalation.SessionCompleted, escalation.SessionFailed, escalation.SessionBudgetExhausted:
	}
	switch {
	case s.SessionID == "":
		return "it did not come to have a conversation"
	case s.Transcript == escalation.TranscriptGone:
		return "its transcript is gone"
	case s.Transcript != escalation.TranscriptReachable:
		return "nobody could tell whether its transcript is still there"
	}
	return ""
}
