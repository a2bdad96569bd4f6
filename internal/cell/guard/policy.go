package guard

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml"
)

// Policy states what the agents of each tier may do. deploy/policy.schema.json describes the policy's file.
type Policy struct {
	// Version is the version of the file's format: 1.
	Version int `yaml:"version"`
	// Extends is "default" in a policy that holds only what differs from the built-in one.
	Extends string `yaml:"extends"`
	// Without lists what a policy that extends the built-in one takes away from it.
	Without Without `yaml:"without"`
	// Environment lists the variables that a script may set for a command. A name that ends in "*" is a prefix.
	Environment []string `yaml:"environment"`
	// Directories lists the directories of permitted programs, as absolute paths.
	Directories []string `yaml:"directories"`
	// Projects lists the directories of Compose projects outside of the working directory, as absolute paths, each with
	// " -p NAME" if docker compose needs the project's name. A tier may use docker compose with them as with a project
	// of its working directory. It may not read other files there.
	Projects []string `yaml:"projects"`
	// Checks says what the checks and previews of a repository may use.
	Checks Checks `yaml:"checks"`
	// Branches lists the branches to which agents may not push.
	Branches []string `yaml:"branches"`
	// Private lists patterns of files that no agent of any tier may read or change.
	Private []string `yaml:"private"`
	// Secrets lists patterns of files that no agent of Tier 1 or 2 may read.
	Secrets []string `yaml:"secrets"`
	// Protected lists patterns of files that agents may not change, and of data that they may not delete.
	Protected []string `yaml:"protected"`
	// Opens maps the names of programs to the files that they need although these are in Secrets or Protected. The
	// sandbox denies these files to every other program.
	Opens map[string]Opens `yaml:"opens"`
	// Variables maps the names of programs to the variables of CLAUDEOPS_PASS_ENV that they get. No other program gets
	// these variables. A name that ends in "*" is a prefix.
	Variables map[string][]string `yaml:"variables"`
	// Tiers maps the number of each tier to its limits.
	Tiers map[int]Limits `yaml:"tiers"`
	// Programs maps the names of permitted programs to their uses.
	Programs map[string]Uses `yaml:"programs"`
	// Never lists the uses that are forbidden to every tier.
	Never []Never `yaml:"never"`
	// Instead maps the names of programs that are not granted to what an agent uses in their place.
	Instead map[string]string `yaml:"instead"`
	// MCP maps each permitted tool of an MCP server to the lowest tier that may use it.
	MCP map[string]int `yaml:"mcp"`

	// own is the text of a policy that extends the built-in one.
	own string
}

// Checks says what the checks and previews of a repository may use, which can run what an author has written.
type Checks struct {
	// Network permits the network of the host, and its sockets.
	Network bool `yaml:"network"`
}

// Limits states what one tier may reach.
type Limits struct {
	// Anything permits everything that the rest of the policy does not forbid.
	Anything bool `yaml:"anything"`
	// Read and Write list directories and files. "." is the working directory, "~" the agent's home and "$TMPDIR" the
	// agent's directory for temporary files.
	Read  []string `yaml:"read"`
	Write []string `yaml:"write"`
	// Keep lists patterns of files that the tier may not write, in any directory.
	Keep []string `yaml:"keep"`
	// Review says what the tier's commits may change without a person, if commits are reviewed before they are pushed.
	Review Review `yaml:"review"`
	// Methods lists the permitted methods of HTTP requests.
	Methods []string `yaml:"methods"`
	// Hosts lists patterns of host names to which the tier may connect, over HTTP or otherwise.
	Hosts []string `yaml:"hosts"`
	// Signals permits the tier's programs to send signals to processes of the host. If Signals is false, the sandbox
	// prevents such signals.
	Signals bool `yaml:"signals"`
}

// Opens lists patterns of files that a program reads or changes for itself.
type Opens struct {
	Read  []string `yaml:"read"`
	Write []string `yaml:"write"`
}

// Review says what commits may change without a person.
type Review struct {
	// Paths lists patterns of files, relative to the top of their repository.
	Paths []string `yaml:"paths"`
}

// Uses lists the permitted uses of a program. In the policy file, a single use can be written without a list.
type Uses []Use

// Use is one permitted use of a program or subcommand.
type Use struct {
	// Tier is the lowest tier that has the use.
	Tier int `yaml:"tier"`
	// Before lists options that may be given in front of the subcommand, but not after it.
	Before string `yaml:"before"`
	// Without lists options that must not be given in front of the subcommand.
	Without string `yaml:"without"`
	// Stdin is "nothing" if the program gets an empty standard input, whatever the script gives it.
	Stdin string `yaml:"stdin"`
	// Flags lists the options that may be given, with the types of their values.
	Flags string `yaml:"flags"`
	// Adds lists options with which the program is always started. They stand in front of those of the call. In a
	// container or on another host nobody adds them: there the program may ask localhost only.
	Adds string `yaml:"adds"`
	// Needs lists options that must be given. "-a|-b" requires one of the two.
	Needs string `yaml:"needs"`
	// Args lists the types of the arguments, in order.
	Args string `yaml:"args"`
	// Style is the syntax of the command line. With "gnu", options can be anywhere. With "posix", options are in front
	// of the arguments. With "words", long options begin with one dash.
	Style string `yaml:"style"`
	// Commands maps names of subcommands to their uses. A key such as "a, b" names two subcommands with the same uses.
	Commands map[string]Uses `yaml:"commands"`
	// Action is the kind under which the ledger counts the call: restart or redeployment.
	Action string `yaml:"action"`
	// Services is the source of the services' names if no argument names a service. The value "compose" means the
	// compose file in the working directory.
	Services string `yaml:"services"`
	// In limits the working directory. "work" requires one of the agent's working directories, "project" one of these
	// or a directory in the policy's Projects. "repository" differs from "work" in a worktree: what changes something
	// runs there.
	In string `yaml:"in"`
	// AnyOption permits every option, and is for programs without harmful options.
	AnyOption bool `yaml:"any_option"`
	// Starts lists the programs that the program starts itself: names, and patterns of absolute paths. In the sandbox
	// the program can execute these, and besides them only its own file.
	Starts []string `yaml:"starts"`

	form *form
}

// Never forbids a use of a program to every tier.
type Never struct {
	Why     string `yaml:"why" json:"why"`
	Program string `yaml:"program" json:"program"`
	// Command is the subcommand: words that occur among the arguments in this order. "a|b" matches either word.
	Command string `yaml:"command" json:"command,omitempty"`
	// Flags lists options. If the list is not empty, the rule applies only to commands with one of these options.
	Flags string `yaml:"flags" json:"flags,omitempty"`
	// Args lists patterns. If the list is not empty, the rule applies only if an argument matches one of the patterns.
	Args []string `yaml:"args" json:"args,omitempty"`
	// With lists further patterns. If the list is not empty, the rule applies only if an argument also matches one of
	// these patterns.
	With []string `yaml:"with" json:"with,omitempty"`
}

// UnmarshalYAML implements yaml.InterfaceUnmarshaler. It accepts one use, or a list.
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

// ParsePolicy parses a policy in YAML that extends no other. Its error is a *PolicyError.
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

// Runs reports whether the policy grants the tier any use of a program.
func (p *Policy) Runs(tier int, program string) bool {
	return p.Tiers[tier].Anything || slices.ContainsFunc(p.Programs[program],
		func(use Use) bool { return use.reaches(tier) })
}

// MayChange reports whether commits of a tier may change a file of a repository without a person. The name is relative
// to the repository's top.
func (p *Policy) MayChange(tier int, name string) bool {
	return matchesAny(p.Tiers[tier].Review.Paths, name)
}

// reaches reports whether a tier is granted the use, or a use of one of its subcommands.
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

// check validates the policy and compiles its uses.
func (p *Policy) check() error {
	if err := p.checkVersion(); err != nil {
		return err
	}
	for _, tier := range []int{1, 2, 3} {
		if _, there := p.Tiers[tier]; !there {
			return &mistake{[]any{"tiers"}, fmt.Errorf("must have %d", tier)}
		}
	}
	if p.Extends != "" || !reflect.ValueOf(p.Without).IsZero() {
		return &mistake{[]any{"without"}, errors.New("goes with extends: default")}
	}
	return p.checkRules()
}

func (p *Policy) checkVersion() error {
	if p.Version != 1 {
		return &mistake{[]any{"version"}, fmt.Errorf("must be 1, and is %d", p.Version)}
	}
	return nil
}

// checkRules validates what a whole policy and one that extends another have in common.
func (p *Policy) checkRules() error {
	if err := p.checkPatterns(); err != nil {
		return err
	}
	for i, entry := range p.Projects {
		dir, _ := projectOf(entry)
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" {
			return &mistake{[]any{"projects", i}, fmt.Errorf("must be the absolute path of a directory, and is %q",
				entry)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Programs)) {
		if err := p.Programs[name].compile(nil); err != nil {
			return within(err, "programs", name)
		}
	}
	if err := nameEach(p.Programs); err != nil {
		return within(err, "programs")
	}
	if err := nameEach(p.Instead); err != nil {
		return within(err, "instead")
	}
	for i, never := range p.Never {
		if never.Program == "" || never.Why == "" {
			return &mistake{[]any{"never", i}, errors.New("a program and why are needed")}
		}
	}
	return nil
}

// checkPatterns checks that the patterns of files are valid.
func (p *Policy) checkPatterns() error {
	lists := map[string][]string{"secrets": p.Secrets, "protected": p.Protected, "private": p.Private}
	for key, patterns := range lists {
		if err := checkPatterns(patterns, key); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Opens)) {
		opens := p.Opens[name]
		err := checkPatterns(opens.Read, "opens", name, "read")
		if err == nil {
			err = checkPatterns(opens.Write, "opens", name, "write")
		}
		if err != nil {
			return err
		}
	}
	for tier, limits := range p.Tiers {
		if err := checkPatterns(limits.Keep, "tiers", tier, "keep"); err != nil {
			return err
		}
		for i, pattern := range limits.Review.Paths {
			if !doublestar.ValidatePattern(pattern) || strings.HasPrefix(pattern, "/") {
				return &mistake{[]any{"tiers", tier, "review", "paths", i}, fmt.Errorf(
					"the pattern %q cannot be read, or is not relative to the top of a repository", pattern)}
			}
		}
	}
	return nil
}

// checkPatterns checks the patterns in a list of the policy.
func checkPatterns(patterns []string, path ...any) error {
	for i, pattern := range patterns {
		if !doublestar.ValidatePattern(pattern) {
			return &mistake{append(path, i), fmt.Errorf(
				"the pattern %q cannot be read: see https://github.com/bmatcuk/doublestar#patterns", pattern)}
		}
	}
	return nil
}

// compile compiles the uses and their subcommands. Each subcommand inherits settings from the use above it.
func (u Uses) compile(above *Use) error {
	if len(u) == 0 {
		return errors.New("is without a use")
	}
	for i := range u {
		use := &u[i]
		if above != nil {
			use.inherit(above)
		}
		form, err := parseForm(use)
		if err = errors.Join(err, use.checkStarts()); err != nil {
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

// inherit copies settings of a program to a subcommand, unless the subcommand overrides them. It adds the program's
// options to those of the subcommand.
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

// nameEach replaces each key that lists several names, such as "a, b", with one key for each name. If a name occurs
// twice, nameEach fails.
func nameEach[V any](all map[string]V) error {
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
