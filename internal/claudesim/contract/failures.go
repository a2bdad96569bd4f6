package contract

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// firstLine matches the first line of a test's message. The line names the file and line of the check.
var firstLine = regexp.MustCompile(`^ {4}([\w.-]+\.go:\d+): (.*)$`)

// report matches a line of a testify report. Such a line begins with a label; a continuation line has none.
var report = regexp.MustCompile(`^ {8}\t([A-Z][A-Za-z ]+:)? *\t(.*)$`)

// failures converts the output of a test to differences. In each difference, Field names the file and line of the
// check. If the output contains messages of testify, failures ignores all other messages, because they can be logs.
func failures(output string) []Difference {
	var asserted, other []Difference
	for _, s := range statements(output) {
		if d, ok := s.asserted(); ok {
			asserted = append(asserted, d)
			continue
		}
		other = append(other, Difference{Field: s.place, Expected: "-", Got: joined(s.lines)})
	}
	if len(asserted) > 0 {
		return asserted
	}
	return other
}

// statement is one message of a test, with the file and line of the check.
type statement struct {
	place string
	lines []string
}

// statements splits the output of a test into messages.
func statements(output string) []statement {
	var all []statement
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if match := firstLine.FindStringSubmatch(line); match != nil {
			all = append(all, statement{match[1], []string{match[2]}})
			continue
		}
		if last := len(all) - 1; last >= 0 && strings.HasPrefix(line, "        ") {
			all[last].lines = append(all[last].lines, line)
		}
	}
	return all
}

// asserted converts a testify report to a Difference. If s is not a testify report, asserted returns false.
func (s statement) asserted() (Difference, bool) {
	sections := s.sections()
	problem := sections["Error"]
	if len(problem) == 0 {
		return Difference{}, false
	}
	d := Difference{Field: s.place, Expected: "-", Got: joined(problem)}
	if trace := sections["Error Trace"]; len(trace) > 0 {
		d.Field = strings.TrimSpace(s.place + " " + check(trace[0]))
	}
	switch problem[0] {
	case "Should be true":
		d.Expected, d.Got = "true", "false"
	case "Should be false":
		d.Expected, d.Got = "false", "true"
	}
	for i, line := range problem {
		expected, isExpected := strings.CutPrefix(line, "expected: ")
		if isExpected && i+1 < len(problem) && strings.HasPrefix(problem[i+1], "actual  : ") {
			d.Expected, d.Got = expected, strings.TrimPrefix(problem[i+1], "actual  : ")
		}
	}
	if message := joined(sections["Messages"]); message != "" {
		d.Got += " (" + message + ")"
	}
	return d, true
}

// sections returns the lines of a testify report by label. If s is not a testify report, the map is empty.
func (s statement) sections() map[string][]string {
	sections, label := map[string][]string{}, ""
	for _, line := range s.lines {
		match := report.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if match[1] != "" {
			label = strings.TrimSuffix(match[1], ":")
		}
		sections[label] = append(sections[label], match[2])
	}
	return sections
}

// assertion matches a testify call in source code. It captures the call without "require." and without the argument t.
var assertion = regexp.MustCompile(`require\.(\w+\()t, (.*)$`)

// check returns the source code of the assertion at place, such as "Positive(result.CostUSD)". place is a file and a
// line. If the source cannot be read, check returns "".
func check(place string) string {
	path, number, _ := strings.Cut(place, ":")
	line, err := strconv.Atoi(number)
	if err != nil {
		return ""
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(string(source), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	if call := assertion.FindStringSubmatch(lines[line-1]); call != nil {
		return call[1] + call[2]
	}
	return strings.TrimSpace(lines[line-1])
}

func joined(lines []string) string {
	var words []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}

// lastLine returns the line with the panic that ended a test or a package. Without a panic it returns the last line of
// the output.
func lastLine(output string) string {
	last := "no output"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") {
			return line
		}
		if line != "" && line != "FAIL" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "FAIL\t") {
			last = line
		}
	}
	return last
}
