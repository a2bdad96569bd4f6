package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// ToolList is a list of names of tools. In its text form, commas or line breaks separate the names.
type ToolList []string

// String formats l as text from which parseTools returns l.
func (l ToolList) String() string { return strings.Join(l, ",") }

// PassList lists environment variables and programs that get them. In its text form, commas separate the entries: NAME,
// or NAME=PROGRAM. A name with "*" at its end matches every name that begins with the part before "*".
type PassList []guard.Passed

// String formats p as text from which parsePassed returns p.
func (p PassList) String() string {
	entries := make([]string, len(p))
	for i, entry := range p {
		if entries[i] = entry.Variable; entry.Program != "" {
			entries[i] += "=" + entry.Program
		}
	}
	return strings.Join(entries, ",")
}

// PathList is a list of absolute paths. In its text form, commas separate the paths.
type PathList []string

// String formats p as text from which parsePaths returns p.
func (p PathList) String() string { return strings.Join(p, ",") }

// SecretList is a list of URLs that contain credentials. In its text form, blanks separate the URLs. A comma also
// separates two URLs if another URL follows the comma. Any other comma belongs to a URL.
type SecretList []string

// String returns the number of URLs, without any of their text.
func (s SecretList) String() string {
	if len(s) == 0 {
		return ""
	}
	return fmt.Sprintf("(%d, not shown)", len(s))
}

var (
	toolShape    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	nameShape    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
	programShape = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
)

// parseTools parses a ToolList. The text of its error continues the phrase "it must ...".
func parseTools(text string) (ToolList, error) {
	var tools ToolList
	for tool := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if tool = strings.TrimSpace(tool); tool == "" {
			continue
		}
		if !toolShape.MatchString(tool) {
			return nil, fmt.Errorf("be a comma-separated list of names of tools, and %q is none: "+
				"what a tier may do is said by the policy", tool)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// parsePassed parses a PassList. The text of its error continues the phrase "it must ...".
func parsePassed(text string) (PassList, error) {
	var passed PassList
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, program, named := strings.Cut(part, "=")
		if !nameShape.MatchString(name) || named && !programShape.MatchString(program) {
			return nil, fmt.Errorf("be a comma-separated list of variable names, or NAME=PROGRAM, and %q is none", part)
		}
		passed = append(passed, guard.Passed{Variable: name, Program: program})
	}
	return passed, nil
}

// parsePaths parses a PathList. The text of its error continues the phrase "it must ...".
func parsePaths(text string) (PathList, error) {
	var paths PathList
	for part := range strings.SplitSeq(text, ",") {
		path := strings.TrimSpace(part)
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("be a comma-separated list of absolute paths, and %q is none", path)
		}
		paths = append(paths, filepath.Clean(path))
	}
	return paths, nil
}

// nextURL matches a comma that separates two URLs, and the beginning of the second URL.
var nextURL = regexp.MustCompile(`,\s*([A-Za-z][A-Za-z0-9+.-]*://)`)

// parseSecrets parses a SecretList.
func parseSecrets(text string) (SecretList, error) {
	return strings.Fields(nextURL.ReplaceAllString(strings.TrimSuffix(text, ","), " $1")), nil
}
