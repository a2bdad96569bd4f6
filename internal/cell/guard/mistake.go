package guard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// PolicyError describes a mistake in a policy in one sentence.
type PolicyError struct {
	// Line is the number of the line in the file, from 1; 0 if it is unknown.
	Line int
	// Problem describes the mistake.
	Problem string
}

// Error implements error.
func (e *PolicyError) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// malformed converts an error of the YAML library to a PolicyError.
func malformed(err error) error {
	line, problem := DescribeYAML(err)
	return &PolicyError{line, problem}
}

// DescribeYAML describes an error of the YAML library in one sentence. It also returns the line of the error in the
// file; 0 if the line is unknown.
func DescribeYAML(err error) (line int, problem string) {
	if wrong, is := errors.AsType[*yaml.TypeError](err); is {
		return wrong.Token.Position.Line, fmt.Sprintf("%s %q is there, where %s is needed",
			kindOf(wrong.SrcType), wrong.Token.Value, kindOf(wrong.DstType))
	}
	if found, is := errors.AsType[yaml.Error](err); is && found.GetToken() != nil {
		return found.GetToken().Position.Line, oneLine(found.GetMessage())
	}
	return 0, oneLine(err.Error())
}

// kindOf returns the YAML name of a Go type.
func kindOf(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	default:
		return "a text"
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// mistake is an error with its path in the policy: keys and list indexes.
type mistake struct {
	path []any
	err  error
}

func (m *mistake) Error() string {
	var names []string
	for _, step := range m.path {
		if name, is := step.(string); is && name != "commands" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return m.err.Error()
	}
	return strings.Join(names, ": ") + ": " + m.err.Error()
}

func (m *mistake) Unwrap() error { return m.err }

// within prefixes the path of an error with steps.
func within(err error, steps ...any) error {
	if inner, is := errors.AsType[*mistake](err); is {
		return &mistake{slices.Concat(steps, inner.path), inner.err}
	}
	return &mistake{steps, err}
}

// located converts an error of Policy.check to a PolicyError. If the error has a path in the policy, the PolicyError
// has the line of that path in the text.
func located(text []byte, err error) error {
	found := &PolicyError{Problem: err.Error()}
	at, is := errors.AsType[*mistake](err)
	if !is {
		return found
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return found
	}
	found.Line = lineOf(file.Docs[0].Body, at.path)
	return found
}

// lineOf follows the path through the document, as far as the nodes exist. It returns the line of the last node that it
// found.
func lineOf(node ast.Node, path []any) int {
	line := 1
	for _, step := range path {
		next, at := below(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// below returns the child of a node under a key or list index, and the line of that child. A policy can give a single
// use without a list. So for a mapping and the index 0 it returns the mapping itself.
func below(node ast.Node, step any) (next ast.Node, line int) {
	switch in := node.(type) {
	case *ast.AnchorNode:
		return below(in.Value, step)
	case *ast.MappingNode:
		if step == 0 {
			return in, in.Start.Position.Line
		}
		for _, value := range in.Values {
			if value.Key.GetToken().Value == fmt.Sprint(step) {
				return value.Value, value.Key.GetToken().Position.Line
			}
		}
	case *ast.SequenceNode:
		if number, is := step.(int); is && number < len(in.Values) {
			return in.Values[number], in.Values[number].GetToken().Position.Line
		}
	}
	return nil, 0
}
