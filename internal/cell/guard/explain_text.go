package guard

import (
	"slices"
	"strings"
)

// List is a list of a tier's rules, with its title.
type List struct {
	Title string
	Items []string
}

// Lists returns the rules of the tier in words, without its grants. It leaves out empty lists.
func (e Explanation) Lists() []List {
	never := make([]string, len(e.Never))
	for i, rule := range e.Never {
		never[i] = rule.String()
	}
	lists := []List{
		{`Files that it reads (. is the working directory, ~ the agent's home)`, e.Read},
		{"Files that it writes", e.Write},
		{"Methods of HTTP", e.Methods},
		{"Hosts that it asks, but for the supervisor's own ports and the metadata services of clouds", e.Hosts},
		{"Directories of Compose projects outside of the working directory", e.Projects},
		{"Tools of MCP servers", e.MCP},
		{"Variables that it sets for a command", e.Environment},
		{"Files that it does not read, as they may hold secrets", e.Secrets},
		{"Files that no tier reads or changes, beside the supervisor's own", e.Private},
		{"Files that no tier changes", e.Protected},
		{"Files that it does not write wherever they are", e.Keep},
		{"Branches that no tier pushes to", e.Branches},
		{"What no tier does", never},
		{"What is yours: CLAUDEOPS_POLICY_FILE", e.Own},
	}
	return slices.DeleteFunc(lists, func(list List) bool { return len(list.Items) == 0 })
}

// Lines describes the permitted use: the arguments, then options and conditions.
func (g Grant) Lines() []string {
	words := append(strings.Fields(g.Command), argumentTexts(g.Arguments)...)
	if len(words) == 0 {
		words = []string{"without arguments"}
	}
	lines := []string{strings.Join(words, " ")}
	if g.AnyOption {
		lines = append(lines, "options: any")
	}
	if len(g.Options) > 0 {
		lines = append(lines, wrapped("options: "+strings.Join(optionTexts(g.Options), " "))...)
	}
	if len(g.Before) > 0 {
		lines = append(lines, wrapped("in front of "+g.Command+": "+strings.Join(optionTexts(g.Before), " "))...)
	}
	for _, needed := range g.Needs {
		lines = append(lines, "only with "+alternatives(strings.Split(needed, "|")))
	}
	switch g.In {
	case "work":
		lines = append(lines, "only in the working directory")
	case "project":
		lines = append(lines, "only in the working directory and in Compose projects")
	case "repository":
		lines = append(lines, "only in the working directory, or in its worktree")
	}
	if g.Action != "" {
		lines = append(lines, "counts as a "+g.Action+" of each service")
	}
	return lines
}

// argumentTexts formats arguments as a usage line does.
func argumentTexts(arguments []string) []string {
	texts := make([]string, len(arguments))
	for i, argument := range arguments {
		name := strings.TrimRight(argument, "?*+")
		texts[i] = map[string]string{"": name, "?": "[" + name + "]", "*": "[" + name + "…]", "+": name + "…"}[argument[len(name):]]
	}
	return texts
}

// optionTexts shortens each option to its names and the type of the option's value.
func optionTexts(options []string) []string {
	texts := make([]string, len(options))
	for i, option := range options {
		names, value, takes := strings.Cut(option, "=")
		texts[i] = strings.TrimSuffix(names, "?")
		if takes && value != "" {
			texts[i] += "=" + valueText(value)
		}
	}
	return texts
}

// valueText returns the type of a value. For a regular expression it returns "…".
func valueText(kind string) string {
	if strings.HasPrefix(kind, "/") {
		return "…"
	}
	return kind
}

const explainWidth = 110

// wrapped breaks text into lines with at most explainWidth columns.
func wrapped(text string) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > explainWidth {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// String describes what the rule forbids, and why.
func (n Never) String() string {
	words := strings.Fields(n.Program + " " + n.Command)
	for _, part := range [][]string{strings.Fields(n.Flags), n.Args, n.With} {
		if len(part) > 0 {
			words = append(words, "with", alternatives(part))
		}
	}
	return strings.Join(words, " ") + ": " + n.Why
}

// alternatives lists words, such as "a, b or c". There must be at least one.
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
