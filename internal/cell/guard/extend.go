package guard

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// extendsDefault is the value of extends in a policy that holds only what differs from the built-in policy.
const extendsDefault = "default"

// Without lists what a policy takes away from the policy that it extends. It cannot take away what forbids: never,
// private, secrets, protected, keep and branches only grow.
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

// ParsePolicyOver parses a policy in YAML. If it says `extends: default`, the result is base with what the text adds
// and takes away. Its error is a *PolicyError, with the line in text.
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
	policy.own = string(text)
	return policy, nil
}

// With returns the policy with what the text of an extension adds to it.
func (p *Policy) With(extension string) (*Policy, error) {
	own, err := parseExtension([]byte(extension))
	if err != nil {
		return nil, err
	}
	extended := *p
	extended.add(own)
	return &extended, nil
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
			return &mistake{
				[]any{"tiers", tier, "anything"},
				errors.New("cannot be added: copy deploy/policy.yaml, if you are sure"),
			}
		}
	}
	return p.checkRules()
}

// takeAway removes what an extension does without. Something that is not there is a mistake: the operator relies on a
// rule that has no effect.
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
				err = &mistake{
					append(append([]any{"without"}, path...), i),
					fmt.Errorf("%s is not in the built-in policy", item),
				}
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
	merge(reflect.ValueOf(p).Elem(), reflect.ValueOf(own).Elem())
	p.Extends, p.Without = "", Without{}
}

// merge adds to a value what more holds: lists are joined, also within maps and structs, and other values are replaced
// unless they are zero. What into shares with other values does not change.
func merge(into, more reflect.Value) {
	switch into.Kind() {
	case reflect.Slice:
		into.Set(reflect.AppendSlice(into.Slice3(0, into.Len(), into.Len()), more))
	case reflect.Map:
		joined := reflect.MakeMap(into.Type())
		for _, each := range []reflect.Value{into, more} {
			for name, value := range each.Seq2() {
				entry := reflect.New(value.Type()).Elem()
				if before := joined.MapIndex(name); before.IsValid() {
					entry.Set(before)
				}
				merge(entry, value)
				joined.SetMapIndex(name, entry)
			}
		}
		into.Set(joined)
	case reflect.Struct:
		for i := range into.NumField() {
			if into.Field(i).CanSet() {
				merge(into.Field(i), more.Field(i))
			}
		}
	default:
		if !more.IsZero() {
			into.Set(more)
		}
	}
}

// Own returns what the operator's policy adds to the built-in one and takes away: the lines of its file, without
// comments; nil if it does not extend it.
func (p *Policy) Own() (lines []string) {
	for line := range strings.Lines(p.own) {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// Lacks lists what base forbids and p does not, a line each: a full copy of an older built-in policy lacks later rules.
func (p *Policy) Lacks(base *Policy) (lines []string) {
	forbidden := func(policy *Policy) (all []string) {
		for name, list := range map[string][]string{
			"private": policy.Private, "secrets": policy.Secrets, "protected": policy.Protected,
			"branches": policy.Branches,
		} {
			for _, item := range list {
				all = append(all, name+": "+item)
			}
		}
		for _, rule := range policy.Never {
			rule.Why = ""
			all = append(all, "never: "+strings.TrimSuffix(rule.String(), ": "))
		}
		return all
	}
	has := forbidden(p)
	return slices.Sorted(slices.Values(slices.DeleteFunc(forbidden(base),
		func(rule string) bool { return slices.Contains(has, rule) })))
}
