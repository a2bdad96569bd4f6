package contract

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// event is one line of output of `go test -json`.
type event struct {
	Action      string `json:"Action"`
	Package     string `json:"Package"`
	ImportPath  string `json:"ImportPath"`  // the package that is built
	FailedBuild string `json:"FailedBuild"` // the ImportPath of the failed build
	Test        string `json:"Test"`
	Output      string `json:"Output"`
	Key         string `json:"Key"` // Key and Value describe an attribute
	Value       string `json:"Value"`
}

// The actions that end a test or a package.
const (
	actionPass = "pass"
	actionFail = "fail"
	actionSkip = "skip"
)

// backends holds the suffixes in the names of a case's two subtests: one for the stand-in, one for the real CLI.
var backends = []string{"/stand-in", "/real"}

// Read reads the output of `go test -json`, run on contract tests, to the end of the output. It writes the tests' own
// output to log. For each case that ends, it writes one line to progress.
func Read(events io.Reader, progress, log io.Writer) (*Summary, error) {
	s := newSummary()
	lines := bufio.NewReader(events) // a bufio.Scanner would fail on a long line
	for {
		line, err := lines.ReadBytes('\n')
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return nil, fmt.Errorf("read the tests' events: %w", err)
		}
		e := decode(line)
		if _, err := io.WriteString(log, e.Output); err != nil {
			return nil, fmt.Errorf("write the tests' output: %w", err)
		}
		if text := s.add(e); text != "" {
			_, _ = fmt.Fprintln(progress, text) // the list repeats the line, so an error is harmless
		}
		if ended {
			return s, nil
		}
	}
}

// decode returns the event of a line. A line that is not JSON comes from the go command and not from a test. Its event
// has the line as its output.
func decode(line []byte) event {
	var e event
	if json.Unmarshal(line, &e) != nil {
		return event{Output: string(line)}
	}
	return e
}

// add processes an event. If the event ends a case, add returns a line that describes the case's result. For any other
// event it returns "".
func (s *Summary) add(e event) string {
	switch {
	case e.ImportPath != "":
		s.builds[e.ImportPath] += e.Output
	case e.Test != "":
		return s.addToTest(e)
	case e.Package != "":
		s.addToPackage(e)
	}
	return ""
}

func (s *Summary) addToPackage(e event) {
	p := s.packages[e.Package]
	if p == nil {
		p = &testedPackage{}
		s.packages[e.Package] = p
	}
	p.output += e.Output
	switch e.Action {
	case actionPass, actionFail, actionSkip:
		p.ended = e.Action
	}
	if e.FailedBuild != "" {
		p.output = s.builds[e.FailedBuild]
	}
}

func (s *Summary) addToTest(e event) string {
	c, test := s.test(e)
	test.output += e.Output
	switch e.Action {
	case "attr":
		s.addAttribute(test, e)
	case actionPass, actionFail, actionSkip:
		test.ended = e.Action
		if e.Test == c.name && !c.parent {
			return fmt.Sprintf("%-7s %s", c.ended().word(), c.label(true))
		}
	}
	return ""
}

func (s *Summary) addAttribute(test *testRun, e event) {
	switch e.Key {
	case Attribute:
		var d Difference
		if json.Unmarshal([]byte(e.Value), &d) != nil {
			d = Difference{Field: Attribute, Got: e.Value}
		}
		test.differences = append(test.differences, d)
	case SubjectAttribute:
		s.subjects[e.Value] = true
	}
}

// test returns the test of an event, and the test's case.
func (s *Summary) test(e event) (*contractCase, *testRun) {
	name := e.Test
	for _, backend := range backends {
		name = strings.TrimSuffix(name, backend)
	}
	c := s.contractCase(e.Package, name)
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		s.contractCase(e.Package, parent).parent = true
	}
	for _, test := range c.tests {
		if test.name == e.Test {
			return c, test
		}
	}
	test := &testRun{name: e.Test}
	c.tests = append(c.tests, test)
	return c, test
}

func (s *Summary) contractCase(pkg, name string) *contractCase {
	key := pkg + " " + name
	if s.cases[key] == nil {
		s.cases[key] = &contractCase{pkg: pkg, name: name}
	}
	return s.cases[key]
}
