package claude

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Conclusion is the structured output with which a session has ended, by its transcript, and what its own messages have
// used.
type Conclusion struct {
	// Output is the input of the last call of StructuredOutput. Its secrets are not masked.
	Output json.RawMessage
	// Calls lists the IDs of the session's own calls that have succeeded or have no result, without those of
	// StructuredOutput.
	Calls []string
	// Turns counts the session's own answers of the model, and Tokens adds up what they have used. ContextTokens is the
	// size of the conversation after the last one.
	Turns         int
	Tokens        Tokens
	ContextTokens int
	// CostUSD is the list price of Tokens in US dollars; 0 if the price of a model is unknown.
	CostUSD float64
}

// ReadConclusion returns the conclusion of a session by its transcript; nil if the session has not given its structured
// output. What the session has inherited from its parent does not count: parent is the path of the parent's transcript,
// or empty if there is none. The files must not be those that an agent can replace.
func ReadConclusion(path, parent string) (*Conclusion, error) {
	inherited := map[string]bool{}
	if parent != "" {
		if err := readTranscript(parent,
			func(message TranscriptMessage) { inherited[message.UUID] = true }); err != nil {
			return nil, err
		}
	}
	found := conclusionReader{answers: map[string]TranscriptMessage{}, failed: map[string]bool{}}
	err := readTranscript(path, func(message TranscriptMessage) {
		if !inherited[message.UUID] && !message.Subagent {
			found.add(message)
		}
	})
	if err != nil || found.call == nil {
		return nil, err
	}
	return found.conclusion(), nil
}

func readTranscript(path string, each func(TranscriptMessage)) error {
	file, err := os.Open(path) //nolint:gosec // the caller names a file that no agent can replace
	if err != nil {
		return fmt.Errorf("read a conversation: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	_, err = ReadMessages(io.Reader(file), each)
	return err
}

// conclusionReader reads a session's own messages.
type conclusionReader struct {
	// call is the latest call of StructuredOutput; nil if something has happened since.
	call *TranscriptCall
	// answers holds the answers of the model by their IDs. The CLI writes an answer in several lines. The last line has
	// the final usage.
	answers map[string]TranscriptMessage
	last    TranscriptMessage
	// calls and failed hold IDs of calls, without those of StructuredOutput.
	calls  []string
	failed map[string]bool
}

func (r *conclusionReader) add(message TranscriptMessage) {
	if message.Role == TranscriptAssistant {
		r.answers[message.ID], r.last = message, message
	}
	for _, block := range message.Blocks {
		if block.Result != nil && block.Result.IsError {
			r.failed[block.Result.CallID] = true
		}
		switch {
		case block.Call != nil && block.Call.Name == structuredOutputTool:
			r.call = block.Call
		case block.Result != nil && r.call != nil && block.Result.CallID == r.call.ID && !block.Result.IsError:
			// The CLI has accepted it.
		case message.Role != TranscriptSystem:
			r.call = nil // a prompt, another call, or a refused output
		}
		if block.Call != nil && block.Call.Name != structuredOutputTool {
			r.calls = append(r.calls, block.Call.ID)
		}
	}
}

func (r *conclusionReader) conclusion() *Conclusion {
	last := r.last.Tokens
	found := &Conclusion{
		Output: r.call.Input, Turns: len(r.answers), ContextTokens: last.Input + last.CacheRead + last.CacheCreation +
			last.Output,
	}
	for _, id := range r.calls {
		if !r.failed[id] {
			found.Calls = append(found.Calls, id)
		}
	}
	byModel := map[string]Tokens{}
	for _, answer := range r.answers {
		found.Tokens = found.Tokens.Add(answer.Tokens)
		byModel[answer.Model] = byModel[answer.Model].Add(answer.Tokens)
	}
	for model, tokens := range byModel {
		usd, _, known := EstimateUSD(model, tokens)
		if !known {
			found.CostUSD = 0
			break
		}
		found.CostUSD += usd
	}
	return found
}
