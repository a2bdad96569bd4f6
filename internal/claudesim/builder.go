package claudesim

import "time"

// Play is a scenario of turns that are tried in order.
func Play(turns ...Turn) Scenario { return Scenario{Turns: turns} }

// As returns s as played by a program of release v.
func (s Scenario) As(v Version) Scenario {
	s.Version = v
	return s
}

// On is a turn for the requests that match, answered by replies in order.
func On(match Match, replies ...Reply) Turn { return Turn{Match: match, Replies: replies} }

// Always is a turn for every request.
func Always(replies ...Reply) Turn { return On(Match{}, replies...) }

// Named returns t under a name.
func (t Turn) Named(name string) Turn {
	t.Name = name
	return t
}

// Failing returns t with a fault.
func (t Turn) Failing(fault Fault) Turn {
	t.Fault = &fault
	return t
}

// Say is a reply of text only.
func Say(text string) Reply { return Reply{Text: text} }

// Bash is a reply that runs a shell command.
func Bash(command string) Reply {
	return Call("Bash", map[string]any{"command": command, "description": "scripted command"})
}

// BashInBackground is a reply that starts a shell command and does not wait for it.
func BashInBackground(command string) Reply {
	return Call("Bash", map[string]any{
		"command": command, "description": "scripted command", "run_in_background": true,
	})
}

// Call is a reply that calls one tool. Input encodes to a JSON object.
func Call(tool string, input any) Reply {
	return Reply{Calls: []ToolCall{{Name: tool, Input: input}}}
}

// Conclude is a reply that gives structured output, which encodes to a JSON object.
func Conclude(output any) Reply { return Reply{Structured: output} }

// Fail is a reply that never comes: the API answers with an HTTP status instead.
func Fail(status int, message string) Reply {
	return Reply{Error: &APIError{Status: status, Message: message}}
}

// Saying returns r with text before its tool calls.
func (r Reply) Saying(text string) Reply {
	r.Text = text
	return r
}

// Using returns r with the tokens that it costs.
func (r Reply) Using(usage Usage) Reply {
	r.Usage = &usage
	return r
}

// After returns r delayed by d.
func (r Reply) After(d time.Duration) Reply {
	r.Delay = Duration(d)
	return r
}

// OnceFailing returns r answered only to the attempt after the first, which gets status.
func (r Reply) OnceFailing(status int) Reply {
	r.Error = &APIError{Status: status, Times: 1}
	return r
}
