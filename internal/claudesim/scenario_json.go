package claudesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ParseScenario decodes and validates a scenario file. An unknown field, a second document and an invalid value are
// errors. Each error names the place in the file.
func ParseScenario(data []byte) (Scenario, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var s Scenario
	if err := decoder.Decode(&s); err != nil {
		return Scenario{}, fmt.Errorf("decode scenario: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Scenario{}, errors.New("decode scenario: data follows the scenario's closing brace")
	}
	if err := s.Validate(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// encode returns s as a scenario file.
func (s Scenario) encode() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode scenario: %w", err)
	}
	return append(data, '\n'), nil
}

// Validate returns an error that lists all parts of s that cannot be played.
func (s Scenario) Validate() error {
	var problems []error
	if known := []Version{"", VersionOld, VersionNew}; !slices.Contains(known, s.Version) {
		problems = append(problems, fmt.Errorf(
			"scenario: version %q is not %s or %s; to report another one set claimed_version", s.Version, VersionOld,
			VersionNew))
	}
	if len(s.Turns) == 0 {
		problems = append(problems, errors.New("scenario: there are no turns"))
	}
	for i, turn := range s.Turns {
		for _, err := range turn.problems() {
			problems = append(problems, fmt.Errorf("scenario: turn %s: %w", turn.label(i), err))
		}
	}
	return errors.Join(problems...)
}

// label returns the turn's number and name for error messages. The number counts from 1, and index counts from 0.
func (t Turn) label(index int) string {
	if t.Name == "" {
		return fmt.Sprintf("%d", index+1)
	}
	return fmt.Sprintf("%d (%s)", index+1, t.Name)
}

func (t Turn) problems() []error {
	var problems []error
	if len(t.Replies) == 0 {
		problems = append(problems, errors.New("there are no replies"))
	}
	for i, reply := range t.Replies {
		for _, err := range reply.problems() {
			problems = append(problems, fmt.Errorf("reply %d: %w", i+1, err))
		}
	}
	if t.Fault != nil {
		problems = append(problems, t.Fault.problems()...)
	}
	return problems
}

func (r Reply) problems() []error {
	var problems []error
	if r.Text == "" && len(r.Calls) == 0 && r.Structured == nil && (r.Error == nil || r.Error.Times > 0) {
		problems = append(problems, errors.New("it says nothing: give text, calls, structured or an error"))
	}
	for _, call := range r.Calls {
		if call.Name == "" {
			problems = append(problems, errors.New("a call has no tool name"))
		}
		if !encodesToObject(call.Input) {
			problems = append(problems, fmt.Errorf("the input of the %s call is not a JSON object", call.Name))
		}
	}
	if r.Structured != nil && !encodesToObject(r.Structured) {
		problems = append(problems, errors.New("structured is not a JSON object"))
	}
	if r.Error != nil && r.Error.Status != StatusRefused && r.Error.Status != StatusNoLogin &&
		(r.Error.Status < 400 || r.Error.Status > 599) {
		problems = append(problems, fmt.Errorf(
			"error status %d is no HTTP error (400 to 599, or %d for no answer)", r.Error.Status, StatusRefused))
	}
	if r.Delay < 0 {
		problems = append(problems, fmt.Errorf("delay %s is negative", r.Delay.Std()))
	}
	return problems
}

func (f Fault) problems() []error {
	var problems []error
	if points := []HangPoint{"", HangAtStart, HangAfterInit, HangAfterReply, HangAfterResult}; !slices.Contains(points,
		f.Hang) {
		problems = append(problems, fmt.Errorf("fault: hang %q is not one of %q", f.Hang, points[1:]))
	}
	if modes := []CostMode{"", CostCumulative, CostPerProcess}; !slices.Contains(modes, f.Cost) {
		problems = append(problems, fmt.Errorf("fault: cost %q is not one of %q", f.Cost, modes[1:]))
	}
	if f.Times < 0 || f.PadLines < 0 || f.LineDelay < 0 || f.RepeatResult < 0 {
		problems = append(problems, errors.New("fault: a count or delay is negative"))
	}
	return problems
}

func encodesToObject(v any) bool {
	data, err := json.Marshal(v)
	return err == nil && len(data) > 0 && data[0] == '{'
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.Std().String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts the format of time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
