package claudesim

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// permissions decides which tools exist and which of their calls are permitted. It simulates the CLI's dontAsk mode,
// which denies every call that no rule grants. It is not a security boundary, because it serves only scripted models.
type permissions struct {
	tools       []string
	allow, deny []rule
	mode        string
	// dir is the working directory.
	dir string
}

// rule is a permission rule, such as Bash(curl:*) or Read.
type rule struct {
	tool string
	// pattern is the text in the parentheses; an empty pattern covers every call.
	pattern string
}

// defaultTools returns the tools that exist without --tools.
func defaultTools() []string {
	return []string{"Task", "Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "WebSearch", "Write"}
}

func newPermissions(a *arguments) permissions {
	p := permissions{tools: defaultTools(), mode: a.value("--permission-mode")}
	if a.has("--tools") && a.value("--tools") != "default" {
		p.tools = a.list("--tools")
	}
	if p.mode == "" {
		p.mode = "default"
	}
	for _, text := range a.list("--allowedTools") {
		p.allow = append(p.allow, parseRule(text))
	}
	for _, text := range a.list("--disallowedTools") {
		p.deny = append(p.deny, parseRule(text))
	}
	p.tools = slices.DeleteFunc(p.tools, func(tool string) bool { return slices.Contains(p.deny, rule{tool: tool}) })
	return p
}

func parseRule(text string) rule {
	tool, pattern, found := strings.Cut(text, "(")
	if !found {
		return rule{tool: text}
	}
	return rule{tool: tool, pattern: strings.TrimSuffix(pattern, ")")}
}

// splitRules splits text at commas and blanks outside of parentheses.
func splitRules(text string) []string {
	var rules []string
	depth := 0
	for _, field := range strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	}) {
		rules = append(rules, strings.TrimSpace(field))
	}
	return rules
}

// denies reports whether a rule denies the call. Such a rule takes precedence over every grant.
func (p permissions) denies(call Block) bool {
	if call.Name != "Bash" {
		return slices.ContainsFunc(p.deny, p.covers(call))
	}
	line := commandLine(call)
	commands, _ := splitCommands(line)
	return slices.ContainsFunc(append(commands, line), func(command string) bool {
		return slices.ContainsFunc(p.deny, func(r rule) bool { return r.tool == "Bash" && r.coversCommand(command) })
	})
}

// commandLine returns the command of a Bash call, or "".
func commandLine(call Block) string {
	var input bashInput
	_ = json.Unmarshal(call.Input, &input)
	return input.Command
}

// grants reports whether the rules permit the call.
func (p permissions) grants(call Block) bool {
	if p.denies(call) {
		return false
	}
	if call.Name != "Bash" {
		return slices.ContainsFunc(p.allow, p.covers(call)) || p.readsBelow(call)
	}
	line := commandLine(call)
	if line == "" {
		return false
	}
	commands, plain := splitCommands(line)
	if slices.Contains(p.allow, rule{tool: "Bash"}) {
		return true
	}
	return plain && !slices.ContainsFunc(commands, func(command string) bool { return !p.grantsCommand(command) })
}

func (p permissions) grantsCommand(command string) bool {
	command = timeoutPrefix.ReplaceAllString(command, "")
	return readsOnly(command) ||
		slices.ContainsFunc(p.allow, func(r rule) bool { return r.tool == "Bash" && r.coversCommand(command) })
}

var timeoutPrefix = regexp.MustCompile(`^timeout \d+[smh]? `)

// coversCommand reports whether the rule's pattern covers a simple command. The pattern is "words:*", "words *" or
// the whole command.
func (r rule) coversCommand(command string) bool {
	prefix, isPrefix := strings.CutSuffix(r.pattern, ":*")
	if !isPrefix {
		prefix, isPrefix = strings.CutSuffix(r.pattern, " *")
	}
	switch {
	case r.pattern == "" || r.pattern == "*":
		return true
	case isPrefix:
		return command == prefix || strings.HasPrefix(command, prefix+" ")
	default:
		return command == r.pattern
	}
}

// harmless matches redirections that write no file.
var harmless = regexp.MustCompile(`\d?>&\d|&?\d?>{1,2}\s*/dev/null`)

// splitCommands splits a shell command at its operators outside of quotes. Rules cannot check substitutions,
// redirections, assignments and groups. If the command has any of these, plain is false.
func splitCommands(line string) (commands []string, plain bool) {
	line = harmless.ReplaceAllString(line, "")
	plain = true
	var quote rune
	var current strings.Builder
	for _, r := range line {
		switch {
		case (r == '$' || r == '`') && quote != '\'':
			plain = false
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune("<>(){}\\", r):
			plain = false
		case strings.ContainsRune(";|&\n", r):
			commands = append(commands, current.String())
			current.Reset()
			continue
		}
		current.WriteRune(r)
	}
	commands = append(commands, current.String())
	for i := range commands {
		commands[i] = strings.TrimSpace(commands[i])
		plain = plain && !assignment.MatchString(commands[i])
	}
	return slices.DeleteFunc(commands, func(c string) bool { return c == "" }), plain && quote == 0
}

var assignment = regexp.MustCompile(`^\w+=`)

// readsOnly reports whether the CLI runs a command even if no rule covers the command. The CLI needs no rule for a few
// programs that read files of the working directory and write nothing.
func readsOnly(command string) bool {
	words := strings.Fields(command)
	programs := []string{"cat", "head", "tail", "wc", "grep", "ls", "pwd", "ps", "uname", "true", "echo"}
	if len(words) == 0 || !slices.Contains(programs, words[0]) {
		return false
	}
	return !slices.ContainsFunc(words[1:], func(word string) bool {
		return strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.Contains(word, "..")
	})
}

// covers returns a function that reports whether a rule applies to call. The call must not be a call of Bash. Rules for
// Edit apply to all tools that write. A rule for Write with a path applies to no file.
func (p permissions) covers(call Block) func(rule) bool {
	path := filePath(call) // without a path, only rules without a pattern cover the call
	return func(r rule) bool {
		return r == rule{tool: call.Name} || (r.tool == ruledBy(call.Name) && p.matches(r.pattern, path))
	}
}

// filePath returns the path that a call names, or "".
func filePath(call Block) string {
	var input struct {
		Path string `json:"file_path"`
	}
	_ = json.Unmarshal(call.Input, &input)
	return input.Path
}

// readsBelow reports whether the call reads a file below the working directory. Such a call needs no rule.
func (p permissions) readsBelow(call Block) bool {
	path := filePath(call)
	return call.Name == "Read" && path != "" && p.matches("./**", path)
}

// ruledBy returns the name of the tool whose rules apply to the files of the given tool. Write follows the rules for
// Edit.
func ruledBy(tool string) string {
	if tool == "Write" {
		return "Edit"
	}
	return tool
}

// matches reports whether a pattern matches a path. A pattern names a file, or a directory followed by /**. Other forms
// are not supported. A pattern that begins with // is an absolute path. Other patterns are relative to the working
// directory.
func (p permissions) matches(pattern, path string) bool {
	absolute := func(name string) string {
		if filepath.IsAbs(name) {
			return filepath.Clean(name)
		}
		return filepath.Join(p.dir, name)
	}
	if pattern == "" {
		return true
	}
	dir, below := strings.CutSuffix(strings.TrimPrefix(pattern, "/"), "/**")
	if !below {
		return absolute(dir) == absolute(path)
	}
	relative, err := filepath.Rel(absolute(dir), absolute(path))
	return err == nil && filepath.IsLocal(relative)
}
