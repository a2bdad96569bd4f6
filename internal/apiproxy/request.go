package apiproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// modelMember is the JSON member that names a model. It occurs at the top level of a request and in an advisor among
// the tools. It also occurs in a fallback, which the API can use instead of the requested model.
const modelMember = "model"

// unsearched reports whether the search for models skips a member of a JSON object. It skips the conversation, the
// system prompt and the input schemas of tools. These members name no model and make up most of a request.
func unsearched(member string) bool {
	return member == "messages" || member == "system" || member == "input_schema"
}

// askedModels returns the names of all models in a request, beginning with the request's own model. It refuses a
// request in which an object has the member "model" twice, or not in lower case. In these cases the proxy and the API
// could disagree about the model.
func askedModels(body []byte) ([]string, error) {
	reader := modelReader{decoder: json.NewDecoder(bytes.NewReader(body))}
	reader.decoder.UseNumber()
	opening, err := reader.decoder.Token()
	if err != nil || opening != json.Delim('{') {
		return nil, errors.New("the request is not a JSON object")
	}
	own, err := reader.object()
	if err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if _, err := reader.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the request does not end with its JSON object")
	}
	if own == "" {
		return nil, errors.New("the request names no model")
	}
	return append([]string{own}, reader.found...), nil
}

// modelReader collects the names of models in a JSON value.
type modelReader struct {
	decoder *json.Decoder
	// found lists the models named below the outermost object.
	found []string
}

// object reads the rest of a JSON object, after the opening brace. It returns the model that the object itself names.
// It does not return the models in inner objects.
func (r *modelReader) object() (own string, err error) {
	named := false
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return "", err
		}
		member, _ := token.(string)
		if strings.EqualFold(member, modelMember) {
			if member != modelMember || named {
				return "", fmt.Errorf("%q is there twice, or not in lower case", modelMember)
			}
			named = true
		}
		value, err := r.member(member)
		if err != nil {
			return "", err
		}
		if member == modelMember {
			own = value
		}
	}
	_, err = r.decoder.Token() // the closing brace
	return own, err
}

// member reads the value of an object's member. It returns the value if that is a string, and "" otherwise.
func (r *modelReader) member(name string) (string, error) {
	if unsearched(name) {
		var skipped json.RawMessage
		return "", r.decoder.Decode(&skipped)
	}
	return r.value()
}

// value reads a JSON value. It returns the value if that is a string, and "" otherwise.
func (r *modelReader) value() (string, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return "", err
	}
	switch token {
	case json.Delim('{'):
		own, err := r.object()
		if own != "" {
			r.found = append(r.found, own)
		}
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
