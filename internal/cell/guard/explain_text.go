package guard

import (
	"math"
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

// Lines describes the permitted use in the policy's syntax: the arguments, then options and conditions.
func (g Grant) Lines() []string {
	lines := []string{strings.TrimSpace(g.Command + " " + strings.Join(g.Arguments, " "))}
	if lines[0] == "" {
		lines[0] = "without arguments"
	}
	add := func(what string, words ...string) {
		if len(words) > 0 {
			lines = append(lines, what+strings.Join(words, " "))
		}
	}
	if g.AnyOption {
		add("options: any", "")
	}
	add("options: ", g.Options...)
	add("in front of "+g.Command+": ", g.Before...)
	for _, needed := range g.Needs {
		add("only with ", needed)
	}
	if where := map[string]string{
		"work": "the working directory", "project": "the working directory and in Compose projects",
		"repository": "the working directory, or in its worktree",
	}[g.In]; where != "" {
		add("only in ", where)
	}
	if g.Action != "" {
		add("counts as a ", g.Action, "of each service")
	}
	return lines
}

// String describes what the rule forbids, and why.
func (n Never) String() string { return n.spell(math.MaxInt) + ": " + n.Why }

// spell returns a rule on one line: the program with its subcommand, and the first options and arguments, as many as
// shown.
func (n Never) spell(shown int) string {
	words := []string{n.Program, n.Command}
	for _, list := range [][]string{strings.Fields(n.Flags), n.Args, n.With} {
		words = append(words, abbreviate(list, shown))
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// abbreviate joins alternatives, and leaves out those after the first ones.
func abbreviate(all []string, shown int) string {
	if len(all) > shown {
		all = append(slices.Clone(all[:shown]), "…")
	}
	return strings.Join(all, "|")
}
