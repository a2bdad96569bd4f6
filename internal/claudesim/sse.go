package claudesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

// wireMessage is an assistant's message as the Messages API sends it.
type wireMessage struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         Role             `json:"role"`
	Model        string           `json:"model"`
	Content      []map[string]any `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        wireUsage        `json:"usage"`

	// pause is the pause before each piece of a block; 0 if the blocks are streamed in one piece.
	pause time.Duration
}

// pieceBytes is the size of a piece of a block, in bytes.
const pieceBytes = 24

// wireUsage is Usage in the API's form.
type wireUsage struct {
	InputTokens         int `json:"input_tokens"`
	CacheCreationTokens int `json:"cache_creation_input_tokens"`
	CacheReadTokens     int `json:"cache_read_input_tokens"`
	OutputTokens        int `json:"output_tokens"`
}

func (u Usage) wire() wireUsage {
	return wireUsage{
		InputTokens: u.Input, CacheCreationTokens: u.CacheCreation,
		CacheReadTokens: u.CacheRead, OutputTokens: u.Output,
	}
}

// The stop reasons of a message.
const (
	stopEndTurn = "end_turn"
	stopToolUse = "tool_use"
)

// newWireMessage returns the complete message that answers q.
func newWireMessage(q Request, blocks []Block, usage Usage) wireMessage {
	message := wireMessage{
		ID: "msg_" + q.fingerprint(), Type: "message", Role: RoleAssistant, Model: q.Model, Usage: usage.wire(),
	}
	stop := stopEndTurn
	for _, block := range blocks {
		message.Content = append(message.Content, block.wire())
		if block.Type == BlockToolUse {
			stop = stopToolUse
		}
	}
	message.StopReason = &stop
	return message
}

// stoppedBy returns the message with another reason for its end; "" keeps the reason.
func (m wireMessage) stoppedBy(reason string) wireMessage {
	if reason != "" {
		m.StopReason = &reason
	}
	return m
}

// wire returns the block in the API's form.
func (b Block) wire() map[string]any {
	switch b.Type {
	case BlockToolUse:
		return map[string]any{"type": b.Type, "id": b.ID, "name": b.Name, "input": b.Input}
	case BlockToolResult:
		return map[string]any{"type": b.Type, "tool_use_id": b.ID, "content": b.Text, "is_error": b.IsError}
	case BlockText:
		return map[string]any{"type": b.Type, "text": b.Text}
	case BlockThinking:
		return map[string]any{"type": b.Type, "thinking": b.Text, "signature": b.ID}
	default:
		return map[string]any{"type": b.Type}
	}
}

// wire returns the message in the API's form.
func (m Message) wire() map[string]any {
	content := make([]map[string]any, 0, len(m.Blocks))
	for _, block := range m.Blocks {
		content = append(content, block.wire())
	}
	return map[string]any{"role": m.Role, "content": content}
}

// streamEvent is one event of a streamed message. Its name is its "type".
type streamEvent map[string]any

// opening returns the first event of the message. The event has no content. Its number of output tokens is 1, a
// placeholder that the API also sends.
func (m wireMessage) opening() streamEvent {
	opened := m
	opened.Content, opened.StopReason, opened.Usage.OutputTokens = []map[string]any{}, nil, 1
	return streamEvent{"type": "message_start", "message": opened}
}

// blockEvents returns the events of one block: its parts and its end.
func (m wireMessage) blockEvents(index int) (parts []streamEvent, end streamEvent) {
	block := m.Content[index]
	start, kind, field := map[string]any{"type": BlockText, "text": ""}, "text_delta", "text"
	text, _ := block["text"].(string)
	if block["type"] == BlockToolUse {
		input, _ := json.Marshal(block["input"]) // raw JSON, validated before
		start = map[string]any{"type": BlockToolUse, "id": block["id"], "name": block["name"], "input": struct{}{}}
		kind, field, text = "input_json_delta", "partial_json", string(input)
	}
	if block["type"] == BlockThinking {
		start = map[string]any{"type": BlockThinking, "thinking": "", "signature": ""}
		kind, field = "thinking_delta", "thinking"
		text, _ = block["thinking"].(string)
	}
	parts = []streamEvent{{"type": "content_block_start", "index": index, "content_block": start}}
	for _, piece := range m.pieces(text) {
		parts = append(parts, streamEvent{
			"type": "content_block_delta", "index": index, "delta": map[string]any{"type": kind, field: piece},
		})
	}
	if block["type"] == BlockThinking {
		parts = append(parts, streamEvent{
			"type": "content_block_delta", "index": index,
			"delta": map[string]any{"type": "signature_delta", "signature": block["signature"]},
		})
	}
	return parts, streamEvent{"type": "content_block_stop", "index": index}
}

// pieces returns the pieces in which a text is streamed.
func (m wireMessage) pieces(text string) (pieces []string) {
	if m.pause == 0 {
		return []string{text}
	}
	for len(text) > pieceBytes {
		end := pieceBytes
		for !utf8.RuneStart(text[end]) {
			end--
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	return append(pieces, text)
}

// closing returns the last events of the message. The first of these events has the true usage.
func (m wireMessage) closing() []streamEvent {
	return []streamEvent{
		{
			"type":  "message_delta",
			"delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": nil},
			"usage": m.Usage,
		},
		{"type": "message_stop"},
	}
}

// writeSSE streams the message as server-sent events.
func (m wireMessage) writeSSE(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	events := []streamEvent{m.opening()}
	for i := range m.Content {
		parts, end := m.blockEvents(i)
		events = append(append(events, parts...), end)
	}
	for _, event := range append(events, m.closing()...) {
		data, err := json.Marshal(event)
		if err != nil {
			return
		}
		if m.pause > 0 {
			_ = http.NewResponseController(w).Flush() // all comes in one piece otherwise
			time.Sleep(m.pause)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}
