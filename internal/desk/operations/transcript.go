package operations

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/redact"
)

// Transcript holds the messages that a session has added to its conversation, from the CLI's transcript.
type Transcript struct {
	// Problem says why there are no messages, or why some are missing; empty if all is there.
	Problem string `json:"problem,omitempty"`
	// Messages lists the session's own messages, oldest first.
	Messages []Message `json:"messages"`
	// Inherited counts the messages that the session has taken over from its parent. They are left out.
	Inherited int `json:"inherited,omitempty"`
	// Omitted counts the session's own messages that are left out of the middle, because there are too many.
	Omitted int `json:"omitted,omitempty"`
	// Unreadable counts the lines of the transcript that are not in the form of a message, or are too long.
	Unreadable int `json:"unreadable,omitempty"`
	// Models counts the tokens of the session's own messages by model.
	Models []ModelUse `json:"models"`
}

// ModelUse counts the tokens of the messages of a model.
type ModelUse struct {
	Model string `json:"model"`
	// Messages counts the model's messages: one for each call of the API.
	Messages int                   `json:"messages"`
	Tokens   escalation.TokenUsage `json:"tokens"`
	// CostUSD is the model's part of the session's cost, in US dollars. Several models share that cost in proportion to
	// the list prices of their tokens. It is 0 while the session runs, and if the list lacks the price of one of
	// several models.
	CostUSD float64 `json:"cost_usd"`
}

// Message is one message of a conversation, or one part of it: the CLI writes a line for each block.
type Message struct {
	// Number is the number of the message among all messages of the conversation, from 1.
	Number int         `json:"number"`
	At     time.Time   `json:"at,omitzero"`
	Role   MessageRole `json:"role"`
	Model  string      `json:"model,omitempty"`
	// Subagent reports whether the message belongs to an agent that the session's agent has started.
	Subagent bool `json:"subagent,omitempty"`
	// Text is what was said. OmittedBytes counts the bytes that were cut off its end.
	Text         string          `json:"text,omitempty"`
	OmittedBytes int             `json:"omitted_bytes,omitempty"`
	Calls        []MessageCall   `json:"calls,omitempty"`
	Results      []MessageResult `json:"results,omitempty"`
}

// MessageRole says who speaks.
type MessageRole string

// The roles.
const (
	RoleUser      MessageRole = "user"      // the supervisor's prompt, or the result of a call
	RoleAssistant MessageRole = "assistant" // the agent
	RoleSystem    MessageRole = "system"    // the CLI: for example, a summary has replaced what was before
)

// MessageCall is an agent's call of a tool.
type MessageCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the input of the call: the command of Bash, and JSON for other tools.
	Input        string `json:"input"`
	OmittedBytes int    `json:"omitted_bytes,omitempty"`
}

// MessageResult is the result of a call.
type MessageResult struct {
	CallID       string `json:"call_id"`
	Text         string `json:"text"`
	IsError      bool   `json:"is_error,omitempty"`
	OmittedBytes int    `json:"omitted_bytes,omitempty"`
}

// Limits on a conversation that is shown. Agents write it, so it can have any length.
const (
	maxMessageText   = 16 << 10 // bytes of one text, input or result
	maxMessageBlocks = 50       // of one message
	headMessages     = 100      // the first messages
	headBytes        = 256 << 10
	tailMessages     = 400 // the last ones
	tailBytes        = 1 << 20
	// redactionMargin is how much more of a text is kept until it is masked, so that a secret at its end is recognized.
	redactionMargin = 32 << 10
	maxToolName     = 200 // characters
)

// shownTranscript collects the messages of a conversation: the first ones, and the last ones.
type shownTranscript struct {
	Transcript

	mask *redact.Redactor
	// inherited has the UUIDs of the parent's messages. Messages before the time since are inherited, too.
	inherited map[string]bool
	since     time.Time

	number     int
	head, tail []Message
	// headFull reports whether the head takes no more messages. The sizes are in bytes.
	headFull           bool
	headSize, tailSize int
	// uses has the use of each model, by the ID of the message.
	uses map[string]modelMessage
}

// modelMessage is what one message of a model has used.
type modelMessage struct {
	model  string
	tokens claude.Tokens
}

func newShownTranscript(mask *redact.Redactor) *shownTranscript {
	return &shownTranscript{mask: mask, inherited: map[string]bool{}, uses: map[string]modelMessage{}}
}

// inherits says that the message with this UUID is inherited, and inheritsBefore that all messages before a time are.
func (s *shownTranscript) inherits(uuid string) {
	if uuid != "" {
		s.inherited[uuid] = true
	}
}

func (s *shownTranscript) inheritsBefore(at time.Time) { s.since = at }

// add adds the next message.
func (s *shownTranscript) add(message claude.TranscriptMessage) {
	s.number++
	if s.inherited[message.UUID] || message.At.Before(s.since) && !message.At.IsZero() {
		s.Inherited++
		return
	}
	if message.ID != "" && message.Model != "" {
		s.uses[message.ID] = modelMessage{message.Model, message.Tokens} // the last line has the final counts
	}
	shown := messageOf(message, s.number)
	size := sizeOf(shown)
	s.headFull = s.headFull || len(s.head) == headMessages || s.headSize+size > headBytes
	if !s.headFull {
		s.head, s.headSize = append(s.head, shown), s.headSize+size
		return
	}
	s.tail, s.tailSize = append(s.tail, shown), s.tailSize+size
	for len(s.tail) > tailMessages || s.tailSize > tailBytes && len(s.tail) > 1 {
		s.tailSize -= sizeOf(s.tail[0])
		s.tail = s.tail[1:]
		s.Omitted++
	}
}

// finish masks the messages, and returns the conversation.
func (s *shownTranscript) finish() Transcript {
	s.Messages = append([]Message{}, slices.Concat(s.head, s.tail)...) // an empty list is [] in JSON
	for i := range s.Messages {
		s.clean(&s.Messages[i])
	}
	s.Models = modelUses(s.uses)
	return s.Transcript
}

// modelUses adds up the use of models, the one with most messages first.
func modelUses(messages map[string]modelMessage) []ModelUse {
	byModel := map[string]ModelUse{}
	for _, message := range messages {
		use := byModel[message.model]
		use.Model = line(message.model, maxToolName)
		use.Messages++
		use.Tokens = use.Tokens.Add(escalation.TokenUsage(message.tokens))
		byModel[message.model] = use
	}
	uses := slices.SortedFunc(maps.Values(byModel), func(a, b ModelUse) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), strings.Compare(a.Model, b.Model))
	})
	return append([]ModelUse{}, uses...) // an empty list is [] in JSON
}

// shareCost divides the cost of a session in US dollars among its models.
func shareCost(uses []ModelUse, usd float64) {
	prices, sum := make([]float64, len(uses)), 0.0
	for i, use := range uses {
		price, _, known := claude.EstimateUSD(use.Model, claude.Tokens(use.Tokens))
		if len(uses) == 1 {
			price, known = 1, true
		}
		if !known {
			return
		}
		prices[i] = price
		sum += price
	}
	for i := range uses {
		if sum > 0 {
			uses[i].CostUSD = usd * prices[i] / sum
		}
	}
}

// messageOf converts a message of a transcript. Its texts are cut, but not masked.
func messageOf(message claude.TranscriptMessage, number int) Message {
	shown := Message{
		Number: number, At: message.At, Role: MessageRole(message.Role), Model: line(message.Model, maxToolName),
		Subagent: message.Subagent,
	}
	var texts []string
	for i, block := range message.Blocks {
		switch {
		case i == maxMessageBlocks:
			texts = append(texts, fmt.Sprintf("[%s more are left out]",
				plaintext.Count(len(message.Blocks)-i, "block")))
			shown.Text, shown.OmittedBytes = beginning(strings.Join(texts, "\n\n"))
			return shown
		case block.Text != nil:
			texts = append(texts, *block.Text)
		case block.Call != nil:
			call := MessageCall{ID: line(block.Call.ID, maxToolName), Name: line(block.Call.Name, maxToolName)}
			call.Input, call.OmittedBytes = beginning(callInput(*block.Call))
			shown.Calls = append(shown.Calls, call)
		case block.Result != nil:
			result := MessageResult{CallID: line(block.Result.CallID, maxToolName), IsError: block.Result.IsError}
			result.Text, result.OmittedBytes = beginning(block.Result.Text)
			shown.Results = append(shown.Results, result)
		}
	}
	shown.Text, shown.OmittedBytes = beginning(strings.Join(texts, "\n\n"))
	return shown
}

// callInput returns the command of Bash, and the input of another tool as JSON.
func callInput(call claude.TranscriptCall) string {
	var input struct {
		Command string `json:"command"`
	}
	if call.Name == bash && json.Unmarshal(call.Input, &input) == nil && input.Command != "" {
		return input.Command
	}
	return string(call.Input)
}

// beginning returns the beginning of a text with the margin for redaction, and how many bytes of the text are not
// shown.
func beginning(text string) (begin string, omitted int) {
	omitted = max(0, len(text)-maxMessageText)
	return strings.Clone(text[:min(len(text), maxMessageText+redactionMargin)]), omitted
}

// sizeOf returns how many bytes of a message are shown.
func sizeOf(message Message) int {
	size := min(len(message.Text), maxMessageText)
	for _, call := range message.Calls {
		size += min(len(call.Input), maxMessageText)
	}
	for _, result := range message.Results {
		size += min(len(result.Text), maxMessageText)
	}
	return size
}

// clean makes the texts of a message safe: control characters are removed, secrets are masked, and the texts are cut.
func (s *shownTranscript) clean(message *Message) {
	text := func(text string) string {
		text = s.mask.Beginning(plaintext.Block(text), maxMessageText)
		if len(text) > maxMessageText {
			text = strings.ToValidUTF8(text[:maxMessageText], "")
		}
		return text
	}
	message.Text = text(message.Text)
	for i := range message.Calls {
		message.Calls[i].Input = text(message.Calls[i].Input)
	}
	for i := range message.Results {
		message.Results[i].Text = text(message.Results[i].Text)
	}
}
