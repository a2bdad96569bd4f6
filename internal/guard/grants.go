package guard

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Explanation is what a policy says of one tier.
type Explanation struct {
	Tier int `json:"tier"`
	// Anything says that the tier may do all that is not in Never, Private, Protected and Keep: nothing else limits it.
	Anything bool `json:"anything"`
	// Grants are the uses of programs, sorted.
	Grants []Grant `json:"grants"`
	// Read, Write and Keep are the paths that the tier reads and writes, and those among them that it does not write.
	Read  []string `json:"read"`
	Write []string `json:"write"`
	Keep  []string `json:"keep"`
	// Methods and Hosts are those of requests.
	Methods []string `json:"methods"`
	Hosts   []string `json:"hosts"`
	// MCP are tools of MCP servers.
	MCP []string `json:"mcp"`
	// Environment are variables that may be set for a command.
	Environment []string `json:"environment"`
	// Secrets and Private are files that are not read, Protected those that are not changed.
	Secrets   []string `json:"secrets"`
	Private   []string `json:"private"`
	Protected []string `json:"protected"`
	// Branches are those that are not pushed to.
	Branches []string `json:"branches"`
	// Never is what no tier does.
	Never []Never `json:"never"`
}

// Grant is one way in which a program may be used.
type Grant struct {
	Program string `json:"program"`
	// Command are the words of the subcommand.
	Command string `json:"command,omitempty"`
	// Options may be given, Before only in front of the subcommand; Needs must be given; Arguments are what follows. All
	// are spelled as the policy has them.
	Options   []string `json:"options,omitempty"`
	Before    []string `json:"before,omitempty"`
	Needs     []string `json:"needs,omitempty"`
	Arguments []string `json:"arguments,omitempty"`
	// AnyOption says that options count for nothing.
	AnyOption bool `json:"any_option,omitempty"`
	// Action is what it counts as: restart or redeployment.
	Action string `json:"action,omitempty"`
	// In is where it must run: work or repository.
	In string `json:"in,omitempty"`
	// Tier is the lowest that has it.
	Tier int `json:"tier"`
}

// Name is the program with its subcommand.
func (g Grant) Name() string { return strings.TrimSpace(g.Program + " " + g.Command) }

// Explain says what a tier may do.
func (p *Policy) Explain(tier int) Explanation {
	limits := p.Tiers[tier]
	explained := Explanation{
		Tier: tier, Anything: limits.Anything, Keep: limits.Keep,
		Private: p.Private, Protected: p.Protected, Branches: p.Branches, Never: p.Never,
	}
	for _, name := range slices.Sorted(maps.Keys(p.MCP)) {
		if p.MCP[name] <= tier {
			explained.MCP = append(explained.MCP, name)
		}
	}
	if limits.Anything {
		return explained
	}
	explained.Read, explained.Write = limits.Read, limits.Write
	explained.Methods, explained.Hosts = limits.Methods, limits.Hosts
	explained.Secrets, explained.Environment = p.Secrets, p.Environment
	for _, name := range slices.Sorted(maps.Keys(p.Programs)) {
		explained.Grants = p.Programs[name].grants(explained.Grants, tier, Grant{Program: name})
	}
	return explained
}

// grants adds the uses that a tier has to those that are listed. Of their subcommands a lower tier may have some that it
// does not have itself.
func (u Uses) grants(listed []Grant, tier int, of Grant) []Grant {
	for i := range u {
		use := &u[i]
		for _, name := range slices.Sorted(maps.Keys(use.Commands)) {
			below := of
			below.Before = slices.Concat(of.Before, strings.Fields(use.Before))
			below.Command = strings.TrimSpace(of.Command + " " + name)
			listed = use.Commands[name].grants(listed, tier, below)
		}
		if use.Tier > tier || len(use.Commands) > 0 && !use.bare() {
			continue
		}
		listed = append(listed, Grant{
			Program: of.Program, Command: of.Command, Before: of.Before,
			Options: unique(strings.Fields(use.Flags)), Needs: strings.Fields(use.Needs),
			Arguments: strings.Fields(use.Args), AnyOption: use.AnyOption, Action: use.Action, In: use.In, Tier: use.Tier,
		})
	}
	return listed
}

// Merged returns the grants with those programs as one, by the name "docker|podman", that have the same.
func (e Explanation) Merged() []Grant {
	byProgram := map[string][]Grant{}
	names := map[string][]string{}
	var forms []string
	for name, grants := range e.eachProgram() {
		var form strings.Builder
		for _, grant := range grants {
			grant.Program = ""
			fmt.Fprintf(&form, "%v\n", grant)
		}
		if names[form.String()] == nil {
			forms = append(forms, form.String())
		}
		names[form.String()] = append(names[form.String()], name)
		byProgram[form.String()] = grants
	}
	var merged []Grant
	for _, form := range forms {
		for _, grant := range byProgram[form] {
			grant.Program = strings.Join(names[form], "|")
			merged = append(merged, grant)
		}
	}
	return merged
}

// eachProgram yields the grants of each program, in order.
func (e Explanation) eachProgram() iter.Seq2[string, []Grant] {
	return func(yield func(string, []Grant) bool) {
		for rest := e.Grants; len(rest) > 0; {
			end := slices.IndexFunc(rest, func(g Grant) bool { return g.Program != rest[0].Program })
			if end < 0 {
				end = len(rest)
			}
			if !yield(rest[0].Program, rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// unique returns words without those that were there before.
func unique(words []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(words, func(word string) bool {
		before := seen[word]
		seen[word] = true
		return before
	})
}

// Changes reports whether the use changes something: what a higher tier has because of that, and what writes files.
func (g Grant) Changes() bool { return g.Tier > 1 || g.Writes() }

// Writes reports whether the use writes files that its arguments name.
func (g Grant) Writes() bool {
	return slices.ContainsFunc(g.Arguments, func(argument string) bool {
		return strings.HasPrefix(argument, "OUT") || strings.HasPrefix(argument, "INTO")
	})
}

// Runs reports whether the use runs another command.
func (g Grant) Runs() bool {
	return slices.ContainsFunc(g.Arguments, func(argument string) bool { return wrapping(strings.TrimRight(argument, "?*+")) })
}
