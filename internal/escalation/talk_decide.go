package escalation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// MaxRecalledTurns limits the turns that a new conversation learns of.
const MaxRecalledTurns = 5

// TalkInput is the input of DecideTalk: how a turn has gone so far.
type TalkInput struct {
	// Refusal is the refused admission of the turn's session; nil if the session was admitted.
	Refusal *Admission
	// Session is the turn's latest session; zero if none has begun.
	Session Session
	// Replied reports whether the session has stored a reply.
	Replied bool
	// Lost is the reason for which the session could not continue the conversation; empty if it could, or had to
	// continue none.
	Lost ContinuityReason
	// LostBecause is the error of the session that could not continue the conversation; empty if it had none.
	LostBecause string
	// LostHost is the host of the session whose conversation was lost; empty if it is unknown.
	LostHost string
	// Unarchived reports that the conversation of the session could not be archived.
	Unarchived bool
	// Again reports whether an earlier session of this turn could not load the conversation.
	Again bool
	// Recalled is the number of earlier turns that a new conversation learns of.
	Recalled int
	// Forgets reports that the session was a new conversation that learned of no earlier turns, because the provider
	// had refused them.
	Forgets bool
	// StoppedBy names the person who has stopped the turn; empty if nobody has.
	StoppedBy string
	// Ended reports that the conversation was cancelled.
	Ended bool
	// Limit is the policy of the session.
	Limit TierPolicy
}

// TalkDecision says what follows from how a turn has gone.
type TalkDecision struct {
	// Again reports that the turn runs once more, in a new conversation for the reason Lost.
	Again bool
	Lost  ContinuityReason
	// Forgets reports that the new conversation must not learn of the earlier turns.
	Forgets bool
	// State, Note and Failure are the end of the turn, if Again is false.
	State   TalkState
	Note    string
	Failure string
}

// ChooseTalkContinuity returns how a turn gets the conversation before it. The argument is the same as for a tier. A
// conversation that cannot be continued begins anew: there is no handoff, because the records have what was said.
func ChooseTalkContinuity(input ContinuityInput) ContinuityChoice {
	input.Mode = ContinuityAuto
	choice := ChooseContinuity(input)
	if choice.Continuity == ContinuityHandoff {
		choice.Continuity = ContinuityFresh
	}
	return choice
}

// LostBy returns the reason for which a session begins a new conversation although there is one before it; empty if it
// continues that conversation or is the first.
func (c ContinuityChoice) LostBy() ContinuityReason {
	if c.Continuity != ContinuityFresh || c.Reason == ReasonFirstTier {
		return ""
	}
	return c.Reason
}

// DecideTalk decides what follows from how a turn has gone. If the conversation could not be loaded, the turn runs once
// more, in a new conversation that learns of the earlier turns. If the provider refuses that one, too, the turn runs
// once more without them: otherwise each message would fail for ever. In every other case the turn ends, with a reply
// or with a sentence that says why there is none.
func DecideTalk(in TalkInput) TalkDecision {
	switch {
	case in.Replied:
		return TalkDecision{State: TalkAnswered, Note: in.note()}
	case in.StoppedBy != "":
		return TalkDecision{State: TalkStopped, Failure: fmt.Sprintf(
			"Stopped by %s before an answer; the conversation goes on from the answer before.",
			plaintext.Line(in.StoppedBy))}
	case in.Ended:
		return TalkDecision{
			State:   TalkStopped,
			Failure: "No answer: the conversation was ended; send the message again to begin it anew.",
		}
	}
	if lost := in.unloaded(); lost != "" && !in.Again {
		return TalkDecision{Again: true, Lost: lost}
	}
	// what it refuses may be in the earlier turns
	if in.Session.Ending == EndingRequest && in.Recalled > 0 && !in.Forgets {
		return TalkDecision{Again: true, Lost: cmp.Or(in.Lost, ReasonResumeFailed), Forgets: true}
	}
	return TalkDecision{State: TalkFailed, Failure: in.failure()}
}

// unloaded returns the reason for which the session cannot use the conversation that it had to continue; empty if it
// could.
func (in TalkInput) unloaded() ContinuityReason {
	switch {
	case in.Session.Treatment().Then != SequelAnew:
		return ""
	case in.Session.Status == SessionTranscriptLost:
		return ReasonTranscriptLost
	default:
		return ReasonResumeFailed
	}
}

// note says what was lost and what was kept; empty if nothing was lost.
func (in TalkInput) note() string {
	unarchived := ""
	if in.Unarchived {
		unarchived = "The conversation could not be archived: if the worker's host is lost, the next answer begins a " +
			"new conversation."
	}
	if in.Lost == "" {
		return unarchived
	}
	kept := "the chains since yesterday and what is open"
	switch {
	case in.Recalled == 1:
		kept = "the last turn in short, " + kept
	case in.Recalled > 1:
		kept = fmt.Sprintf("the last %d turns in short, %s", in.Recalled, kept)
	}
	note := fmt.Sprintf("This is a new conversation, because %s: lost is what was said and seen, word for word; kept "+
		"are %s.",
		in.whyLost(), kept)
	return strings.TrimSpace(note + " " + unarchived)
}

// whyLost says why the conversation could not be continued. The words follow "because".
func (in TalkInput) whyLost() string {
	switch in.Lost { //nolint:exhaustive // the other reasons lose nothing
	case ReasonSessionIDMissing:
		return "Claude gave the one before no ID"
	case ReasonTranscriptLost:
		if in.LostHost != "" && in.Session.Host != "" && in.LostHost != in.Session.Host {
			return fmt.Sprintf("the file of the one before is on the host %s, and in no archive that this host can "+
				"read",
				plaintext.Line(in.LostHost))
		}
		return "the file of the one before is neither on this host nor in the archive"
	case ReasonContextPressure:
		return "the one before has become too large for the model"
	default:
		if in.LostBecause != "" {
			return fmt.Sprintf("the one before could not be continued (%s)", detail(in.LostBecause))
		}
		return "Claude could not load the one before"
	}
}

// failure says in one sentence why there is no reply, and what to do.
func (in TalkInput) failure() string {
	why, do := in.problem()
	if in.Lost != "" && in.Again {
		return fmt.Sprintf("No answer: the conversation could not be continued, because %s, and a new one failed, "+
			"too: %s; %s.",
			in.whyLost(), why, do)
	}
	return fmt.Sprintf("No answer: %s; %s.", why, do)
}

const sendAgain = "send the message again"

// problem returns why there is no reply, and what to do about it.
func (in TalkInput) problem() (why, do string) {
	if in.Refusal != nil {
		return in.refused()
	}
	switch in.Session.Ending {
	case EndingProvider:
		return fmt.Sprintf("the model's provider did not answer in %s (%s)",
			plaintext.Count(max(in.Session.Attempts, 1), "attempt"), in.detail()), sendAgain + " when it is back"
	case EndingAccount:
		return fmt.Sprintf("the model's provider refused the worker's key or login (%s)", in.detail()),
			"correct it (`claudeops doctor` checks it), and " + sendAgain
	case EndingLimited:
		return limitReason(in.Session.LimitedUntil, in.Session.LimitedModel), sendAgain + " then"
	case EndingRefused:
		return in.detail(), sendAgain + " in other words"
	case EndingTooLong:
		return "the answer became longer than the model may write, even when a shorter one was asked for",
			"ask for less at a time"
	case EndingGuard:
		return fmt.Sprintf("the guard ended the session (%s)", in.detail()),
			"tell your operator, who finds its calls in the records"
	case EndingNoResult:
		return "the model gave no reply that can be read, even when it was asked again", sendAgain +
			", perhaps in other words"
	case EndingRequest:
		return fmt.Sprintf("the request was refused (%s)", in.detail()),
			"correct what it names, such as the model, the address or the account, and " + sendAgain
	case EndingNone, EndingUnusable, EndingOurLimit, EndingUnknown:
	}
	switch in.Session.Status {
	case SessionTimedOut:
		return fmt.Sprintf("the time for a turn (%s) is over", plaintext.Length(in.Limit.Timeout.Std())),
			"ask for less at a time, or raise CLAUDEOPS_TALK_TIMEOUT"
	case SessionBudgetExhausted:
		budget := cmp.Or(in.Session.BudgetUSD, in.Limit.BudgetUSD)
		return "the turn has used up its budget of " + plaintext.Dollars(budget),
			"ask for less at a time, or raise CLAUDEOPS_TALK_BUDGET_USD"
	case SessionStopped:
		return "the session was stopped", sendAgain
	case SessionRunning, SessionCompleted, SessionFailed, SessionResumeFailed, SessionTranscriptLost:
	}
	return fmt.Sprintf("the session failed (%s)", in.detail()), sendAgain +
		", and look at `claudeops doctor` if it fails again"
}

// refused returns why the session was not admitted, and what to do about it.
func (in TalkInput) refused() (why, do string) {
	why = strings.TrimSuffix(in.Refusal.Reason, ".")
	switch {
	case in.Refusal.Rule == RuleAccountLimit:
		return why, sendAgain + " then"
	case in.Refusal.Rule != RuleDayBudget:
		return why, sendAgain + " later"
	case !in.Refusal.WaitUntil.IsZero():
		return why, "running sessions reserve a part of it: " + sendAgain + " when one has ended"
	default:
		return why, "a new day begins at 00:00 UTC; until then raise CLAUDEOPS_DAY_BUDGET_USD"
	}
}

// maxTalkDetail limits the error of a session in a sentence, in characters.
const maxTalkDetail = 300

// detail returns the error of the session in a form that fits into a sentence.
func (in TalkInput) detail() string { return detail(cmp.Or(in.Session.Error, "no reason is known")) }

func detail(text string) string {
	return strings.TrimRight(plaintext.Cut(plaintext.Compact(text), maxTalkDetail), ".")
}

// TimeOfDay names the part of the day, for use in a prompt.
func TimeOfDay(at time.Time) string {
	switch hour := at.Hour(); {
	case hour < 5:
		return "late night"
	case hour < 12:
		return "morning"
	case hour < 17:
		return "afternoon"
	case hour < 22:
		return "evening"
	default:
		return "night"
	}
}
