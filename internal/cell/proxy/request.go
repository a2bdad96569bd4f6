package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// question is what the proxy has to know of a request.
type question struct {
	// models lists all models that the request names, beginning with its own.
	models []string
	// tools lists the types of its tools. The type of a tool that the caller runs is empty or customTool.
	tools []string
}

// customTool is the type of a tool that the caller runs. The API itself runs tools of other types.
const customTool = "custom"

// readQuestion reads a request. It refuses a request with a member that a session may not send, and one in which a
// member is there twice: the proxy and the API could disagree about its value.
func readQuestion(body []byte) (question, error) {
	reader := requestReader{decoder: json.NewDecoder(bytes.NewReader(body))}
	reader.decoder.UseNumber()
	opening, err := reader.decoder.Token()
	if err != nil || opening != json.Delim('{') {
		return question{}, errors.New("the request is not a JSON object")
	}
	if err := reader.object("", requestShape()); err != nil {
		return question{}, fmt.Errorf("the request cannot be read: %w", err)
	}
	if _, err := reader.decoder.Token(); !errors.Is(err, io.EOF) {
		return question{}, errors.New("the request does not end with its JSON object")
	}
	if reader.own == "" {
		return question{}, errors.New("the request names no model")
	}
	return question{models: append([]string{reader.own}, reader.models...), tools: reader.tools}, nil
}

// requestReader collects the models and the tools of a request.
type requestReader struct {
	decoder *json.Decoder
	// own is the request's own model. models lists the models named below the outermost object, and tools the types of
	// tools.
	own           string
	models, tools []string
}

// object reads the rest of a JSON object, after the opening brace. The path names the object's place in the request.
func (r *requestReader) object(path string, of shape) error {
	var seen []string
	kind := ""
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		member, known := of.members[name]
		switch {
		case !known:
			return foreignMember(strings.TrimPrefix(path+"."+name, "."))
		case slices.Contains(seen, name):
			return fmt.Errorf("%q is there twice", name)
		}
		seen = append(seen, name)
		text, err := r.value(strings.TrimPrefix(path+"."+name, "."), member, false)
		if err != nil {
			return err
		}
		switch {
		case name == "type":
			kind = text
		case name == "model" && path == "":
			r.own = text
		case name == "model":
			r.models = append(r.models, text)
		}
	}
	if path == "tools" {
		r.tools = append(r.tools, kind)
	}
	_, err := r.decoder.Token() // the closing brace
	return err
}

// value reads a JSON value of a shape. It returns the value if that is a string, and "" otherwise.
func (r *requestReader) value(path string, of shape, inList bool) (text string, err error) {
	if of.opaque {
		var skipped json.RawMessage
		return "", r.decoder.Decode(&skipped)
	}
	token, err := r.decoder.Token()
	if err != nil || token == nil && !inList { // null
		return "", err
	}
	switch {
	case token == json.Delim('[') && of.list && !inList:
		for r.decoder.More() {
			if _, err := r.value(path, of, true); err != nil {
				return "", err
			}
		}
		_, err := r.decoder.Token() // the closing bracket
		return "", err
	case of.list && !inList:
		return "", fmt.Errorf("%q is no list", path)
	case token == json.Delim('{') && of.members != nil:
		return "", r.object(path, of)
	}
	if _, nested := token.(json.Delim); nested || !of.scalar {
		return "", fmt.Errorf("%q has a value of another kind than the CLI sends", path)
	}
	text, _ = token.(string)
	return text, nil
}
