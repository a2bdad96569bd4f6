package parts

import (
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Find looks up the record of a conversation.
func (s *Sessions) Find(ctx workflow.Context, sessionID string) (activities.FindSessionResult, error) {
	var records *activities.Records
	var known activities.FindSessionResult
	err := ReadRecords(WithRecords(ctx, "look up the conversation to resume"), records.FindSession, sessionID, &known)
	return known, err
}

// transcript asks a worker whether an agent can resume a conversation.
func (s *Sessions) transcript(ctx workflow.Context, sessionID string) escalation.TranscriptState {
	var tiers *activities.Tiers
	var found activities.FindTranscriptResult
	err := workflow.ExecuteActivity(withTranscript(ctx, "is the conversation still there?"), tiers.FindTranscript,
		activities.FindTranscriptInput{SessionID: sessionID, Directory: s.Directory}).Get(ctx, &found)
	switch {
	case err != nil:
		workflow.GetLogger(ctx).Warn("nobody can tell whether a transcript is there", "session_id", sessionID, "error",
			err)
		return escalation.TranscriptUnknown
	case found.Reachable:
		return escalation.TranscriptReachable
	default:
		return escalation.TranscriptGone
	}
}

// Window returns the size of the context window of a tier's model, in tokens. This is the size that the CLI reported
// last in this workflow. Without a report, it is the configured size.
func (s *Sessions) Window(policy escalation.TierPolicy) int {
	window := policy.ContextWindow
	for i := range s.Log.Chain.Sessions {
		if session := &s.Log.Chain.Sessions[i]; session.Model == policy.Model && session.ContextWindow > 0 {
			window = session.ContextWindow
		}
	}
	return window
}

// Full reports whether the conversation of a session is too large to be continued with a model.
func (s *Sessions) Full(session *escalation.Session, model escalation.TierPolicy) bool {
	return escalation.ContinuityInput{
		Parent: session, Window: s.Window(model), Threshold: s.Policy.ResumeThreshold,
		MaxTokens: s.Policy.ResumeMaxTokens,
	}.Full()
}
