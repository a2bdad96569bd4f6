package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// extendsDefault is the value of extends in a policy that holds only what differs from the built-in policy.
const extendsDefault = "default"

// Without lists what a policy takes away from the policy that it extends. It cannot take away what forbids: never, private,
// secrets, protected, keep and branches only grow.
type Without struct {
	// Programs lists programs, and subcommands as in "docker exec".
	Programs    []string `yaml:"programs"`
	Environment []string `yaml:"environment"`
	Directories []string `yaml:"directories"`
	MCP         []string `yaml:"mcp"`
	// Tiers maps the number of a tier to what it may not reach any more.
	Tiers map[int]struct {
		Read    []string `yaml:"read"`
		Write   []string `yaml:"write"`
		Methods []string `yaml:"methods"`
		Hosts   []string `yaml:"hosts"`
	} `yaml:"tiers"`
}

// ParsePolicyOver parses a policy in YAML. If it says `extends: default`, the result is base with what the text adds and takes
// away. Its error is a *PolicyError, with the line in text.
func ParsePolicyOver(base, text []byte) (*Policy, error) {
	own, err := parseExtension(text)
	if err != nil {
		return nil, err
	}
	if own.Extends == "" {
		return ParsePolicy(text)
	}
	policy, err := ParsePolicy(base)
	if err != nil {
		return nil, err
	}
	if err := policy.takeAway(own.Without); err != nil {
		return nil, located(text, err)
	}
	policy.add(own)
	return policy, nil
}

// parseExtension parses a policy that extends another one. If it extends none, it is not checked.
func parseExtension(text []byte) (*Policy, error) {
	own := &Policy{}
	if err := yaml.UnmarshalWithOptions(text, own, yaml.DisallowUnknownField()); err != nil {
		return nil, malformed(err)
	}
	if own.Extends == "" {
		return own, nil
	}
	if err := own.checkExtension(); err != nil {
		return nil, located(text, err)
	}
	return own, nil
}

// checkExtension validates a policy that extends another one, and compiles its uses.
func (p *Policy) checkExtension() error {
	if err := p.checkVersion(); err != nil {
		return err
	}
	if p.Extends != extendsDefault {
		return &mistake{[]any{"extends"}, fmt.Errorf("must be %s, and is %q", extendsDefault, p.Extends)}
	}
	for tier := range p.Tiers {
		if tier < 1 || tier > 3 {
			return &mistake{[]any{"tiers", tier}, errors.New("there are the tiers 1, 2 and 3")}
		}
		if p.Tiers[tier].Anything {
			return &mistake{[]any{"tiers", tier, "anything"}, errors.New("cannot be added: copy deploy/policy.yaml, if you are sure")}
		}
	}
	return p.checkRules()
}

// takeAway removes what an extension does without. Something that is not there is a mistake: the operator relies on a rule that
// has no effect.
func (p *Policy) takeAway(without Without) error {
	for i, name := range without.Programs {
		if !removeProgram(p.Programs, strings.Fields(name)) {
			return &mistake{[]any{"without", "programs", i}, fmt.Errorf("%s is not in the built-in policy", name)}
		}
	}
	for i, name := range without.MCP {
		if _, there := p.MCP[name]; !there {
			return &mistake{[]any{"without", "mcp", i}, fmt.Errorf("%s is not in the built-in policy", name)}
		}
		delete(p.MCP, name)
	}
	var err error
	less := func(list, out []string, path ...any) []string {
		for i, item := range out {
			if !slices.Contains(list, item) && err == nil {
				err = &mistake{append(append([]any{"without"}, path...), i), fmt.Errorf("%s is not in the built-in policy", item)}
			}
		}
		return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return slices.Contains(out, item) })
	}
	p.Environment = less(p.Environment, without.Environment, "environment")
	p.Directories = less(p.Directories, without.Directories, "directories")
	for _, tier := range slices.Sorted(maps.Keys(without.Tiers)) {
		limits, out := p.Tiers[tier], without.Tiers[tier]
		limits.Read = less(limits.Read, out.Read, "tiers", tier, "read")
		limits.Write = less(limits.Write, out.Write, "tiers", tier, "write")
		limits.Methods = less(limits.Methods, out.Methods, "tiers", tier, "methods")
		limits.Hosts = less(limits.Hosts, out.Hosts, "tiers", tier, "hosts")
		p.Tiers[tier] = limits
	}
	return err
}

// removeProgram removes a program, or the subcommand that further words name. It reports whether it was there.
func removeProgram(all map[string]Uses, words []string) bool {
	if len(words) == 0 {
		return false
	}
	uses, there := all[words[0]]
	if !there {
		return false
	}
	if len(words) == 1 {
		delete(all, words[0])
		return true
	}
	found := false
	uses = slices.Clone(uses) // docker and podman share theirs
	for i := range uses {
		uses[i].Commands = maps.Clone(uses[i].Commands)
		if removeProgram(uses[i].Commands, words[1:]) {
			found = true
		}
	}
	all[words[0]] = uses
	return found
}

// add adds what an extension holds. A use of a program that is there already is another way to use it.
func (p *Policy) add(own *Policy) {
	p.own = own
	p.Environment = slices.Concat(p.Environment, own.Environment)
	p.Directories = slices.Concat(p.Directories, own.Directories)
	p.Projects = slices.Concat(p.Projects, own.Projects)
	p.Branches = slices.Concat(p.Branches, own.Branches)
	p.Checks.Network = p.Checks.Network || own.Checks.Network
	p.Private = slices.Concat(p.Private, own.Private)
	p.Secrets = slices.Concat(p.Secrets, own.Secrets)
	p.Protected = slices.Concat(p.Protected, own.Protected)
	p.Never = slices.Concat(p.Never, own.Never)
	p.Programs = merged(p.Programs, own.Programs, func(uses, more Uses) Uses { return slices.Concat(uses, more) })
	p.Opens = merged(p.Opens, own.Opens, func(opens, more Opens) Opens {
		return Opens{Read: slices.Concat(opens.Read, more.Read), Write: slices.Concat(opens.Write, more.Write)}
	})
	p.Instead = merged(p.Instead, own.Instead, func(_, text string) string { return text })
	p.MCP = merged(p.MCP, own.MCP, func(_, tier int) int { return tier })
	p.Variables = merged(p.Variables, own.Variables, func(names, more []string) []string { return slices.Concat(names, more) })
	for tier, more := range own.Tiers {
		limits := p.Tiers[tier]
		limits.Read = slices.Concat(limits.Read, more.Read)
		limits.Write = slices.Concat(limits.Write, more.Write)
		limits.Keep = slices.Concat(limits.Keep, more.Keep)
		limits.Review.Paths = slices.Concat(limits.Review.Paths, more.Review.Paths)
		limits.Methods = slices.Concat(limits.Methods, more.Methods)
		limits.Hosts = slices.Concat(limits.Hosts, more.Hosts)
		limits.Signals = limits.Signals || more.Signals
		p.Tiers[tier] = limits
	}
}

// merged returns what both maps hold. A value that is in both is what join returns.
func merged[V any](all, more map[string]V, join func(before, more V) V) map[string]V {
	joined := map[string]V{}
	maps.Copy(joined, all)
	for name, value := range more {
		joined[name] = join(joined[name], value)
	}
	return joined
}

// Own lists what the operator's policy adds to the built-in one and takes away, a line each; nil if it does not extend it.
func (p *Policy) Own() []string {
	if p.own == nil {
		return nil
	}
	own, lines := p.own, ownLines{}
	say := lines.say
	var granted []string
	for _, name := range slices.Sorted(maps.Keys(own.Programs)) {
		for _, grant := range own.Programs[name].grants(nil, 3, Grant{Program: name}) {
			granted = append(granted, fmt.Sprintf("%s (Tier %d)", grant.Name(), grant.Tier))
		}
	}
	say("grants", unique(granted))
	say("uses the Compose projects in", own.Projects)
	say("grants the tools", slices.Sorted(maps.Keys(own.MCP)))
	say("lets scripts set", own.Environment)
	say("takes programs from", own.Directories)
	for _, tier := range slices.Sorted(maps.Keys(own.Tiers)) {
		limits := own.Tiers[tier]
		of := fmt.Sprintf("Tier %d ", tier)
		say(of+"reads", limits.Read)
		say(of+"writes", limits.Write)
		say(of+"does not write", limits.Keep)
		say(of+"changes without a person, if its commits are reviewed,", limits.Review.Paths)
		say(of+"asks with", limits.Methods)
		say(of+"asks", limits.Hosts)
		if limits.Signals {
			lines = append(lines, of+"sends signals")
		}
	}
	if own.Checks.Network {
		lines = append(lines, "checks and previews use the network")
	}
	never := make([]string, len(own.Never))
	for i, rule := range own.Never {
		never[i] = strings.TrimSpace(rule.Program + " " + rule.Command)
	}
	say("denies to all tiers", never)
	say("keeps private", own.Private)
	say("holds for secrets", own.Secrets)
	say("protects", own.Protected)
	say("protects the branches", own.Branches)
	for _, name := range slices.Sorted(maps.Keys(own.Opens)) {
		say("lets "+name+" read", own.Opens[name].Read)
		say("lets "+name+" change", own.Opens[name].Write)
	}
	for _, name := range slices.Sorted(maps.Keys(own.Variables)) {
		say("gives "+name, own.Variables[name])
	}
	lines.sayWithout(own.Without)
	return lines
}

// ownLines are the lines of Own.
type ownLines []string

func (l *ownLines) say(what string, items []string) {
	if len(items) > 0 {
		*l = append(*l, what+": "+strings.Join(items, ", "))
	}
}

// sayWithout lists what a policy takes away.
func (l *ownLines) sayWithout(without Without) {
	say := l.say
	say("does without", slices.Concat(without.Programs, without.MCP))
	say("does not let scripts set", without.Environment)
	say("takes no programs from", without.Directories)
	for _, tier := range slices.Sorted(maps.Keys(without.Tiers)) {
		out := without.Tiers[tier]
		of := fmt.Sprintf("Tier %d does not ", tier)
		say(of+"read", out.Read)
		say(of+"write", out.Write)
		say(of+"ask with", out.Methods)
		say(of+"ask", out.Hosts)
	}
}

// Lacks lists what base forbids and p does not, a line each: a full copy of an older built-in policy lacks later rules.
func (p *Policy) Lacks(base *Policy) []string {
	var lines []string
	for _, list := range []struct {
		name      string
		has, base []string
	}{
		{"private", p.Private, base.Private},
		{"secrets", p.Secrets, base.Secrets},
		{"protected", p.Protected, base.Protected},
		{"branches", p.Branches, base.Branches},
	} {
		for _, item := range list.base {
			if !slices.Contains(list.has, item) {
				lines = append(lines, list.name+": "+item)
			}
		}
	}
	has := func(rule Never) bool {
		return slices.ContainsFunc(p.Never, func(own Never) bool {
			return own.Program == rule.Program && own.Command == rule.Command && own.Flags == rule.Flags &&
				slices.Equal(own.Args, rule.Args) && slices.Equal(own.With, rule.With)
		})
	}
	for _, rule := range base.Never {
		if !has(rule) {
			lines = append(lines, strings.TrimSpace("never: "+rule.Program+" "+rule.Command))
		}
	}
	return lines
}
