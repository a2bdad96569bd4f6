package supervisor_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
)

// continuityCase is what happens to the conversation of one chain before another one, which begins
// with Tier 2, is to go on from it.
type continuityCase struct {
	archived bool
	// foreign says that the first chain works in another directory.
	foreign bool
	// unknown names a conversation that nobody ever had instead of the first chain's.
	unknown bool
	// harm is done to the transcript in between; nil is none.
	harm func(t *testing.T, transcript string)
	// refused counts the sessions of the second chain whose prompt is too long for the model.
	refused int
	// compacts says that the model sums the conversation up when the CLI asks for that by itself,
	// which it does before it gives up. The stand-in never does.
	compacts bool
	want     func(version claudesim.Version) continued
}

// continued is what a chain came to that was to go on from a conversation.
type continued struct {
	Outcome  escalation.Outcome
	Sessions []continuedSession
	// Prompts are how many prompts the model saw with each of its calls, those left out in which the
	// CLI asked it to sum the conversation up.
	Prompts []int
}

// continuedSession is a session of it. IDs are left out of its error.
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
	// summingUp is in the prompt by which the CLI asks for a summary of the conversation.
	summingUp = "Respond with TEXT ONLY"
	tooLong   = "the conversation no longer fits the model's window: Prompt is too long"
)

func continuityCases() map[string]continuityCase {
	always := func(want continued) func(claudesim.Version) continued {
		return func(claudesim.Version) continued { return want }
	}
	foreign := func(version claudesim.Version) continued { // the new release looks in all directories
		if version == claudesim.VersionOld {
			return fellBack(escalation.SessionTranscriptLost, notFound+lost)
		}
		return wentOn()
	}
	remove := func(t *testing.T, transcript string) { require.NoError(t, os.Remove(transcript)) }
	empty := func(t *testing.T, transcript string) { require.NoError(t, os.Truncate(transcript, 0)) }
	silence := func(t *testing.T, transcript string) { // nobody says anything in it
		require.NoError(t, os.WriteFile(transcript, []byte("garbage\n{\"type\":\"mode\"}\n"), 0o600))
	}
	return map[string]continuityCase{
		"untouched":         {want: always(wentOn())},
		"deleted":           {harm: remove, want: always(fellBack(escalation.SessionTranscriptLost, notFound+lost))},
		"emptied":           {harm: empty, want: always(fellBack(escalation.SessionTranscriptLost, notFound+lost))},
		"overwritten":       {harm: silence, want: always(fellBack(escalation.SessionResumeFailed, notFound))},
		"deleted_archived":  {archived: true, harm: remove, want: always(wentOn())},
		"emptied_archived":  {archived: true, harm: empty, want: always(wentOn())},
		"foreign_directory": {foreign: true, want: foreign},
		"foreign_archived":  {foreign: true, archived: true, want: always(wentOn())},
		"prompt_too_long":   {refused: 1, want: always(fellBack(escalation.SessionResumeFailed, tooLong, 2))},
		"too_long_twice":    {refused: 2, want: always(fellBackInVain())},
		"compacted":         {refused: 1, compacts: true, want: always(wentOn(2))},
		"unknown_session":   {unknown: true, want: always(gaveUp())},
	}
}

// wentOn is a chain whose first session had the conversation. asked are the prompts of the calls
// that the model refused before.
func wentOn(asked ...int) continued {
	return continued{Outcome: escalation.OutcomeResolved, Sessions: []continuedSession{{
		Tier: 2, Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession, Status: escalation.SessionCompleted,
	}}, Prompts: append(asked, 2)}
}

// fellBack is a chain that fell to a handoff once, for the same tier. asked are the prompts of the
// calls that the model got before.
func fellBack(status escalation.SessionStatus, problem string, asked ...int) continued {
	reasons := map[escalation.SessionStatus]escalation.ContinuityReason{
		escalation.SessionTranscriptLost: escalation.ReasonTranscriptLost, escalation.SessionResumeFailed: escalation.ReasonResumeFailed,
	}
	first, second := wentOn().Sessions[0], wentOn().Sessions[0]
	first.Status, first.Error = status, problem
	second.Continuity, second.Reason = escalation.ContinuityHandoff, reasons[status]
	return continued{Outcome: escalation.OutcomeResolved, Sessions: []continuedSession{first, second}, Prompts: append(asked, 1)}
}

// fellBackInVain is a chain whose handoff fared no better: there is no second one.
func fellBackInVain() continued {
	chain := fellBack(escalation.SessionResumeFailed, tooLong, 2)
	chain.Outcome = escalation.OutcomeFailed
	chain.Sessions[1].Status, chain.Sessions[1].Error = escalation.SessionFailed, tooLong
	return chain
}

// gaveUp is a chain that was to go on from a conversation of which nothing is recorded: there is
// no verdict that a handoff could be made of.
func gaveUp() continued {
	chain := fellBack(escalation.SessionTranscriptLost, notFound+lost)
	return continued{Outcome: escalation.OutcomeFailed, Sessions: chain.Sessions[:1]}
}
