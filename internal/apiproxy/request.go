package apiproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// modelMember is the name of what names a model: of the request itself, of an advisor among its tools, of the
// fallbacks that the API may take instead.
const modelMember = "model"

// unsearched are the members in which no model is named: what is said, and what a tool takes. They are most of
// a request.
func unsearched(member string) bool {
	return member == "messages" || member == "system" || member == "input_schema"
}

// askedModels returns the names of all models that a request names, that of the request itself first. It
// refuses a request that names two in one place, or writes the member in another way than the API does: its
// readers could disagree about which one counts.
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

// modelReader finds the names of models in a JSON value.
type modelReader struct {
	decoder *json.Decoder
	// found are the models that are named below the outermost object.
	found []string
}

// object reads the rest of an object that has begun, and returns the model that it names itself.
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

// member reads the value of an object's member, and returns it if it is a string.
func (r *modelReader) member(name string) (string, error) {
	if unsearched(name) {
		var skipped json.RawMessage
		return "", r.decoder.Decode(&skipped)
	}
	return r.value()
}

// value reads a value, and returns it if it is a string.
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
