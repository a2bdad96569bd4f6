package claudesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// structuredOutputTool is the tool that a model calls to give output that --json-schema requires.
const structuredOutputTool = "StructuredOutput"

// Request is one model call: received by the Messages API from the real CLI, or simulated by the stand-in.
type Request struct {
	Model string `json:"model"`
	// System is the system prompt, with its blocks joined by newlines. For the stand-in it is only the text of
	// --append-system-prompt.
	System   string    `json:"system,omitempty"`
	Tools    []string  `json:"tools,omitempty"`
	Messages []Message `json:"messages"`
	// Stream reports whether the answer is streamed.
	Stream bool `json:"stream,omitempty"`
	// MaxTokens limits the tokens of the answer.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Header is the HTTP header without credentials; nil for the stand-in.
	Header http.Header `json:"header,omitempty"`
}

// Message is one message of a conversation.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"content"`
}

// Role is the author of a message.
type Role string

// The roles of messages. The CLI itself uses RoleSystem for messages that it adds between the user's messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
)

// Block is one piece of a message: text, a tool call or a tool's result.
type Block struct {
	Type BlockType `json:"type"`
	// Text is the content of a text block or of a tool result.
	Text string `json:"text,omitempty"`
	// ID is the id of the tool call, in the call and in its result. In a block of thinking it is the signature.
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// BlockType is the kind of a block.
type BlockType string

// The kinds of blocks that this package uses. Blocks of other kinds are kept and ignored.
const (
	BlockText       BlockType = "text"
	BlockToolUse    BlockType = "tool_use"
	BlockToolResult BlockType = "tool_result"
	BlockThinking   BlockType = "thinking"
)

// Prompt returns the conversation's last prompt: a text in a user message that the CLI did not add. If there is no
// prompt, Prompt returns "".
func (r Request) Prompt() string {
	prompt, _ := r.position()
	return prompt
}

// first returns the first prompt of the conversation; "" if there is none.
func (r Request) first() string {
	if prompts := r.Prompts(); len(prompts) > 0 {
		return prompts[0]
	}
	return ""
}

// Step returns the number of model calls since the last prompt.
func (r Request) Step() int {
	_, step := r.position()
	return step
}

// position returns the last prompt and the number of the assistant's messages after it.
func (r Request) position() (prompt string, step int) {
	for _, message := range slices.Backward(r.Messages) {
		switch message.Role {
		case RoleAssistant:
			step++
		case RoleUser:
			for _, block := range slices.Backward(message.Blocks) {
				if block.Type == BlockText && !addedByCLI(block.Text) {
					return strings.TrimSpace(block.Text), step
				}
			}
		case RoleSystem: // not counted
		}
	}
	return "", step
}

// addedByCLI reports whether the CLI, and not a person, wrote text in a user message.
func addedByCLI(text string) bool {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{
		"<system-reminder>", "<task-notification>", "<local-command-", "<command-name>",
		"[Request interrupted", "[structured-output-enforce]", "[Your previous response",
		"[SYSTEM NOTIFICATION", "Output token limit hit.", "Your response above was stopped by a safety classifier",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return text == ""
}

// Auxiliary reports whether the CLI made the request for its own purposes: a title for the conversation, or a probe
// of the quota. Scenarios do not answer such requests.
func (r Request) Auxiliary() bool {
	return len(r.Tools) == 0 && (r.MaxTokens == 1 || strings.HasPrefix(r.Prompt(), "<session>"))
}

// Prompts returns all prompts of the conversation, in order.
func (r Request) Prompts() []string {
	var prompts []string
	for _, message := range r.Messages {
		for _, block := range message.Blocks {
			if message.Role == RoleUser && block.Type == BlockText && !addedByCLI(block.Text) {
				prompts = append(prompts, strings.TrimSpace(block.Text))
			}
		}
	}
	return prompts
}

// ToolResults returns the texts of all tool results of the conversation, in order, without the reminders that the CLI
// adds.
func (r Request) ToolResults() []string {
	var results []string
	for _, message := range r.Messages {
		for _, block := range message.Blocks {
			if block.Type == BlockToolResult {
				text, _, _ := strings.Cut(block.Text, "\n\n<system-reminder>\n")
				results = append(results, text)
			}
		}
	}
	return results
}

// Thinking counts the blocks of thinking in the conversation.
func (r Request) Thinking() int {
	count := 0
	for _, message := range r.Messages {
		for _, block := range message.Blocks {
			if block.Type == BlockThinking {
				count++
			}
		}
	}
	return count
}

// Text returns the text of all messages, including tool calls and results, one block per line. Tests search the result
// for phrases.
func (r Request) Text() string {
	var b strings.Builder
	for _, message := range r.Messages {
		for _, block := range message.Blocks {
			fmt.Fprintf(&b, "%s: %s%s\n", message.Role, block.Text, block.Input)
		}
	}
	return b.String()
}

// Offers reports whether the model can call tool.
func (r Request) Offers(tool string) bool { return slices.Contains(r.Tools, tool) }
