package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/program"
)

func (a *app) explainCommand() *cobra.Command {
	var tier escalation.Tier
	cmd := &cobra.Command{
		Use:     "explain --tier TIER",
		Short:   "List in words what a tier may do",
		Example: "  starter policy explain --tier 1",
		Args:    console.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return a.explain(tier) },
	}
	cmd.Flags().Var(console.TierFlag{Tier: &tier, Allowed: escalation.Tiers()}, "tier", "the tier")
	return cmd
}

func (a *app) explain(tier escalation.Tier) error {
	if tier == 0 {
		return program.Misuse(errNoTier)
	}
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return err
	}
	explained := policy.Explain(int(tier))
	return a.Print(explained, func(w io.Writer) { writeExplanation(w, explained) })
}

func writeExplanation(w io.Writer, e guard.Explanation) {
	origin := "It may do what is listed here, and nothing else."
	if e.Anything {
		origin = "It may do anything but what is listed here."
	}
	_, _ = fmt.Fprintf(w, "Tier %d. %s\n", e.Tier, origin)
	writeGrants(w, e)
	for _, list := range []struct {
		title string
		items []string
	}{
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
	} {
		writeList(w, list.title, list.items)
	}
	never := make([]string, len(e.Never))
	for i, rule := range e.Never {
		never[i] = neverText(rule)
	}
	writeList(w, "What no tier does", never)
	writeList(w, "What is yours: CLAUDEOPS_POLICY_FILE", e.Own)
}

func writeList(w io.Writer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", title)
	for _, item := range items {
		_, _ = fmt.Fprintf(w, "  %s\n", item)
	}
}

// writeGrants lists the programs that agents are permitted to run. Below each program, it lists the permitted uses.
func writeGrants(w io.Writer, e guard.Explanation) {
	if len(e.Grants) == 0 {
		return
	}
	_, _ = fmt.Fprint(w, "\nPrograms, with their arguments, options, and conditions. [X] may be left out, X… is one or several.\n")
	before := ""
	for _, grant := range e.Merged() {
		if grant.Program != before {
			_, _ = fmt.Fprintf(w, "\n  %s\n", strings.ReplaceAll(grant.Program, "|", ", "))
			before = grant.Program
		}
		for i, line := range grantLines(grant) {
			indent := "    "
			if i > 0 {
				indent = "        "
			}
			_, _ = fmt.Fprintf(w, "%s%s\n", indent, line)
		}
	}
}

// grantLines describes one permitted use of a program: the arguments, then options and conditions.
func grantLines(g guard.Grant) []string {
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
		lines = append(lines, "only with "+console.OrList(strings.Split(needed, "|")))
	}
	switch g.In {
	case "work":
		lines = append(lines, "only in the working directory")
	case "project":
		lines = append(lines, "only in the working directory and in Compose projects")
	case "repository":
		lines = append(lines, "only in repositories whose configuration runs nothing")
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

// neverText describes what a rule forbids, and why.
func neverText(rule guard.Never) string {
	words := strings.Fields(rule.Program + " " + rule.Command)
	for _, part := range [][]string{strings.Fields(rule.Flags), rule.Args, rule.With} {
		if len(part) > 0 {
			words = append(words, "with", console.OrList(part))
		}
	}
	return strings.Join(words, " ") + ": " + rule.Why
}
