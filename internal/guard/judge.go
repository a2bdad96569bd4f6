package guard

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Action is a restart or redeployment of a service by a call. Cooldowns limit how often a service is restarted or
// redeployed.
type Action struct {
	// Kind is restart or redeployment.
	Kind string `json:"kind"`
	// Service is the service's name as the call writes it.
	Service string `json:"service"`
}

// Command is a program with its arguments, as it is about to be started.
type Command struct {
	// Words holds the program and its arguments. There is at least one word.
	Words []string
	// Set lists the variables that are set for the command, as NAME=value, and those that are taken from it, as NAME.
	Set []string
	// Dir is the working directory; empty if it is unknown because the command is in a script that has not run.
	Dir string
}

// judge compares acts with the policy for one tier.
type judge struct {
	policy *Policy
	tier   int
	place  Place
	files  Files
	// remote is true if the commands run on another host or in a container. Their paths then do not refer to files of
	// this host.
	remote bool
	// reading is true while a script is read that has not run: what it makes is not there yet.
	reading bool
	// depth counts scripts within commands.
	depth int
}

// maxDepth limits how deeply scripts are nested within each other.
const maxDepth = 20

func (j judge) limits() Limits { return j.policy.Tiers[j.tier] }

// run judges the start of a program.
func (j judge) run(command Command) (found, error) {
	if err := j.environment(command.Set); err != nil {
		return found{}, err
	}
	name, err := j.program(command.Words[0])
	if err != nil {
		return found{}, err
	}
	if err := j.never(name, command); err != nil {
		return found{}, err
	}
	if j.limits().Anything {
		return j.anything(name, command)
	}
	return j.uses(name, command)
}

// environment checks the variables that are set for a command. It refuses variables that could change what the program
// does.
func (j judge) environment(variables []string) error {
	if j.limits().Anything {
		return nil
	}
	for _, variable := range variables {
		name, value, set := strings.Cut(variable, "=")
		if !MatchesAny(j.policy.Environment, name) {
			if !set {
				return denied("the variable %s may not be taken from a program: leave out its unset", name)
			}
			return denied("the variable %s may not be set for a program", name)
		}
		if isLocale(name) && !plainLocale.MatchString(value) {
			return denied("%s is no locale of UTF-8, in which programs read bytes as the guard does: write %s=C.UTF-8", variable, name)
		}
		if strings.ContainsAny(value, "/:") && !timezone.MatchString(variable) {
			return denied("this value of the variable %s may name a file", name)
		}
	}
	return nil
}

// WithPlainLocales returns an environment in which locales of another character set than UTF-8 and ASCII are C.UTF-8. In GBK, Big5 and
// Shift JIS the second byte of a character can be a quote, a backslash or a letter of ASCII, so a program could read other words than the
// guard.
func WithPlainLocales(environ []string) []string {
	plain := slices.Clone(environ)
	for i, variable := range plain {
		if name, value, _ := strings.Cut(variable, "="); isLocale(name) && !plainLocale.MatchString(value) {
			plain[i] = name + "=C.UTF-8"
		}
	}
	return plain
}

func isLocale(variable string) bool { return variable == "LANG" || strings.HasPrefix(variable, "LC_") }

// plainLocale matches the values of a locale whose character set is ASCII or UTF-8. Without a character set, a name such as zh_TW has
// another one.
var plainLocale = regexp.MustCompile(`^(|C|POSIX|[A-Za-z0-9_]+\.(?i:utf-?8)(@[a-z]+)?)$`)

// timezone matches values of TZ that name a zone.
var timezone = regexp.MustCompile(`^TZ=[A-Za-z_]+/[A-Za-z_]+$`)

func matchesName(pattern, name string) bool {
	if prefix, is := strings.CutSuffix(pattern, "*"); is {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// program returns the name under which the policy lists a program. At tiers that are held to a list, the program must be
// in one of the policy's directories, because agents cannot write there.
func (j judge) program(word string) (string, error) {
	path := word
	switch {
	case !strings.Contains(word, "/"):
		path = j.files.LookPath(word, j.place.Path)
	case !filepath.IsAbs(word) && !j.limits().Anything:
		return "", denied("%s is a program of the working directory; only those of the system are granted, by their names", word)
	}
	name := filepath.Base(filepath.Clean(word))
	if j.remote && path == word && !j.limits().Anything && !slices.Contains(j.policy.Directories, filepath.Dir(path)) {
		return "", denied("%s can be any program of the container or host: name the program without its path", word)
	}
	if j.remote || j.limits().Anything || path == "" || slices.Contains(j.policy.Directories, filepath.Dir(filepath.Clean(path))) {
		return name, nil
	}
	if path == word {
		return "", denied("%s is in no directory of programs; name the program without its path", word)
	}
	return "", denied("%s stands for %s here, which is in no directory of programs", word, path)
}

// uses checks that a use of the program grants the command.
func (j judge) uses(name string, command Command) (found, error) {
	uses, there := j.policy.Programs[name]
	if !there {
		return found{}, &DeniedError{Rule: name, Reason: name + " is not granted at any tier that is held to a list"}
	}
	return j.anyOf(uses, name, command, command.Words[1:], given{})
}

// anyOf returns what the first use that grants the words found. If no use grants them, it returns the most helpful error.
// This is the first error that is not weak (see isWeak) or, if all errors are weak, the first error.
func (j judge) anyOf(uses Uses, name string, command Command, words []string, before given) (found, error) {
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
		result, err := j.use(use, name, command, words, before)
		if err == nil {
			return result, nil
		}
		if reason == nil || isWeak(reason) && !isWeak(err) {
			reason = err
		}
	}
	if reason == nil {
		reason = &tierError{name, lowest}
	}
	return found{}, withRule(reason, name)
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
	switch {
	case err == nil || errors.Is(err, errAtRun):
		return err
	case !errors.As(err, &reason):
		return &DeniedError{Rule: rule, Reason: err.Error()}
	case reason.Rule != "":
		return err
	}
	return &DeniedError{Rule: rule, Reason: rule + ": " + reason.Reason}
}

// use checks the words after a program's name against one use in the policy. It accepts them if this use, or a use of a
// subcommand within it, grants them. The options in before stand in front of the subcommand.
func (j judge) use(use *Use, name string, command Command, words []string, before given) (found, error) {
	got, read, err := use.form.read(words, use.AnyOption, func(word string) bool {
		return len(use.Commands) > 0 && (use.Commands[word] != nil || use.form.args == nil)
	})
	if err != nil {
		return found{}, err
	}
	got = before.and(got)
	if read < len(words) { // at a subcommand
		sub, known := use.Commands[words[read]]
		if !known {
			return found{}, denied("%s is not granted", words[read])
		}
		if len(got.args) > 0 {
			return found{}, denied("the argument %s in front of %s is not granted", got.args[0], words[read])
		}
		return j.anyOf(sub, name+" "+words[read], command, words[read+1:], got)
	}
	if use.Tier > j.tier {
		return found{}, &tierError{name, use.Tier}
	}
	if len(use.Commands) > 0 && use.form.args == nil && !use.AnyOption {
		return found{}, denied("a subcommand is missing")
	}
	return j.grants(use, name, command, got)
}

// bare reports whether a program with subcommands may be called without a subcommand.
func (u *Use) bare() bool { return u.form.args != nil }

// grants checks the options and arguments of a command against the use.
func (j judge) grants(use *Use, name string, command Command, got given) (found, error) {
	if err := use.form.checkNeeds(&got); err != nil {
		return found{}, err
	}
	if err := j.namedThere(name, got); err != nil {
		return found{}, err
	}
	dir, err := j.changed(got, command.Dir)
	if err != nil {
		return found{}, err
	}
	command.Dir = dir
	if err := j.in(use, command.Dir); err != nil {
		return found{}, err
	}
	args, err := use.form.assign(got.args)
	if err != nil {
		return found{}, err
	}
	words := slices.Concat(got.values, args)
	for _, word := range words {
		if err := j.check(word, command); err != nil {
			return found{}, err
		}
	}
	if use.In == "project" && use.Tier > 1 {
		if err := j.unwritten(words, command.Dir); err != nil {
			return found{}, err
		}
	}
	result := allowedBy(name)
	result.emptyInput = use.Stdin != ""
	if result.words, err = j.committed(name, command, got, args); err != nil {
		return found{}, err
	}
	if result.actions, err = j.actionsOf(use, words, command); err != nil {
		return found{}, err
	}
	return j.inner(use, got, command, result)
}

// changed returns the directory in which the program works. This is the working directory dir, unless an option such as
// git -C names another directory.
func (j judge) changed(got given, dir string) (string, error) {
	for _, value := range got.values {
		if value.kind != kindDir {
			continue
		}
		path, err := at(value.word, dir)
		if err != nil {
			return "", err
		}
		if j.reading && !j.files.Exists(path) {
			return "", errAtRun
		}
		dir = path
	}
	return dir, nil
}

// in checks the working directory of a command. The directory must be of the kind that the use requires (see Use.In).
func (j judge) in(use *Use, dir string) error {
	switch use.In {
	case "work":
		return j.inWorkOf(use, dir)
	case "project":
		if dir != "" && j.isProject(dir) {
			return nil
		}
		return j.inWorkOf(use, dir)
	case "repository":
		return j.inRepositoryOf(use, dir)
	}
	return nil
}

// isProject reports whether a directory is the directory of one of the policy's projects. A directory below it is none: another
// project can be there.
func (j judge) isProject(dir string) bool {
	resolved, err := j.files.Resolve(dir)
	return err == nil && !j.remote && slices.Contains(j.roots(j.policy.Projects), resolved)
}

// actionsOf returns the actions of a command on services.
func (j judge) actionsOf(use *Use, words []typed, command Command) ([]Action, error) {
	if use.Action == "" {
		return nil, nil
	}
	var services []string
	for _, word := range words {
		if service, is := serviceOf(word); is {
			if byID(command) {
				service = j.composedName(service, command.Dir)
			}
			services = append(services, service)
		}
	}
	if use.Services == "compose" && len(services) == 0 {
		if slices.ContainsFunc(words, func(word typed) bool { return word.kind == "COMPOSE" }) {
			return nil, denied("name the services, or leave the file out")
		}
		services = j.composed(command.Dir)
	}
	if len(services) == 0 {
		return nil, denied("name the services: a %s counts for each", use.Action)
	}
	actions := make([]Action, len(services))
	for i, service := range services {
		actions[i] = Action{use.Action, service}
	}
	return actions, nil
}
