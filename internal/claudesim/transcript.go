package claudesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// transcripts locates the directory in which the CLI stores conversations.
type transcripts struct {
	root string // the configuration directory
	dir  string // the working directory
}

// missingError is the refusal to continue a conversation that does not exist. For this error the CLI also prints a
// result.
type missingError struct{ refusal }

var escaped = regexp.MustCompile(`[^A-Za-z0-9]`)

// path returns the path of the transcript of a conversation that starts in the working directory.
func (t transcripts) path(id string) string {
	return filepath.Join(t.root, "projects", escaped.ReplaceAllString(t.dir, "-"), id+".jsonl")
}

// find returns the path of the transcript of an existing conversation; "" if there is none.
func (t transcripts) find(id string) string {
	if uuid.Validate(id) != nil {
		return ""
	}
	others, _ := filepath.Glob(filepath.Join(t.root, "projects", "*", id+".jsonl"))
	for _, path := range append([]string{t.path(id)}, others...) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// open returns the conversation for o: a new one, an existing one, or a copy of an existing one under a new id. The
// error is a refusal or a missingError.
func (t transcripts) open(o options) (*conversation, error) {
	if o.resume == "" {
		return t.create(o.sessionID, nil)
	}
	path := t.find(o.resume)
	if path == "" {
		return nil, noConversation(o.resume)
	}
	existing, err := loadConversation(path)
	if err != nil || len(existing.messages) == 0 {
		return nil, noConversation(o.resume)
	}
	existing.id = o.resume
	if !o.fork || o.sessionID == o.resume { // the CLI treats a fork into the same id as a resume
		return existing, nil
	}
	return t.create(o.sessionID, existing)
}

func noConversation(id string) error {
	if uuid.Validate(id) == nil {
		return missingError{refusal("No conversation found with session ID: " + id)}
	}
	return missingError{refusal("Error: --resume requires a valid session ID or session title when used with " +
		"--print. Usage: claude -p --resume <session-id|title>. Provided value " + strconv.Quote(id) +
		" is not a UUID and does not match any session title.")}
}

// create creates a conversation. If parent is not nil, create copies its content.
func (t transcripts) create(id string, parent *conversation) (*conversation, error) {
	if id == "" {
		id = uuid.NewString()
	}
	path := t.path(id)
	if _, err := os.Stat(path); err == nil {
		return nil, refusef("Error: Session ID %s is already in use.", id)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, refusef("Error: create the transcript's directory: %v", err)
	}
	c := &conversation{path: path, id: id}
	if parent != nil {
		c.messages, c.cost, c.last = parent.messages, parent.cost, parent.last
		for _, line := range parent.lines {
			line["sessionId"] = id
			c.write(line)
		}
	}
	return c, nil
}

// conversation is a transcript: its messages and its file.
type conversation struct {
	path     string
	id       string
	messages []Message
	cost     costState
	last     string // uuid of the line of the last message
	lines    []map[string]any
	repairs  []Message // messages that the repair added; written when the conversation continues
}

// transcriptLine is a line of a transcript, with the fields that loadConversation needs.
type transcriptLine struct {
	Type    string `json:"type"`
	UUID    string `json:"uuid"`
	Message struct {
		ID      string      `json:"id"`
		Role    Role        `json:"role"`
		Content wireContent `json:"content"`
	} `json:"message"`
	costState
}

// loadConversation reads a transcript. It skips lines that are not JSON.
func loadConversation(path string) (*conversation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	c := &conversation{path: path}
	lastMessage := ""
	for raw := range bytes.Lines(data) {
		var line transcriptLine
		var whole map[string]any
		if json.Unmarshal(raw, &line) != nil || json.Unmarshal(raw, &whole) != nil {
			continue
		}
		c.lines = append(c.lines, whole)
		switch line.Type {
		case "cost-state":
			c.cost = line.costState
		case string(RoleUser), string(RoleAssistant):
			c.load(line, lastMessage)
			lastMessage = line.Message.ID
		}
	}
	c.repair()
	return c, nil
}

// load adds the message of a transcript line to c. Several consecutive lines can hold the parts of one message of the
// assistant.
func (c *conversation) load(line transcriptLine, lastMessage string) {
	c.last = line.UUID
	blocks := line.Message.Content.blocks()
	if n := len(c.messages); line.Message.ID != "" && line.Message.ID == lastMessage {
		c.messages[n-1].Blocks = append(c.messages[n-1].Blocks, blocks...)
		return
	}
	c.messages = append(c.messages, Message{Role: line.Message.Role, Blocks: blocks})
}

// write appends a line to the transcript. It ignores errors, because the CLI also continues if it cannot write the
// transcript.
func (c *conversation) write(line map[string]any) {
	data, err := json.Marshal(line)
	if err != nil {
		return
	}
	file, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(append(data, '\n'))
	_ = file.Close()
}

// writeMessage appends a line with a message.
func (c *conversation) writeMessage(kind Role, message, stamp map[string]any) {
	line := map[string]any{
		"type": kind, "message": message, "uuid": uuid.NewString(), "parentUuid": nil, "isSidechain": false,
		"sessionId": c.id, "timestamp": timestamp(), "userType": "external",
	}
	if c.last != "" {
		line["parentUuid"] = c.last
	}
	maps.Copy(line, stamp)
	c.last, _ = line["uuid"].(string)
	c.write(line)
}

func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
