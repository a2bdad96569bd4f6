package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// RuleList is a list of tool names or permission rules. In its text form, commas or line breaks separate the entries.
// Commas inside parentheses belong to the entry.
type RuleList []string

// String formats r as text from which parseRules returns r.
func (r RuleList) String() string { return strings.Join(r, ",") }

// PassList lists environment variables and programs that get them. In its text form, commas separate the entries: NAME, or
// NAME=PROGRAM. A name with "*" at its end matches every name that begins with the part before "*".
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
	ruleShape    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(\(.+\))?$`)
	nameShape    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
	programShape = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
)

// parseRules parses a RuleList. The text of its error continues the phrase "it must ...".
func parseRules(text string) (RuleList, error) {
	items, err := splitRules(text)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if !ruleShape.MatchString(item) {
			return nil, fmt.Errorf("be a comma-separated list of rules such as Read or Bash(docker ps:*), and %q is none", item)
		}
	}
	return items, nil
}

// splitRules splits text at commas and line breaks outside parentheses.
func splitRules(text string) ([]string, error) {
	var items []string
	start, depth := 0, 0
	cut := func(end int) {
		if item := strings.TrimSpace(text[start:end]); item != "" {
			items = append(items, item)
		}
		start = end + 1
	}
	escaped := false
	for i, char := range text {
		switch {
		case escaped:
			escaped = false
		case char == '\\':
			escaped = true
		case char == '(':
			depth++
		case char == ')':
			depth--
		case depth == 0 && (char == ',' || char == '\n'):
			cut(i)
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return nil, errors.New("close every parenthesis that it opens, and open every one that it closes")
	}
	cut(len(text))
	return items, nil
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

// toolOf returns the tool that a rule names: "Bash" for "Bash(docker ps:*)".
func toolOf(rule string) string {
	tool, _, _ := strings.Cut(rule, "(")
	return tool
}

// fromServer reports whether a tool comes from an MCP server. A rule can name such a tool even if the tool is not in
// the setting TOOLS.
func fromServer(tool string) bool { return strings.HasPrefix(tool, "mcp__") }
