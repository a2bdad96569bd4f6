package claude

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// TranscriptMessage is a message in a transcript, or a part of one: the CLI writes a line for each content block of an
// assistant's message. Its texts are as the agent, its tools and people wrote them.
type TranscriptMessage struct {
	UUID string
	// At is the time of the message by the CLI's clock; zero if the line has none.
	At   time.Time
	Role TranscriptRole
	// ID is the API's ID of the assistant's message, which all its lines share. Model and Tokens belong to that
	// message.
	ID     string
	Model  string
	Tokens Tokens
	// Subagent reports whether the message belongs to an agent that the agent has started.
	Subagent bool
	Blocks   []TranscriptBlock
}

// TranscriptRole says who has written a message.
type TranscriptRole string

// The roles.
const (
	TranscriptUser      TranscriptRole = "user" // a prompt, or the result of a call
	TranscriptAssistant TranscriptRole = "assistant"
	TranscriptSystem    TranscriptRole = "system" // the CLI itself
)

// TranscriptBlock is a content block of a message. Exactly one of its parts is set.
type TranscriptBlock struct {
	// Text is a text; nil if the block is none.
	Text *string
	// Call is a call of a tool, and Result the result of one.
	Call   *TranscriptCall
	Result *TranscriptResult
}

// TranscriptCall is a call of a tool.
type TranscriptCall struct {
	ID, Name string
	Input    json.RawMessage
}

// TranscriptResult is the result of a call.
type TranscriptResult struct {
	CallID  string
	Text    string
	IsError bool
}

// maxMessageLine limits a line of a transcript, because a line is held in memory. Lines of the CLI can have some
// megabytes.
const maxMessageLine = 32 << 20

// ReadMessages reads the messages of a transcript in order, and calls the function each with every one. It leaves out
// the agent's thoughts. It returns how many lines cannot be read: they are not JSON, or are too long.
func ReadMessages(transcript io.Reader, each func(TranscriptMessage)) (unreadable int, err error) {
	lines := bufio.NewReaderSize(transcript, 64<<10)
	for {
		line, long, err := readLine(lines, maxMessageLine)
		if len(bytes.TrimSpace(line)) > 0 || long {
			message, ok := decodeMessage(line)
			switch {
			case long || !ok:
				unreadable++
			case len(message.Blocks) > 0:
				each(message)
			}
		}
		if errors.Is(err, io.EOF) {
			return unreadable, nil
		}
		if err != nil {
			return unreadable, err
		}
	}
}

// readLine reads the next line. Of a line with more than limit bytes, it returns nothing, and true.
func readLine(lines *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// transcriptLine has the fields of a transcript's line that this package shows.
type transcriptLine struct {
	Type      eventType     `json:"type"`
	Subtype   systemSubtype `json:"subtype"`
	UUID      string        `json:"uuid"`
	Timestamp string        `json:"timestamp"`
	Sidechain bool          `json:"isSidechain"`
	// Meta marks a message that the CLI has written in the name of the user.
	Meta    bool            `json:"isMeta"`
	Message json.RawMessage `json:"message"`
}

// decodeMessage decodes a line. A line of another kind is a message without blocks. It returns false if the line cannot
// be read.
func decodeMessage(line []byte) (message TranscriptMessage, ok bool) {
	var read transcriptLine
	if json.Unmarshal(line, &read) != nil {
		return message, false
	}
	message = TranscriptMessage{UUID: read.UUID, Role: TranscriptRole(read.Type), Subagent: read.Sidechain}
	message.At, _ = time.Parse(time.RFC3339Nano, read.Timestamp) // zero if it is no time
	switch {
	case read.Type == eventSystem && read.Subtype == systemCompacted:
		message.addText("A summary replaces the conversation up to here.")
		return message, true
	case read.Type != eventUser && read.Type != eventAssistant:
		return message, true
	case read.Meta:
		message.Role = TranscriptSystem
	}
	ok = message.decode(read.Message)
	return message, ok
}

// decode decodes the content of a message.
func (m *TranscriptMessage) decode(content json.RawMessage) bool {
	var read struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Usage   usage           `json:"usage"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &read) != nil {
		return false
	}
	m.ID, m.Tokens = read.ID, read.Usage.tokens()
	if read.Model != syntheticModel {
		m.Model = read.Model
	}
	var text string
	if json.Unmarshal(read.Content, &text) == nil {
		m.addText(text)
		return true
	}
	var blocks []struct {
		contentBlock

		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(read.Content, &blocks) != nil {
		return false
	}
	for _, block := range blocks {
		switch block.Type {
		case blockText:
			m.addText(block.Text)
		case blockToolUse:
			m.Blocks = append(m.Blocks,
				TranscriptBlock{Call: &TranscriptCall{ID: block.ID, Name: block.Name, Input: block.Input}})
		case blockToolResult:
			result := &TranscriptResult{
				CallID: block.ToolUseID, Text: resultText(block.Content),
				IsError: block.IsError,
			}
			m.Blocks = append(m.Blocks, TranscriptBlock{Result: result})
		}
	}
	return true
}

func (m *TranscriptMessage) addText(text string) {
	m.Blocks = append(m.Blocks, TranscriptBlock{Text: &text})
}

// resultText returns the text of a call's result, which is a text or a list of blocks. Blocks of other kinds, such as
// images, are named.
func resultText(content json.RawMessage) string {
	var text string
	if len(content) == 0 || json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []contentBlock
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	var joined bytes.Buffer
	for _, block := range blocks {
		if joined.Len() > 0 {
			_ = joined.WriteByte('\n')
		}
		if block.Type == blockText {
			_, _ = joined.WriteString(block.Text)
		} else {
			_, _ = joined.WriteString("[" + string(block.Type) + "]")
		}
	}
	return joined.String()
}
