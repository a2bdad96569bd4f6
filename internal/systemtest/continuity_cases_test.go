package systemtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
)

// continuityCase describes two chains. The second chain begins with Tier 2 and must continue the conversation of the
// first chain. The fields describe what happens to the conversation in between.
type continuityCase struct {
	archived bool
	// foreign says that the first chain works in another directory.
	foreign bool
	// unknown makes the second chain resume from a session ID that never existed. If unknown is false, the chain
	// resumes from the session of the first chain.
	unknown bool
	// harm damages the transcript between the two chains. Nil leaves it alone.
	harm func(t *testing.T, transcript string)
	// refused is the number of sessions of the second chain whose prompt is too long for the model.
	refused int
	// compacts says that the model summarizes the conversation when the CLI asks for a summary. The CLI asks for it
	// before it gives up. The stand-in never asks.
	compacts bool
	want     func(version claudesim.Version) continued
}

// continued is the result of the second chain.
type continued struct {
	Outcome  escalation.Outcome
	Sessions []continuedSession
	// Prompts counts the prompts in each call to the model. It omits the calls in which the CLI asked for a summary
	// of the conversation.
	Prompts []int
}

// continuedSession is a session of the second chain. In its error, IDs are replaced.
type continuedSession struct {
	Tier       escalation.Tier
	Continuity escalation.Continuity
	Reason     escalation.ContinuityReason
	Status     escalation.SessionStatus
	Error      string
}

const (
	notFound = "No conversation found with session ID: ID"
	lost     = "; it is neither on this host nor in the archive"
	// summingUp is a part of the prompt with which the CLI asks for a summary of the conversation.
	summingUp = "Respond with TEXT ONLY"
	tooLong   = "the conversation no longer fits the model's window: Prompt is too long"
)

func continuityCases() map[string]continuityCase {
	always := func(want continued) func(claudesim.Version) continued {
		return func(claudesim.Version) continued { return want }
	}
	remove := func(t *testing.T, transcript string) { require.NoError(t, os.Remove(transcript)) }
	empty := func(t *testing.T, transcript string) { require.NoError(t, os.Truncate(transcript, 0)) }
	silence := func(t *testing.T, transcript string) { // no line of it is a message
		require.NoError(t, os.WriteFile(transcript, []byte("garbage\n{\"type\":\"mode\"}\n"), 0o600))
	}
	return map[string]continuityCase{
		"untouched":         {want: always(wentOn())},
		"deleted":           {harm: remove, want: always(fellBack(escalation.SessionTranscriptLost, notFound+lost))},
		"emptied":           {harm: empty, want: always(fellBack(escalation.SessionTranscriptLost, notFound+lost))},
		"overwritten":       {harm: silence, want: always(fellBack(escalation.SessionResumeFailed, notFound))},
		"deleted_archived":  {archived: true, harm: remove, want: always(wentOn())},
		"emptied_archived":  {archived: true, harm: empty, want: always(wentOn())},
		"foreign_directory": {foreign: true, want: always(wentOn())},
		"foreign_archived":  {foreign: true, archived: true, want: always(wentOn())},
		"prompt_too_long":   {refused: 1, want: always(fellBack(escalation.SessionResumeFailed, tooLong, 2))},
		"too_long_twice":    {refused: 2, want: always(fellBackInVain())},
		"compacted":         {refused: 1, compacts: true, want: always(wentOn(2))},
		"unknown_session":   {unknown: true, want: always(gaveUp())},
	}
}

// wentOn returns the result of a chain whose first session continued the conversation. asked lists the numbers of
// prompts in the calls that the model refused before.
func wentOn(asked ...int) continued {
	return continued{Outcome: escalation.OutcomeResolved, Sessions: []continuedSession{{
		Tier: 2, Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession, Status: escalation.SessionCompleted,
	}}, Prompts: append(asked, 2)}
}

// fellBack returns the result of a chain whose first session failed with status and problem, and whose second session
// repeated the tier from a handoff. asked lists the numbers of prompts in the calls before the handoff.
func fellBack(status escalation.SessionStatus, problem string, asked ...int) continued {
	reasons := map[escalation.SessionStatus]escalation.ContinuityReason{
		escalation.SessionTranscriptLost: escalation.ReasonTranscriptLost, escalation.SessionResumeFailed: escalation.ReasonResumeFailed,
	}
	first, second := wentOn().Sessions[0], wentOn().Sessions[0]
	first.Status, first.Error = status, problem
	second.Continuity, second.Reason = escalation.ContinuityHandoff, reasons[status]
	return continued{Outcome: escalation.OutcomeResolved, Sessions: []continuedSession{first, second}, Prompts: append(asked, 1)}
}

// fellBackInVain returns the result of a chain whose handoff failed, too. There is no second handoff.
func fellBackInVain() continued {
	chain := fellBack(escalation.SessionResumeFailed, tooLong, 2)
	chain.Outcome = escalation.OutcomeFailed
	chain.Sessions[1].Status, chain.Sessions[1].Error = escalation.SessionFailed, tooLong
	return chain
}

// gaveUp returns the result of a chain that should continue a conversation without a record. The chain fails, because
// there is no verdict for a handoff.
func gaveUp() continued {
	chain := fellBack(escalation.SessionTranscriptLost, notFound+lost)
	return continued{Outcome: escalation.OutcomeFailed, Sessions: chain.Sessions[:1]}
}
