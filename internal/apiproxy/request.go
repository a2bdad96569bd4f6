package apiproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// permittedMembers lists the members of a request that a session may send: those that the measured versions of the CLI
// send, and those that choose a model, which the proxy compares with the session's. Other members can make the API run
// programs (mcp_servers, container) or charge other prices (speed, service_tier, inference_geo).
func permittedMembers() []string {
	return []string{
		"model", "messages", "system", "max_tokens", "stream", "metadata", "tools", "tool_choice", "temperature", "top_p", "top_k",
		"stop_sequences", "thinking", "output_config", "output_format", "context_management", "cache_control", "betas",
		"diagnostics", "fallbacks",
	}
}

// unsearched reports whether the search for models skips a member of a JSON object. It skips the conversation, the
// system prompt and the input schemas of tools. These members name no model and make up most of a request.
func unsearched(member string) bool {
	return member == "messages" || member == "system" || member == "input_schema"
}

// question is what the proxy has to know of a request.
type question struct {
	// models lists all models that the request names, beginning with its own.
	models []string
	// tools lists the types of its tools. The type of a tool that the caller runs is empty or customTool.
	tools []string
}

// customTool is the type of a tool that the caller runs. The API itself runs tools of other types.
const customTool = "custom"

// readQuestion reads a request. It refuses a request with a member that a session may not send. It also refuses a
// request in which a member that matters is there twice, or not in lower case. In these cases the proxy and the API
// could disagree about the value.
func readQuestion(body []byte) (question, error) {
	reader := requestReader{decoder: json.NewDecoder(bytes.NewReader(body))}
	reader.decoder.UseNumber()
	opening, err := reader.decoder.Token()
	if err != nil || opening != json.Delim('{') {
		return question{}, errors.New("the request is not a JSON object")
	}
	own, err := reader.request()
	if err != nil {
		return question{}, fmt.Errorf("the request cannot be read: %w", err)
	}
	if _, err := reader.decoder.Token(); !errors.Is(err, io.EOF) {
		return question{}, errors.New("the request does not end with its JSON object")
	}
	if own == "" {
		return question{}, errors.New("the request names no model")
	}
	return question{models: append([]string{own}, reader.models...), tools: reader.tools}, nil
}

// requestReader collects the models and the tools of a request.
type requestReader struct {
	decoder *json.Decoder
	// models lists the models named below the outermost object, and tools the types of tools.
	models, tools []string
}

// request reads the rest of the outermost object, after the opening brace. It returns the request's own model.
func (r *requestReader) request() (model string, err error) {
	var seen []string
	for r.decoder.More() {
		member, err := r.name()
		switch {
		case err != nil:
			return "", err
		case !slices.Contains(permittedMembers(), member):
			return "", foreignMember(member)
		case slices.Contains(seen, member):
			return "", fmt.Errorf("%q is there twice", member)
		}
		seen = append(seen, member)
		value := ""
		if member == "tools" {
			err = r.toolList()
		} else {
			value, err = r.member(member)
		}
		if err != nil {
			return "", err
		}
		if member == "model" {
			model = value
		}
	}
	_, err = r.decoder.Token() // the closing brace
	return model, err
}

// toolList reads the value of the member "tools".
func (r *requestReader) toolList() error {
	opening, err := r.decoder.Token()
	if err != nil || opening == nil { // null
		return err
	}
	if opening != json.Delim('[') {
		return errors.New("its tools are no list")
	}
	for r.decoder.More() {
		opening, err := r.decoder.Token()
		if err != nil {
			return err
		}
		if opening != json.Delim('{') {
			return errors.New("one of its tools is no object")
		}
		tool, err := r.object()
		if err != nil {
			return err
		}
		r.tools = append(r.tools, tool.kind)
	}
	_, err = r.decoder.Token() // the closing bracket
	return err
}

// object is what matters of a JSON object below the request.
type object struct{ model, kind string }

// object reads the rest of a JSON object, after the opening brace.
func (r *requestReader) object() (found object, err error) {
	values := map[string]*string{"model": &found.model, "type": &found.kind}
	var seen []string
	for r.decoder.More() {
		member, err := r.name()
		if err != nil {
			return found, err
		}
		lower := strings.ToLower(member)
		wanted := values[lower]
		if wanted != nil && (member != lower || slices.Contains(seen, member)) {
			return found, fmt.Errorf("%q is there twice, or not in lower case", lower)
		}
		value, err := r.member(member)
		if err != nil {
			return found, err
		}
		if wanted != nil {
			seen, *wanted = append(seen, member), value
		}
	}
	if found.model != "" {
		r.models = append(r.models, found.model)
	}
	_, err = r.decoder.Token() // the closing brace
	return found, err
}

// name reads the name of a member.
func (r *requestReader) name() (string, error) {
	token, err := r.decoder.Token()
	name, _ := token.(string)
	return name, err
}

// member reads the value of an object's member. It returns the value if that is a string, and "" otherwise.
func (r *requestReader) member(name string) (string, error) {
	if unsearched(name) {
		var skipped json.RawMessage
		return "", r.decoder.Decode(&skipped)
	}
	return r.value()
}

// value reads a JSON value. It returns the value if that is a string, and "" otherwise.
func (r *requestReader) value() (string, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return "", err
	}
	switch token {
	case json.Delim('{'):
		_, err := r.object()
		return "", err
	case json.Delim('['):
		for r.decoder.More() {
			if _, err := r.value(); err != nil {
				return "", err
			}
		}
		_, err := r.decoder.Token() // the closing bracket
		return "", err
	}
	text, _ := token.(string)
	return text, nil
}
