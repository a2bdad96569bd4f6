package claudesim

import (
	"net/http"
	"time"
)

// Play returns a scenario that tries the turns in order.
func Play(turns ...Turn) Scenario { return Scenario{Turns: turns} }

// As returns a copy of s that makes the stand-in simulate the release v.
func (s Scenario) As(v Version) Scenario {
	s.Version = v
	return s
}

// On returns a turn that answers matching requests with replies, in order.
func On(match Match, replies ...Reply) Turn { return Turn{Match: match, Replies: replies} }

// Always returns a turn that answers every request.
func Always(replies ...Reply) Turn { return On(Match{}, replies...) }

// Named returns t with a name.
func (t Turn) Named(name string) Turn {
	t.Name = name
	return t
}

// Failing returns t with a fault of the stand-in.
func (t Turn) Failing(fault Fault) Turn {
	t.Fault = &fault
	return t
}

// Say returns a reply that contains only text.
func Say(text string) Reply { return Reply{Text: text} }

// Bash returns a reply that runs a shell command.
func Bash(command string) Reply {
	return Call("Bash", map[string]any{"command": command, "description": "scripted command"})
}

// BashInBackground returns a reply that starts a shell command without waiting for it.
func BashInBackground(command string) Reply {
	return Call("Bash", map[string]any{
		"command": command, "description": "scripted command", "run_in_background": true,
	})
}

// Call returns a reply that calls one tool. input must encode to a JSON object.
func Call(tool string, input any) Reply {
	return Reply{Calls: []ToolCall{{Name: tool, Input: input}}}
}

// Conclude returns a reply with structured output, which must encode to a JSON object.
func Conclude(output any) Reply { return Reply{Structured: output} }

// Refuse returns a reply in which the model refuses after some words.
func Refuse(words string) Reply { return Reply{Text: words, Stop: StopRefusal} }

// CutShort returns a reply that is cut, because it has reached its largest size.
func CutShort(text string) Reply { return Reply{Text: text, Stop: StopMaxTokens} }

// Limited returns a reply in which the API refuses the call until a time, because a limit of the account is used up.
func Limited(until time.Time) Reply {
	return Reply{Error: &APIError{Status: http.StatusTooManyRequests, LimitedUntil: until.Unix()}}
}

// LimitedBy is like Limited, for a limit that the API names.
func LimitedBy(kind string, until time.Time) Reply {
	reply := Limited(until)
	reply.Error.LimitKind = kind
	return reply
}

// ThinkingFirst returns r with a block of thinking in front.
func (r Reply) ThinkingFirst(thought string) Reply {
	r.Thinking = thought
	return r
}

// Fail returns a reply in which the API answers with an HTTP error status.
func Fail(status int, message string) Reply {
	return Reply{Error: &APIError{Status: status, Message: message}}
}

// Saying returns r with text in front of its tool calls.
func (r Reply) Saying(text string) Reply {
	r.Text = text
	return r
}

// OnCredits returns r as an answer for which the account pays, because its limit is used up until a time.
func (r Reply) OnCredits(until time.Time) Reply {
	r.CreditsUntil = until.Unix()
	return r
}

// Using returns r with its token usage.
func (r Reply) Using(usage Usage) Reply {
	r.Usage = &usage
	return r
}

// After returns r delayed by d.
func (r Reply) After(d time.Duration) Reply {
	r.Delay = Duration(d)
	return r
}

// InPieces returns r streamed in pieces of a few words, with a pause of d before each.
func (r Reply) InPieces(d time.Duration) Reply {
	r.PieceDelay = Duration(d)
	return r
}

// OnceFailing returns r with an additional error: the first attempt at the request fails with status.
func (r Reply) OnceFailing(status int) Reply {
	r.Error = &APIError{Status: status, Times: 1}
	return r
}
