package escalation

// Ending says why a session has ended without its result. The table below says what follows.
type Ending string

// The endings. A session with a result has none, and neither has one that a worker could not start.
const (
	EndingUnusable Ending = "unusable_conversation" // its conversation cannot be continued
	EndingRefused  Ending = "refused"               // the model, or a safeguard of it, refused to answer
	EndingTooLong  Ending = "answer_too_long"       // the model's answer reached the largest size
	EndingLimited  Ending = "limited"               // a limit of the account is used up until Report.LimitedUntil
	EndingAccount  Ending = "account"               // the provider accepts no key, login or account of the worker
	EndingProvider Ending = "provider_away"         // the provider does not answer, or is overloaded
	EndingRequest  Ending = "wrong_request"         // the provider refuses what was asked for good
	EndingOurLimit Ending = "our_limit"             // a limit of the supervisor: time, turns, budget, disk
	EndingGuard    Ending = "guard"                 // the guard ended it
	EndingNoResult Ending = "no_result"             // it gave no result that can be read, even when asked again
	EndingUnknown  Ending = "unknown"               // of no known kind
	EndingNone     Ending = ""
)

// Lasts reports whether a message whose session has ended so would end so again, until it is worded differently or a
// setting is changed.
func (e Ending) Lasts() bool {
	switch e {
	case EndingRefused, EndingTooLong, EndingRequest, EndingOurLimit, EndingGuard:
		return true
	case EndingNone, EndingUnusable, EndingLimited, EndingAccount, EndingProvider, EndingNoResult, EndingUnknown:
	}
	return false
}

// Endings returns all endings.
func Endings() []Ending {
	return []Ending{
		EndingNone, EndingUnusable, EndingRefused, EndingTooLong, EndingLimited, EndingAccount, EndingProvider,
		EndingRequest, EndingOurLimit, EndingGuard, EndingNoResult, EndingUnknown,
	}
}

const (
	// manyAttempts take about 30 minutes with the pauses between them. The CLI's own retries take additional time.
	manyAttempts = 10
	fewAttempts  = 3
	// attemptsAtAnswer are few, because a person waits: the pauses take less than a minute.
	attemptsAtAnswer = 3
)

// Sequel names the step after a session that ended without its result.
type Sequel string

// The sequels.
const (
	// SequelStop leaves the next step to a person: at a gate, or who reads why a conversation has no answer.
	SequelStop Sequel = "stop"
	// SequelAnew runs the step once more without the conversation that the session has resumed: from a handoff, with
	// the last turns, or as the role begins. A session in a new conversation never has this sequel, so it happens once.
	SequelAnew Sequel = "anew"
	// SequelWait repeats the step when the limit ends, as after a cooldown.
	SequelWait Sequel = "wait"
)

// Treatment says what follows from an ending.
type Treatment struct {
	// Attempts is the number of failed attempts in the session's conversation after which it ends; 1 means that none is
	// repeated.
	Attempts int
	// Shorter reports that the agent is asked once, in the same conversation, for a shorter answer.
	Shorter bool
	Then    Sequel
	// Continues reports that a person may continue the session's conversation at the gate.
	Continues bool
	// Do says what a person can do.
	Do string
}

// Treat returns what follows when a session with a purpose ends with an ending. The argument resumed reports that it
// has resumed an earlier conversation. It is the only place that decides so, for all roles.
func Treat(ending Ending, resumed bool, purpose Purpose) Treatment {
	t := Treatment{Attempts: 1, Then: SequelStop, Continues: true, Do: "look at what it says"}
	switch ending {
	case EndingNone: // a worker could not start it
		t.Attempts, t.Do = manyAttempts, "look at `claudeops doctor`"
	case EndingUnusable:
		t.Then, t.Continues, t.Do = SequelAnew, false, "begin a new session"
	case EndingRefused:
		t.Then, t.Continues, t.Do = SequelAnew, false, "say it in other words, or choose another model"
	case EndingTooLong:
		t.Shorter, t.Do = true, "ask for less at a time, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS (CLAUDEOPS_PASS_ENV "+
			"passes it on)"
	case EndingLimited:
		t.Then, t.Do = SequelWait, "wait for its end, or give the worker another key"
	case EndingAccount:
		t.Do = "correct it, and look at `claudeops doctor`"
	case EndingProvider:
		t.Attempts, t.Do = manyAttempts, "try again when the provider is back"
	case EndingRequest:
		t.Continues, t.Do = false, "look at what it says: model, address and settings"
	case EndingOurLimit:
		t.Do = "ask for less at a time, or raise the limit"
	case EndingGuard:
		t.Do = "look at the session's calls"
	case EndingNoResult:
		t.Do = "try again, perhaps in other words"
	case EndingUnknown:
		t.Attempts, t.Do = fewAttempts, "look at what it says, and at `claudeops doctor`"
	}
	// a person has chosen that conversation, and chooses again
	if t.Then == SequelAnew && (!resumed || purpose == PurposeContinuation) {
		t.Then = SequelStop
	}
	if purpose == PurposeTalk {
		t.Attempts = min(t.Attempts, attemptsAtAnswer)
		if t.Then == SequelWait { // the person who asked is told, and decides
			t.Then = SequelStop
		}
	}
	return t
}

// Treatment returns what follows from how the session has ended.
func (s *Session) Treatment() Treatment {
	ending := s.Ending
	if ending == EndingNone && (s.Status == SessionResumeFailed || s.Status == SessionTranscriptLost) {
		ending = EndingUnusable
	}
	purpose := s.Purpose
	// a correction: nobody has chosen that conversation
	if purpose == PurposeContinuation && s.ContinuityReason != ReasonContinued {
		purpose = PurposeTier
	}
	return Treat(ending, s.Continuity == ContinuityResume, purpose)
}
