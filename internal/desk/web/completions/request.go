package completions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Roles of messages. Messages with other roles, such as results of tools, are left out: tools run here, and not at the
// client.
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
	// MaxTokens and MaxCompletionTokens say how long the answer may be. They limit nothing, but tell requests of
	// persons and programs apart.
	MaxTokens           figure `json:"max_tokens"`
	MaxCompletionTokens figure `json:"max_completion_tokens"`
	// ResponseFormat and ToolChoice can ask for what no answer has.
	ResponseFormat kind `json:"response_format"`
	ToolChoice     kind `json:"tool_choice"`
}

// figure is a number in a request; 0 for anything else.
type figure float64

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(data []byte) error {
	var number float64
	if json.Unmarshal(data, &number) == nil {
		*f = figure(number)
	}
	return nil
}

// kind is a word in a request, or the type of an object; empty for anything else.
type kind string

// UnmarshalJSON implements json.Unmarshaler.
func (k *kind) UnmarshalJSON(data []byte) error {
	var word string
	var object struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &word) == nil {
		*k = kind(word)
	} else if json.Unmarshal(data, &object) == nil {
		*k = kind(object.Type)
	}
	return nil
}

// check returns an error if the request demands what no answer has: all answers are texts in Markdown.
func (r request) check() error {
	switch r.ResponseFormat {
	case "", "text":
	default:
		return &requestError{"response_format", "answers are texts: leave response_format out"}
	}
	switch r.ToolChoice {
	case "", "auto", "none":
		return nil
	default:
		return &requestError{"tool_choice", "tools run here, and not at the client: leave tool_choice out"}
	}
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
	// instructed reports that an instruction of the client comes last, after an answer.
	instructed bool
	// continues reports that the client asks to continue the last answer, which it will show as one with the new one.
	continues bool
}

const (
	// continueText is the message of a client that asks to continue the last answer.
	continueText = "Continue your last answer."
	// continued stands between an answer and its continuation.
	continued = "\n\n"
)

// readRequest reads the body of r.
func readRequest(r *http.Request) (request, dialogue, error) {
	var read request
	// to its end, which also ends the time limit of the body
	body, err := io.ReadAll(io.LimitReader(newLightReader(r.Body), maxBody+1))
	if err == nil && len(body) > maxBody {
		err = &http.MaxBytesError{Limit: maxBody}
	}
	if err != nil {
		return read, dialogue{}, err
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return read, dialogue{}, &requestError{
			"",
			fmt.Sprintf("the request is not valid JSON for a chat completion: %v", err),
		}
	}
	if err := read.check(); err != nil {
		return read, dialogue{}, err
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
	if !slices.ContainsFunc(d.before, func(m message) bool { return m.Role == roleUser }) {
		return d, &requestError{"messages", "there must be a message of the user, with text"}
	}
	last := len(d.before) - 1
	if d.before[last].Role == roleAssistant {
		ends := messages[len(messages)-1].Role
		d.instructed = ends == roleSystem || ends == roleDeveloper
		d.text, d.continues = continueText, !d.instructed
		return d, nil
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
