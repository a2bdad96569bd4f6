package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// RuleList is a list of tool names or permission rules. Its text form is separated by commas or line breaks. Commas
// inside parentheses do not separate. "none" is the empty list.
type RuleList []string

// String formats r as text that parses back into r.
func (r RuleList) String() string { return strings.Join(r, ",") }

// NameList is a list of environment variables. Its text form is separated by commas. A name that ends in "*"
// matches every name with that beginning.
type NameList []string

// String formats n as text.
func (n NameList) String() string { return strings.Join(n, ",") }

// PathList is a list of absolute paths. Its text form is separated by commas.
type PathList []string

// String formats p as text that parses back into p.
func (p PathList) String() string { return strings.Join(p, ",") }

// SecretList is a list of URLs that contain credentials. Its text form is separated by blanks, or by commas that are
// followed by another URL. Any other comma belongs to its URL.
type SecretList []string

// String returns the number of URLs, without any of their text.
func (s SecretList) String() string {
	if len(s) == 0 {
		return ""
	}
	return fmt.Sprintf("(%d, not shown)", len(s))
}

const noItems = "none"

var (
	ruleShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(\(.+\))?$`)
	nameShape = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
)

// parseRules parses a RuleList. Its errors complete the phrase "it must".
func parseRules(text string) (RuleList, error) {
	if strings.TrimSpace(text) == noItems {
		return nil, nil
	}
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

// parseNames parses a NameList. Its errors complete the phrase "it must".
func parseNames(text string) (NameList, error) {
	var names NameList
	for part := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(part)
		if name == "" {
			continue
		}
		if !nameShape.MatchString(name) {
			return nil, fmt.Errorf("be a comma-separated list of variable names, and %q is none", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// parsePaths parses a PathList. Its errors complete the phrase "it must".
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

// nextURL matches the comma between two URLs.
var nextURL = regexp.MustCompile(`,\s*([A-Za-z][A-Za-z0-9+.-]*://)`)

// parseSecrets parses a SecretList.
func parseSecrets(text string) SecretList {
	return strings.Fields(nextURL.ReplaceAllString(strings.TrimSuffix(text, ","), " $1"))
}

// toolOf returns the tool named by a rule: "Bash" for "Bash(docker ps:*)".
func toolOf(rule string) string {
	tool, _, _ := strings.Cut(rule, "(")
	return tool
}

// fromServer reports whether a tool comes from an MCP server. A rule may name such a tool even if TOOLS does not list
// it.
func fromServer(tool string) bool { return strings.HasPrefix(tool, "mcp__") }
