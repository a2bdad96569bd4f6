package guard

import (
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Action is a restart or redeployment of a service by a call. Cooldowns limit how often a service is restarted or
// redeployed.
type Action struct {
	// Kind is restart or redeployment.
	Kind string `json:"kind"`
	// Service is the service's name as the call writes it.
	Service string `json:"service"`
}

// judge compares the effects of a script with the policy for one tier. It is the script's Visitor.
type judge struct {
	policy *Policy
	tier   int
	place  Place
	files  Files
	// remote is true if the commands run on another host or in a container. The paths in the commands then do not refer
	// to files of this host.
	remote bool
	// depth is the nesting depth of commands.
	depth int
	// rules collects the rules that allowed the call, in order. actions collects the call's actions on services.
	rules   *[]string
	actions *[]Action
	// wrote is set when the script writes files.
	wrote *bool
	// stale is set when files of the working directory have possibly been replaced.
	stale *bool
	// printed describes the output of the command that is being judged.
	printed *Output
}

// Open implements Visitor. It judges a file that the shell opens.
func (j *judge) Open(access Access) error {
	path, err := j.at(access.Path, access.Dir)
	if err != nil {
		return err
	}
	switch {
	case access.Enter:
		return nil // the accesses in the directory are judged separately
	case access.Write:
		return j.write(path)
	default:
		return j.read(path)
	}
}

// Run implements Visitor. It judges a program that the script runs.
func (j *judge) Run(command Command) (Output, error) {
	printed := Anything
	j.printed = &printed
	err := j.run(command)
	return printed, err
}

// run judges a program.
func (j *judge) run(command Command) error {
	j.depth++
	if j.depth > maxDepth {
		return unclear("a command within so many commands", "write it flat")
	}
	defer func() { j.depth-- }()
	if err := j.environment(command.Env); err != nil {
		return err
	}
	name, err := j.program(command)
	if err != nil {
		return err
	}
	if err := j.never(name, command); err != nil {
		return err
	}
	if j.limits().Anything {
		return j.anything(name, command)
	}
	return j.uses(name, command)
}

func (j *judge) limits() Limits { return j.policy.Tiers[j.tier] }

// environment checks the variables that are set for a command. It refuses variables that could change what the program
// does.
func (j *judge) environment(variables []Word) error {
	if j.limits().Anything {
		return nil
	}
	for _, variable := range variables {
		name, value, _ := strings.Cut(string(variable), "=")
		if strings.ContainsAny(value, "/:"+holes) && !timezone.MatchString(string(variable)) {
			return denied("this value of the variable %s may name a file", name)
		}
		if !slices.ContainsFunc(j.policy.Environment, func(pattern string) bool { return matchesName(pattern, name) }) {
			return denied("the variable %s may not be set for a command", name)
		}
	}
	return nil
}

// timezone matches values of TZ that name a zone.
var timezone = regexp.MustCompile(`^TZ=[A-Za-z_]+/[A-Za-z_]+$`)

func matchesName(pattern, name string) bool {
	if prefix, is := strings.CutSuffix(pattern, "*"); is {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// program returns the name under which the policy lists the program of a command.
func (j *judge) program(command Command) (string, error) {
	text, known := command.Words[0].Known()
	if !known {
		return "", unclear("a command whose program is "+command.Words[0].String(), "write the program's name")
	}
	if !strings.Contains(text, "/") {
		return text, j.found(text)
	}
	if !filepath.IsAbs(text) {
		if j.limits().Anything {
			return filepath.Base(text), nil
		}
		return "", denied("%s is a program of the working directory; only those of the system are granted, by their names", text)
	}
	clean := filepath.Clean(text)
	if !slices.Contains(j.policy.Directories, filepath.Dir(clean)) && !j.limits().Anything {
		return "", denied("%s is in no directory of programs; name the program without its path", text)
	}
	return filepath.Base(clean), nil
}

// found checks the program to which a name refers. The program must be in one of the policy's directories, because
// agents cannot write there. If the name refers to no program, found accepts it.
func (j *judge) found(name string) error {
	if j.remote || j.limits().Anything {
		return nil
	}
	path := j.files.LookPath(name, j.place.Path)
	if path == "" || slices.Contains(j.policy.Directories, filepath.Dir(path)) {
		return nil
	}
	return denied("%s stands for %s here, which is in no directory of programs", name, path)
}

// uses checks that a use of the program grants the command.
func (j *judge) uses(name string, command Command) error {
	uses, there := j.policy.Programs[name]
	if !there {
		return &DeniedError{Rule: name, Reason: name + " is not granted at any tier that is held to a list"}
	}
	return j.anyOf(uses, name, command, command.Words[1:], nil)
}

// anyOf returns nil if one of the uses grants the words. If no use grants them, it returns the most helpful error. This
// is the first error that is not weak (see isWeak) or, if all errors are weak, the first error.
func (j *judge) anyOf(uses Uses, name string, command Command, words []Word, before *given) error {
	var reason error
	lowest := 0
	for i := range uses {
		use := &uses[i]
		if use.Tier > j.tier {
			if lowest == 0 || use.Tier < lowest {
				lowest = use.Tier
			}
			if len(use.Commands) == 0 {
				continue
			}
		}
		mark, actions := len(*j.rules), len(*j.actions)
		err := j.use(use, name, command, words, before)
		if err == nil {
			return nil
		}
		*j.rules, *j.actions = (*j.rules)[:mark], (*j.actions)[:actions]
		if reason == nil || isWeak(reason) && !isWeak(err) {
			reason = err
		}
	}
	if reason == nil {
		reason = &tierError{name, lowest}
	}
	return withRule(reason, name)
}

// tierError reports that the judged tier has no grant. The field tier is the lowest tier with a grant; 0 if there is
// none.
type tierError struct {
	what string
	tier int
}

func (e *tierError) Error() string {
	if e.tier == 0 {
		return e.what + " is not granted"
	}
	return e.what + " is granted to Tier " + strconv.Itoa(e.tier) + " only"
}

// needsError reports that a use is granted only with certain options.
type needsError struct{ options []string }

func (e *needsError) Error() string {
	return "it is granted only with " + strings.Join(e.options, " or ")
}

// isWeak reports whether an error says only that a higher tier or another option is needed. If the program has several
// uses, the error of another use can be more helpful.
func isWeak(err error) bool {
	var tier *tierError
	var needs *needsError
	return errors.As(err, &tier) || errors.As(err, &needs)
}

// withRule adds the rule to an error that has none.
func withRule(err error, rule string) error {
	var reason *DeniedError
	var unclear *UnclearError
	switch {
	case errors.As(err, &reason):
		if reason.Rule != "" {
			return err
		}
		return &DeniedError{Rule: rule, Reason: rule + ": " + reason.Reason}
	case errors.As(err, &unclear):
		return err
	default:
		return &DeniedError{Rule: rule, Reason: err.Error()}
	}
}

// use checks the words after a program's name against one use in the policy. It returns nil if this use, or a use of a
// subcommand within it, grants the words.
func (j *judge) use(use *Use, name string, command Command, words []Word, before *given) error {
	got, read, err := use.form.read(words, use.AnyOption, func(word Word) bool {
		if len(use.Commands) == 0 {
			return false
		}
		return use.Commands[string(word)] != nil || use.form.args == nil
	})
	if before != nil {
		maps.Copy(got.flags, before.flags)
		got.values = append(got.values, before.values...)
	}
	if err != nil {
		return err
	}
	if read < len(words) { // at a subcommand
		sub, known := use.Commands[string(words[read])]
		if !known {
			return denied("%s is not granted", words[read])
		}
		if len(got.args) > 0 {
			return denied("the argument %s in front of %s is not granted", got.args[0], words[read])
		}
		return j.anyOf(sub, name+" "+words[read].String(), command, words[read+1:], &got)
	}
	if use.Tier > j.tier {
		return &tierError{name, use.Tier}
	}
	if len(use.Commands) > 0 && use.form.args == nil && len(got.args) == 0 && !use.AnyOption && !use.bare() {
		return denied("a subcommand is missing")
	}
	return j.grants(use, name, command, got)
}

// bare reports whether a program with subcommands may be called without a subcommand.
func (u *Use) bare() bool { return u.form.args != nil }

// grants checks the options and arguments of a command against the use.
func (j *judge) grants(use *Use, name string, command Command, got given) error {
	if err := use.form.checkNeeds(got); err != nil {
		return err
	}
	dir, err := j.changed(got, command.Dir)
	if err != nil {
		return err
	}
	command.Dir = dir
	if err := j.in(use, command.Dir); err != nil {
		return err
	}
	args, err := use.form.assign(got.args)
	if err != nil {
		return err
	}
	words := slices.Concat(got.values, args)
	if err := j.checkAll(words, got, command); err != nil {
		return err
	}
	if use.Stdin != "" && command.Stdin != Output(use.Stdin) {
		return denied("it is granted only where its standard input is empty: put < /dev/null behind it")
	}
	*j.rules = append(*j.rules, name)
	*j.printed = Output(use.Prints)
	*j.stale = *j.stale || use.Leaves
	if use.Action != "" {
		if err := j.recordActions(use, words, command); err != nil {
			return err
		}
	}
	kind, inner := use.form.wrapped(got.args)
	if inner == nil {
		return nil
	}
	return j.inner(kind, inner, got, command)
}

// changed returns the directory in which the program works. This is the working directory dir, unless an option such as
// git -C names another directory.
func (j *judge) changed(got given, dir Word) (Word, error) {
	for _, value := range got.values {
		if value.kind != kindDir {
			continue
		}
		path, err := j.at(value.word, dir)
		if err != nil {
			return "", err
		}
		dir = Word(path)
	}
	return dir, nil
}

// checkAll checks that each word has its type.
func (j *judge) checkAll(words []typed, got given, command Command) error {
	for _, word := range words {
		switch word.kind {
		case "TREE":
			word.leaveOut = got.leavesOut()
		case kindExec:
			if err := j.exec(word.command, got.args, command); err != nil {
				return err
			}
			continue
		}
		if err := j.check(word, command); err != nil {
			return err
		}
	}
	return nil
}

// in checks the working directory of a command. The directory must be of the kind that the use requires (see Use.In).
func (j *judge) in(use *Use, dir Word) error {
	switch use.In {
	case "":
		return nil
	case "work":
		return j.inWorkOf(use, dir)
	case "repository":
		return j.inRepositoryOf(use, dir)
	}
	return denied("the place %q is not known", use.In)
}

// composed returns the names of the services in the compose file of a directory. If the directory has no readable
// compose file, composed returns nil.
func (j *judge) composed(dir Word) []string {
	for _, name := range []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"} {
		content, err := j.files.ReadFile(filepath.Join(string(dir), name))
		if err != nil {
			continue
		}
		var project struct {
			Services map[string]any `yaml:"services"`
		}
		if yaml.Unmarshal(content, &project) != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(project.Services))
	}
	return nil
}

// recordActions records the actions of a command on services.
func (j *judge) recordActions(use *Use, words []typed, command Command) error {
	action := use.Action
	var services []string
	for _, word := range words {
		if service, is := serviceOf(word); is {
			services = append(services, service)
		}
	}
	if use.Services == "compose" && len(services) == 0 {
		if slices.ContainsFunc(words, func(word typed) bool { return word.kind == "COMPOSE" }) {
			return denied("name the services, or leave the file out")
		}
		services = j.composed(command.Dir)
	}
	if command.Repeated {
		return unclear("how often a loop repeats the "+action, "write the services out, as in: for s in a b; do …")
	}
	if len(services) == 0 {
		return denied("name the services: a %s counts for each", action)
	}
	for _, service := range services {
		*j.actions = append(*j.actions, Action{action, service})
	}
	return nil
}
