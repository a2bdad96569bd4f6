package claudesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// wireRequest holds the parts of the body of POST /v1/messages that this package uses.
type wireRequest struct {
	Model     string      `json:"model"`
	System    wireContent `json:"system"`
	MaxTokens int         `json:"max_tokens"`
	Stream    bool        `json:"stream"`
	Tools     []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    Role        `json:"role"`
		Content wireContent `json:"content"`
	} `json:"messages"`
}

// wireContent is message content, which JSON encodes as a string or as a list of blocks.
type wireContent []wireBlock

type wireBlock struct {
	Type      BlockType       `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   wireContent     `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
}

// UnmarshalJSON implements json.Unmarshaler. It accepts a string or a list of blocks.
func (c *wireContent) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("content: %w", err)
		}
		*c = wireContent{{Type: BlockText, Text: text}}
		return nil
	}
	var blocks []wireBlock
	if err := json.Unmarshal(data, &blocks); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	*c = blocks
	return nil
}

func (c wireContent) blocks() []Block {
	blocks := make([]Block, 0, len(c))
	for _, w := range c {
		block := Block{Type: w.Type, Text: w.Text, ID: w.ID, Name: w.Name, Input: w.Input, IsError: w.IsError}
		switch w.Type { //nolint:exhaustive // the others have no fields of their own
		case BlockToolResult:
			block.ID, block.Text = w.ToolUseID, w.Content.text()
		case BlockThinking:
			block.ID, block.Text = w.Signature, w.Thinking
		}
		blocks = append(blocks, block)
	}
	return blocks
}

func (c wireContent) text() string {
	texts := make([]string, 0, len(c))
	for _, w := range c {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, "\n")
}

// parseRequest decodes the body of POST /v1/messages.
func parseRequest(body []byte, header http.Header) (Request, error) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return Request{}, fmt.Errorf("decode request: %w", err)
	}
	r := Request{
		Model: wire.Model, System: wire.System.text(), Stream: wire.Stream,
		MaxTokens: wire.MaxTokens, Header: withoutCredentials(header),
	}
	for _, tool := range wire.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	for _, message := range wire.Messages {
		r.Messages = append(r.Messages, Message{Role: message.Role, Blocks: message.Content.blocks()})
	}
	return r, nil
}

func withoutCredentials(header http.Header) http.Header {
	header = header.Clone()
	for _, name := range []string{"X-Api-Key", "Authorization", "Cookie", "Proxy-Authorization"} {
		header.Del(name)
	}
	return header
}
