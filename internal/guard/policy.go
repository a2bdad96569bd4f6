package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml"
)

// Policy says what the agents of each tier may do. Its file is described by deploy/policy.schema.json.
type Policy struct {
	// Version is the version of the file's format: 1.
	Version int `yaml:"version"`
	// Environment are the variables that may be set for a command; a name that ends in "*" is a prefix.
	Environment []string `yaml:"environment"`
	// Directories are where programs may be, absolute.
	Directories []string `yaml:"directories"`
	// Branches are those that no agent pushes to.
	Branches []string `yaml:"branches"`
	// Private are patterns of files that no agent of any tier reads or changes.
	Private []string `yaml:"private"`
	// Secrets are patterns of files that no agent of Tier 1 or 2 reads.
	Secrets []string `yaml:"secrets"`
	// Protected are patterns of files that no agent changes, and data that none deletes.
	Protected []string `yaml:"protected"`
	// Tiers are the limits of each tier, by its number.
	Tiers map[int]Limits `yaml:"tiers"`
	// Programs are what may be run, by name.
	Programs map[string]Uses `yaml:"programs"`
	// Never is what no tier may do.
	Never []Never `yaml:"never"`
	// MCP are the tools of MCP servers: the lowest tier that may use each.
	MCP map[string]int `yaml:"mcp"`
}

// Limits are what one tier may reach.
type Limits struct {
	// Anything lets the tier do all that the rest of the policy does not forbid.
	Anything bool `yaml:"anything"`
	// Read and Write are directories and files. "." is the working directory, "~" the agent's home, "$TMPDIR"
	// its directory for temporary files.
	Read  []string `yaml:"read"`
	Write []string `yaml:"write"`
	// Keep are patterns of files that the tier does not write, wherever they are.
	Keep []string `yaml:"keep"`
	// Methods are those of HTTP requests.
	Methods []string `yaml:"methods"`
	// Hosts are patterns of host names that may be asked, over HTTP or otherwise.
	Hosts []string `yaml:"hosts"`
	// Signals lets the tier's programs send signals to processes of the host. Without it the sandbox keeps them
	// from that.
	Signals bool `yaml:"signals"`
}

// Uses are the ways in which a program may be used. In the file one use needs no list.
type Uses []Use

// Use is one way in which a program, or a subcommand of it, may be used.
type Use struct {
	// Tier is the lowest tier that may.
	Tier int `yaml:"tier"`
	// Before are options that may be given in front of the subcommand only.
	Before string `yaml:"before"`
	// Without are options of which none may have been given in front of the subcommand.
	Without string `yaml:"without"`
	// Stdin is what must be known of the standard input: nothing.
	Stdin string `yaml:"stdin"`
	// Leaves says that afterwards nobody knows what is in the files of the working directory.
	Leaves bool `yaml:"leaves_files_unknown"`
	// Flags are the options that may be given, with the types of their values.
	Flags string `yaml:"flags"`
	// Needs are options of which each must be given. "-a|-b" is one of two.
	Needs string `yaml:"needs"`
	// Args are the types of the arguments, in order.
	Args string `yaml:"args"`
	// Style is how the program reads its command line: gnu (options anywhere), posix (options in front of
	// the arguments), words (long options with one dash).
	Style string `yaml:"style"`
	// Commands are subcommands by name; "a, b" names two alike.
	Commands map[string]Uses `yaml:"commands"`
	// Action is what a call counts as in the ledger: restart or redeployment.
	Action string `yaml:"action"`
	// Services says where the services are named if no argument does: "compose" is the project's file.
	Services string `yaml:"services"`
	// Prints is what is known of what it prints: items, number or lines; see Output.
	Prints string `yaml:"prints"`
	// In is where it must run: "work" is a directory that the agent works in.
	In string `yaml:"in"`
	// AnyOption says that no option of the program does harm, so that words may be options that nobody knows.
	AnyOption bool `yaml:"any_option"`

	form *form
}

// Never is a use of a program that no tier may make.
type Never struct {
	Why     string `yaml:"why" json:"why"`
	Program string `yaml:"program" json:"program"`
	// Command is the subcommand: words that are arguments, in this order. "a|b" is either.
	Command string `yaml:"command" json:"command,omitempty"`
	// Flags are options of which one must be there for the rule to hold.
	Flags string `yaml:"flags" json:"flags,omitempty"`
	// Args are patterns of which one argument must match for the rule to hold.
	Args []string `yaml:"args" json:"args,omitempty"`
	// With are patterns of which one other argument must match, too.
	With []string `yaml:"with" json:"with,omitempty"`
}

// UnmarshalYAML implements yaml.InterfaceUnmarshaler: one use, or a list.
func (u *Uses) UnmarshalYAML(unmarshal func(any) error) error {
	var several []Use
	err := unmarshal(&several)
	if _, single := errors.AsType[*yaml.UnexpectedNodeTypeError](err); !single {
		*u = several
		return err
	}
	var one Use
	if err := unmarshal(&one); err != nil {
		return err
	}
	*u = Uses{one}
	return nil
}

// ParsePolicy reads a policy from YAML. Its error is a *PolicyError.
func ParsePolicy(text []byte) (*Policy, error) {
	policy := &Policy{}
	if err := yaml.UnmarshalWithOptions(text, policy, yaml.DisallowUnknownField()); err != nil {
		return nil, malformed(err)
	}
	if err := policy.check(); err != nil {
		return nil, located(text, err)
	}
	return policy, nil
}

// Runs reports whether the tier may run a program in some way.
func (p *Policy) Runs(tier int, program string) bool {
	return p.Tiers[tier].Anything || slices.ContainsFunc(p.Programs[program], func(use Use) bool { return use.reaches(tier) })
}

// reaches reports whether a tier has the use, or a subcommand of it.
func (u *Use) reaches(tier int) bool {
	if u.Tier != 0 && u.Tier <= tier {
		return true
	}
	for _, commands := range u.Commands {
		if slices.ContainsFunc(commands, func(use Use) bool { return use.reaches(tier) }) {
			return true
		}
	}
	return false
}

// check wants what is needed to be there and right, and compiles the uses.
func (p *Policy) check() error {
	if p.Version != 1 {
		return &mistake{[]any{"version"}, fmt.Errorf("must be 1, and is %d", p.Version)}
	}
	for _, tier := range []int{1, 2, 3} {
		if _, there := p.Tiers[tier]; !there {
			return &mistake{[]any{"tiers"}, fmt.Errorf("must have %d", tier)}
		}
	}
	if err := p.checkPatterns(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Programs)) {
		if err := p.Programs[name].compile(nil); err != nil {
			return within(err, "programs", name)
		}
	}
	if err := nameEach(p.Programs); err != nil {
		return within(err, "programs")
	}
	for i, never := range p.Never {
		if never.Program == "" || never.Why == "" {
			return &mistake{[]any{"never", i}, errors.New("a program and why are needed")}
		}
	}
	return nil
}

// checkPatterns wants patterns that can be matched.
func (p *Policy) checkPatterns() error {
	for key, patterns := range map[string][]string{"secrets": p.Secrets, "protected": p.Protected, "private": p.Private} {
		for i, pattern := range patterns {
			if !doublestar.ValidatePattern(pattern) {
				return &mistake{[]any{key, i}, fmt.Errorf(
					"the pattern %q cannot be read: see https://github.com/bmatcuk/doublestar#patterns", pattern)}
			}
		}
	}
	return nil
}

// compile reads the uses' small languages. What a subcommand does not say, it has from its program.
func (u Uses) compile(above *Use) error {
	for i := range u {
		use := &u[i]
		if above != nil {
			use.inherit(above)
		}
		form, err := parseForm(use)
		if err != nil {
			return &mistake{[]any{i}, err}
		}
		use.form = form
		for _, name := range slices.Sorted(maps.Keys(use.Commands)) {
			if err := use.Commands[name].compile(use); err != nil {
				return within(err, i, "commands", name)
			}
		}
		if err := nameEach(use.Commands); err != nil {
			return within(err, i, "commands")
		}
	}
	return nil
}

// inherit takes over what holds for all subcommands of a program.
func (u *Use) inherit(above *Use) {
	u.Flags = strings.TrimSpace(above.Flags + " " + u.Flags)
	if u.Tier == 0 {
		u.Tier = above.Tier
	}
	if u.Style == "" {
		u.Style = above.Style
	}
	if u.In == "" {
		u.In = above.In
	}
}

// nameEach splits "a, b" in names of programs or subcommands.
func nameEach(all map[string]Uses) error {
	for _, names := range slices.Sorted(maps.Keys(all)) {
		if !strings.Contains(names, ",") {
			continue
		}
		uses := all[names]
		delete(all, names)
		for name := range strings.SplitSeq(names, ",") {
			name = strings.TrimSpace(name)
			if _, twice := all[name]; twice {
				return fmt.Errorf("%s is there twice", name)
			}
			all[name] = uses
		}
	}
	return nil
}
