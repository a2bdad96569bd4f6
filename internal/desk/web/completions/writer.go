package completions

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
)

// modelInfo describes a model.
type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// ownModel is the only model. Which model of Claude answers is a setting of the workers. The time has no meaning, but
// clients expect it.
var ownModel = modelInfo{ID: model, Object: "model", Created: 1_767_225_600, OwnedBy: model}

// modelList is a list of models.
type modelList struct {
	Object string      `json:"object"`
	Data   []modelInfo `json:"data"`
}

// completion is an answer, or a part of a streamed one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// choice is the only choice of a completion.
type choice struct {
	Index   int    `json:"index"`
	Message *words `json:"message,omitempty"`
	Delta   *words `json:"delta,omitempty"`
	// FinishReason is null before the end.
	FinishReason *string `json:"finish_reason"`
}

// words are words of the assistant.
type words struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// usage counts tokens.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func usageOf(tokens escalation.TokenUsage) *usage {
	read := tokens.Input + tokens.CacheRead + tokens.CacheCreation
	return &usage{read, tokens.Output, read + tokens.Output}
}

// writer writes one answer, streamed or whole.
type writer struct {
	response http.ResponseWriter
	id       string
	created  int64
	// streams reports whether the client wants a stream, and usage whether it wants the number of tokens.
	streams, usage bool
	// lead precedes the answer.
	lead string
	// stream is valid after begin, if the answer is streamed. Then an error can no longer have a status.
	stream *stream.Writer
	parts  parts
}

// done ends every stream.
const done = "data: [DONE]\n\n"

// errGone is the error of a client that does not read.
var errGone = errors.New("the client has gone")

// begin begins a streamed answer.
func (w *writer) begin() {
	if w.streams {
		events := stream.Begin(w.response)
		w.stream = &events
		_ = w.delta(words{Role: roleAssistant, Content: new(w.lead)}, nil) // a client that has gone is noticed later
	}
}

// text passes on a part of the answer.
func (w *writer) text(part string) error {
	if w.stream == nil || part == "" {
		return nil
	}
	return w.delta(words{Content: &part}, nil)
}

// ping sends a comment.
func (w *writer) ping() error {
	if w.stream == nil {
		return nil
	}
	return w.send(": waiting\n\n")
}

// finish ends the answer with the rest of its text. It returns an error if the client has not got it.
func (w *writer) finish(rest string, tokens escalation.TokenUsage) error {
	stop := new("stop")
	if w.stream == nil {
		rest = w.lead + rest
		return writeJSON(w.response, completion{
			ID: w.id, Object: "chat.completion", Created: w.created, Model: model, Usage: usageOf(tokens),
			Choices: []choice{{Message: &words{roleAssistant, &rest}, FinishReason: stop}},
		})
	}
	err := w.text(rest)
	if err == nil {
		err = w.delta(words{}, stop)
	}
	if err == nil && w.usage {
		last := w.chunk()
		last.Choices, last.Usage = []choice{}, usageOf(tokens)
		err = w.event(last)
	}
	if err == nil {
		err = w.send(done)
	}
	return err
}

// chunk returns a part of a streamed answer, without its choices.
func (w *writer) chunk() completion {
	return completion{ID: w.id, Object: "chat.completion.chunk", Created: w.created, Model: model}
}

func (w *writer) delta(delta words, reason *string) error {
	next := w.chunk()
	next.Choices = []choice{{Delta: &delta, FinishReason: reason}}
	return w.event(next)
}

// event sends one event with data.
func (w *writer) event(data any) error {
	encoded, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return w.send("data: " + string(encoded) + "\n\n")
}

func (w *writer) send(text string) error {
	if !w.stream.Send([]byte(text)) {
		return errGone
	}
	return nil
}

func writeJSON(w http.ResponseWriter, data any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(data)
}
