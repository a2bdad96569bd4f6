package completions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Roles of messages. Messages with other roles, such as results of tools, are left out: tools run here, and not at the client.
const (
	roleSystem    = "system"
	roleDeveloper = "developer"
	roleUser      = "user"
	roleAssistant = "assistant"
)

// request is what a client sends. Unknown fields are ignored, among them the model: it chooses nothing.
type request struct {
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// message is one message in a request.
type message struct {
	Role string  `json:"role"`
	Text content `json:"content"`
}

// content is the text of a message, which arrives as text or as parts.
type content string

// UnmarshalJSON implements json.Unmarshaler. A part that is no text is named in the text, so that its loss is visible.
func (c *content) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if text != nil {
			*c = content(*text)
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("content must be text, or a list of parts")
	}
	var texts []string
	for _, part := range parts {
		if part.Type != "text" {
			part.Text = fmt.Sprintf("[%s is left out: only text can be read]", part.Type)
		}
		texts = append(texts, part.Text)
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// dialogue is what a request says.
type dialogue struct {
	// instructions are the client's own, for example the system prompt of a chat.
	instructions string
	// before holds the messages of the person and the answers so far, oldest first, and text is the new message.
	before []message
	text   string
}

// readRequest reads the body of r.
func readRequest(r *http.Request) (request, dialogue, error) {
	var read request
	body, err := io.ReadAll(r.Body) // to its end, which also ends the time limit of the body
	if err != nil {
		return read, dialogue{}, err
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return read, dialogue{}, &requestError{"", fmt.Sprintf("the request is not valid JSON for a chat completion: %v", err)}
	}
	d, err := dialogueOf(read.Messages)
	return read, d, err
}

// dialogueOf sorts the messages of a request.
func dialogueOf(messages []message) (dialogue, error) {
	var d dialogue
	var instructions []string
	for _, m := range messages {
		text := strings.TrimSpace(string(m.Text))
		switch m.Role {
		case roleSystem, roleDeveloper:
			instructions = append(instructions, text)
		case roleUser, roleAssistant:
			if text != "" {
				d.before = append(d.before, message{m.Role, content(text)})
			}
		}
	}
	d.instructions = strings.TrimSpace(strings.Join(instructions, "\n\n"))
	last := len(d.before) - 1
	if last < 0 || d.before[last].Role != roleUser {
		return d, &requestError{"messages", "the last message must be one of the user, with text"}
	}
	d.before, d.text = d.before[:last], string(d.before[last].Text)
	return d, nil
}

// requestError is a mistake in a request.
type requestError struct {
	// param is the field; empty if the mistake is in no single field.
	param, problem string
}

func (e *requestError) Error() string { return e.problem }
