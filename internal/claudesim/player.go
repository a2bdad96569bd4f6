package claudesim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// turnFor returns the turn that answers r, with its index. If no turn answers r, turnFor returns false.
func (s Scenario) turnFor(r Request) (Turn, int, bool) {
	for i, turn := range s.Turns {
		if turn.Match.holds(r) {
			return turn, i, true
		}
	}
	return Turn{}, 0, false
}

func (m Match) holds(r Request) bool {
	for _, tool := range m.Tools {
		if !r.Offers(tool) {
			return false
		}
	}
	if !strings.Contains(r.System, m.Anywhere) && !strings.Contains(r.Text(), m.Anywhere) {
		return false
	}
	return strings.Contains(r.Model, m.Model) && strings.Contains(r.Prompt(), m.Prompt) &&
		strings.Contains(r.System, m.System) && strings.Contains(r.first(), m.First) &&
		!slices.ContainsFunc(m.NoTools, r.Offers)
}

// play returns the reply to one attempt at request r. The first attempt has the number 0. If no turn answers r, the
// reply is an APIError with an explanation.
func (s Scenario) play(r Request, attempt int) Reply {
	turn, index, ok := s.turnFor(r)
	if !ok {
		return unscripted("no turn matches model %q, tools %q, prompt %q", r.Model, r.Tools, r.Prompt())
	}
	reply := turn.Replies[len(turn.Replies)-1]
	if step := r.Step(); step < len(turn.Replies) {
		reply = turn.Replies[step]
	} else if len(reply.Calls) > 0 {
		return unscripted("turn %s has %d replies and this is model call %d since the prompt",
			turn.label(index), len(turn.Replies), step+1)
	}
	if reply.Error != nil && (reply.Error.Times == 0 || attempt < reply.Error.Times) {
		return Reply{Error: reply.Error, Delay: reply.Delay}
	}
	reply.Error = nil
	return reply
}

func unscripted(format string, args ...any) Reply {
	return Fail(400, "the scenario has no answer: "+fmt.Sprintf(format, args...))
}

// signature returns the signature of the thinking of a model. The CLI sends thinking to no other model.
func signature(model string) string { return "signed by " + model }

// usage returns the tokens that the reply uses.
func (r Reply) usage() Usage {
	if r.Usage == nil {
		return DefaultUsage()
	}
	return *r.Usage
}

// blocks returns the content of the reply to request q. The ids of tool calls are derived from the request, so that a
// repeated request gets the same ids.
func (r Reply) blocks(q Request) ([]Block, error) {
	var blocks []Block
	if r.Thinking != "" {
		blocks = append(blocks, Block{Type: BlockThinking, Text: r.Thinking, ID: signature(q.Model)})
	}
	if r.Text != "" {
		blocks = append(blocks, Block{Type: BlockText, Text: r.Text})
	}
	calls := slices.Clone(r.Calls)
	if r.Structured != nil && q.Offers(structuredOutputTool) {
		calls = append(calls, ToolCall{Name: structuredOutputTool, Input: r.Structured})
	}
	for i, call := range calls {
		input, err := json.Marshal(call.Input)
		if err != nil {
			return nil, fmt.Errorf("encode input of %s: %w", call.Name, err)
		}
		id := fmt.Sprintf("toolu_%s_%d", q.fingerprint(), i)
		blocks = append(blocks, Block{Type: BlockToolUse, ID: id, Name: call.Name, Input: input})
	}
	if len(blocks) > 0 {
		return blocks, nil
	}
	text, err := json.Marshal(r.Structured) // without a schema the object becomes the text of the answer
	if err != nil {
		return nil, fmt.Errorf("encode structured output: %w", err)
	}
	return []Block{{Type: BlockText, Text: string(text)}}, nil
}
