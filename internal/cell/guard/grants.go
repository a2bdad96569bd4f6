package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Explanation lists what a policy grants to one tier, and what it forbids.
type Explanation struct {
	Tier int `json:"tier"`
	// Anything means that Never, Private, Protected and Keep limit the tier, and no other limits apply.
	Anything bool `json:"anything"`
	// Grants lists the permitted uses of programs, sorted.
	Grants []Grant `json:"grants"`
	// Read and Write list the paths that the tier may read and write. Keep lists exceptions: paths that the tier may
	// not write.
	Read  []string `json:"read"`
	Write []string `json:"write"`
	Keep  []string `json:"keep"`
	// Methods and Hosts limit HTTP requests.
	Methods []string `json:"methods"`
	Hosts   []string `json:"hosts"`
	// Projects lists the directories of Compose projects outside of the working directory.
	Projects []string `json:"projects,omitempty"`
	// MCP lists the permitted tools of MCP servers.
	MCP []string `json:"mcp"`
	// Environment lists the variables that may be set for a command.
	Environment []string `json:"environment"`
	// Secrets and Private list files that may not be read. Protected lists files that may not be changed.
	Secrets   []string `json:"secrets"`
	Private   []string `json:"private"`
	Protected []string `json:"protected"`
	// Branches lists the branches to which nothing may be pushed.
	Branches []string `json:"branches"`
	// Never lists the uses that are forbidden to every tier.
	Never []Never `json:"never"`
	// Own lists what the operator's policy adds to the built-in one and takes away.
	Own []string `json:"own,omitempty"`
}

// Grant is one permitted use of a program.
type Grant struct {
	Program string `json:"program"`
	// Command is the subcommand. It can have several words.
	Command string `json:"command,omitempty"`
	// Options lists the options that may be given. Before lists options that may be given in front of the subcommand,
	// but not after it. Needs lists options that must be given. Arguments lists the types of the arguments. All entries
	// have the policy's syntax.
	Options   []string `json:"options,omitempty"`
	Before    []string `json:"before,omitempty"`
	Needs     []string `json:"needs,omitempty"`
	Arguments []string `json:"arguments,omitempty"`
	// AnyOption permits every option.
	AnyOption bool `json:"any_option,omitempty"`
	// Action is the kind under which the ledger counts the call: restart or redeployment.
	Action string `json:"action,omitempty"`
	// In is the required kind of working directory: work, project or repository.
	In string `json:"in,omitempty"`
	// Tier is the lowest tier that has the grant.
	Tier int `json:"tier"`
}

// Name returns the program with its subcommand.
func (g Grant) Name() string { return strings.TrimSpace(g.Program + " " + g.Command) }

// Explain returns what the policy grants to a tier.
func (p *Policy) Explain(tier int) Explanation {
	limits := p.Tiers[tier]
	explained := Explanation{
		Tier: tier, Anything: limits.Anything, Keep: limits.Keep,
		Private: p.Private, Protected: p.Protected, Branches: p.Branches, Never: p.Never,
		Own: p.Own(),
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
	explained.Projects = p.Projects
	explained.Methods, explained.Hosts = limits.Methods, limits.Hosts
	explained.Secrets, explained.Environment = p.Secrets, p.Environment
	for _, name := range slices.Sorted(maps.Keys(p.Programs)) {
		explained.Grants = p.Programs[name].grants(explained.Grants, tier, Grant{Program: name})
	}
	return explained
}

// grants adds the uses of one tier to the slice listed, and returns the slice. A subcommand can be granted to a lower
// tier than its program.
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
			Arguments: strings.Fields(use.Args), AnyOption: use.AnyOption, Action: use.Action, In: use.In,
			Tier: use.Tier,
		})
	}
	return listed
}

// Merged returns the grants, with programs that have equal grants under one name, such as "docker|podman".
func (e Explanation) Merged() (merged []Grant) {
	byProgram := map[string][]Grant{}
	for _, grant := range e.Grants {
		name := grant.Program
		grant.Program = ""
		byProgram[name] = append(byProgram[name], grant)
	}
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(byProgram)) {
		form := fmt.Sprint(byProgram[name])
		names[form] = append(names[form], name)
	}
	for _, name := range slices.Sorted(maps.Keys(byProgram)) {
		same := names[fmt.Sprint(byProgram[name])]
		if name != same[0] {
			continue
		}
		for _, grant := range byProgram[name] {
			grant.Program = strings.Join(same, "|")
			merged = append(merged, grant)
		}
	}
	return merged
}

// unique returns words without duplicates.
func unique(words []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(words, func(word string) bool {
		before := seen[word]
		seen[word] = true
		return before
	})
}

// Changes reports whether the use changes something. A use changes something if it writes files, or if it is granted
// only to tiers above Tier 1.
func (g Grant) Changes() bool { return g.Tier > 1 || g.Writes() }

// Writes reports whether the use writes files named by its arguments.
func (g Grant) Writes() bool {
	return slices.ContainsFunc(g.Arguments, func(argument string) bool {
		return strings.HasPrefix(argument, "OUT") || strings.HasPrefix(argument, "INTO")
	})
}

// Runs reports whether the use runs another command.
func (g Grant) Runs() bool {
	return slices.ContainsFunc(g.Arguments,
		func(argument string) bool { return wrapping(strings.TrimRight(argument, "?*+")) })
}
