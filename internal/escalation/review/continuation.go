package review

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Stopped describes the session before a gate of a loop.
type Stopped struct {
	// State is the state of the session. Resume is the state that follows the gate.
	State, Resume State
	// SessionID is the conversation; empty if the CLI reported none.
	SessionID string
	Tier      escalation.Tier
	Status    escalation.SessionStatus
	// NeedsHuman reports whether the session ended with the question for a person.
	NeedsHuman bool
	// Unusable reports whether the session ended with a verdict that is missing or invalid.
	Unusable bool
	// Continued reports whether a person chose to continue an earlier session with this one.
	Continued bool
	// Spoiled reports that the session would end in the same way in its conversation.
	Spoiled    bool
	Transcript escalation.TranscriptState
}

// StoppedAt describes the session before a gate of a loop; session is nil if none has run. The argument state is the
// state of that session, and resume the state that follows the gate.
func StoppedAt(state, resume State, session *escalation.Session) Stopped {
	if session == nil {
		return Stopped{Resume: resume}
	}
	stopped := Stopped{
		State: state, Resume: resume, Tier: session.Tier, Status: session.Status,
		NeedsHuman: session.AsksPerson(), Continued: session.Continued(),
		Unusable: state == StateReview && session.Status == escalation.SessionCompleted,
		Spoiled:  !session.Treatment().Continues,
	}
	if session.ReportedSessionID != "" {
		stopped.SessionID = session.SessionID
	}
	return stopped
}

// Gate describes the gate after the session. The argument transcript is the known state of the session's transcript.
func (s Stopped) Gate(transcript escalation.TranscriptState) *escalation.LoopGate {
	known := s
	known.Transcript = transcript
	gate := &escalation.LoopGate{Role: string(s.Resume.Role()), Resume: string(s.Resume)}
	gate.Continuation, gate.NoContinuation = ContinuationOf(known)
	return gate
}

// ContinuationOf returns the session that a gate of a loop offers to continue. If it offers none, ContinuationOf
// returns nil and the reason in a sentence. The session that follows must have the same state, and so the same role: an
// author never continues the conversation of a reviewer.
func ContinuationOf(s Stopped) (*escalation.Continuation, string) {
	switch {
	case s.State.Role() == "":
		return nil, "no session has run"
	case s.State.Role() != s.Resume.Role():
		return nil, fmt.Sprintf("the next step is %s, and the last session was that of the %s",
			escalation.InWords(s.Resume), s.State.Role())
	case s.State != s.Resume:
		return nil, fmt.Sprintf("the next step is %s, and the last session was %s", escalation.InWords(s.Resume),
			escalation.InWords(s.State))
	case s.Continued && !s.NeedsHuman:
		return nil, "going on with it was tried, and failed: only a new session may do better"
	case s.Unusable:
		return nil, "it ended without a valid verdict"
	case s.Spoiled:
		return nil, "it would end in the same way in its conversation"
	}
	if reason := s.lost(); reason != "" {
		return nil, reason
	}
	return &escalation.Continuation{
		SessionID: s.SessionID, Tier: s.Tier, Role: string(s.State.Role()), Resume: string(s.Resume), Status: s.Status,
	}, ""
}

// lost returns why the conversation cannot be continued; empty if it can.
func (s Stopped) lost() string {
	switch s.Status {
	case escalation.SessionStopped, escalation.SessionRunning:
		return "it was stopped"
	case escalation.SessionTranscriptLost, escalation.SessionResumeFailed:
		return "it could not load its conversation"
	case escalation.SessionTimedOut, escalation.SessionCompleted, escalation.SessionFailed,
		escalation.SessionBudgetExhausted:
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
