// Command flaky lists the tests that failed and then passed when they were run again. It reads the files that gotestsum
// writes with --jsonfile.
//
//	flaky REPORT FILE...
//
// For each such test it prints one line, `FLAKY package.Test`, and writes the output of the test's first failure to
// REPORT. REPORT is empty if no test is flaky. A test that failed every time is not listed, because gotestsum has
// already failed and reported it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: flaky REPORT FILE...")
	}
	var found []flake
	for _, name := range args[1:] {
		flakes, err := readFile(name)
		if err != nil {
			return err
		}
		found = append(found, flakes...)
	}
	var report strings.Builder
	for _, f := range found {
		fmt.Fprintf(out, "FLAKY %s\n", f.name)
		fmt.Fprintf(&report, "=== %s failed first with\n%s\n", f.name, f.output)
	}
	return os.WriteFile(args[0], []byte(report.String()), 0o600)
}

func readFile(name string) ([]flake, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file)
}

// flake is a test that failed and then passed.
type flake struct {
	name string
	// output is the output of the first failed run, without the output of parent tests and subtests.
	output string
}

// event is a line of `go test -json`: https://pkg.go.dev/cmd/test2json.
type event struct{ Action, Package, Test, Output string }

// history collects the results of all runs of one test.
type history struct {
	output       strings.Builder // of the current run
	firstFailure string
	failed       bool
	passed       bool // after it failed
}

// read returns the flaky tests in the order in which their names first occur. If a flaky test has flaky subtests, read
// lists only the innermost of these subtests.
func read(from io.Reader) ([]flake, error) {
	tests := map[string]*history{}
	var order []string
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil || e.Test == "" {
			continue // output of the compiler, or a line about a package
		}
		name := e.Package + "." + e.Test
		if tests[name] == nil {
			tests[name] = &history{}
			order = append(order, name)
		}
		tests[name].add(e)
	}
	var flakes []flake
	for _, name := range order {
		if h := tests[name]; h.passed && !hasFlakySubtest(name, tests) {
			flakes = append(flakes, flake{name, h.firstFailure})
		}
	}
	return flakes, nil
}

func (h *history) add(e event) {
	switch e.Action {
	case "run":
		h.output.Reset()
	case "output":
		h.output.WriteString(e.Output)
	case "fail":
		if !h.failed {
			h.failed, h.firstFailure = true, h.output.String()
		}
		h.passed = false
	case "pass":
		h.passed = h.failed
	}
}

func hasFlakySubtest(name string, tests map[string]*history) bool {
	for other, h := range tests {
		if h.passed && strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}
