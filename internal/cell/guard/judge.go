package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	// style is the syntax of a command line in place of that in the policy; nil for the policy's.
	style *style
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
			return denied("%s is no locale of UTF-8, in which programs read bytes as the guard does: write %s=C.UTF-8",
				variable, name)
		}
		if strings.ContainsAny(value, "/:") && !timezone.MatchString(variable) {
			return denied("this value of the variable %s may name a file", name)
		}
	}
	return nil
}

// WithPlainLocales returns an environment in which locales of another character set than UTF-8 and ASCII are C.UTF-8.
// In GBK, Big5 and Shift JIS the second byte of a character can be a quote, a backslash or a letter of ASCII, so a
// program could read other words than the guard.
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

// plainLocale matches the values of a locale whose character set is ASCII or UTF-8. Without a character set, a name
// such as zh_TW has another one.
var plainLocale = regexp.MustCompile(`^(|C|POSIX|[A-Za-z0-9_]+\.(?i:utf-?8)(@[a-z]+)?)$`)

// timezone matches values of TZ that name a zone.
var timezone = regexp.MustCompile(`^TZ=[A-Za-z_]+/[A-Za-z_]+$`)

func matchesName(pattern, name string) bool {
	if prefix, is := strings.CutSuffix(pattern, "*"); is {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// program returns the name under which the policy lists a program. At tiers that are held to a list, the program must
// be in one of the policy's directories, because agents cannot write there.
func (j judge) program(word string) (string, error) {
	path := word
	switch {
	case !strings.Contains(word, "/"):
		path = j.files.LookPath(word, j.place.Path)
	case !filepath.IsAbs(word) && !j.limits().Anything:
		return "", denied("%s is a program of the working directory; only those of the system are granted, by their "+
			"names", word)
	}
	name := filepath.Base(word)
	if !j.limits().Anything && word != filepath.Clean(word) { // behind a link, .. leads elsewhere
		return "", denied("%s is not the plain path of a program: name the program without its path", word)
	}
	if j.remote && path == word && !j.limits().Anything && !slices.Contains(j.policy.Directories, filepath.Dir(path)) {
		return "", denied("%s can be any program of the container or host: name the program without its path", word)
	}
	if j.remote || j.limits().Anything || path == "" || j.isSystem(path) {
		return name, nil
	}
	if path == word {
		return "", denied("%s is in no directory of programs; name the program without its path", word)
	}
	return "", denied("%s stands for %s here, which is in no directory of programs", word, path)
}

// isSystem reports whether a file is a program in one of the policy's directories. A path with .. is none: links decide
// where it leads.
func (j judge) isSystem(path string) bool {
	return path == filepath.Clean(path) && slices.Contains(j.policy.Directories, filepath.Dir(path))
}

// uses checks that a use of the program grants the command.
func (j judge) uses(name string, command Command) (found, error) {
	if !j.policy.Runs(j.tier, name) {
		return found{}, j.notGranted(name)
	}
	uses := j.policy.Programs[name]
	result, err := j.anyOf(uses, name, command, command.Words[1:], given{})
	if err != nil || name != "awk" && name != "sed" || j.holds(name) || j.limits().Anything {
		return result, err
	}
	if name == "awk" && slices.ContainsFunc(command.Words[1:], func(word string) bool {
		return len(word) > 2 && strings.HasPrefix(word, "--")
	}) {
		return found{}, denied("some awk take the word behind a long option for the program: write -F and -v")
	}
	if name == "sed" && runtime.GOOS != "linux" && slices.ContainsFunc(command.Words[1:], bareInPlace.MatchString) {
		return found{}, denied("the sed of BSD takes the word behind -i for the ending of a copy: write -i.bak")
	}
	for _, other := range []style{styleGNU, stylePOSIX} { // it depends on the system which one its own awk and sed have
		otherwise := j
		otherwise.style = &other
		if _, err := otherwise.anyOf(uses, name, command, command.Words[1:], given{}); err != nil {
			return found{}, denied("some %s take the options after the first argument for files, and others do not: "+
				"put the options in front", name)
		}
	}
	return result, nil
}

// bareInPlace matches options that end with sed's -i.
var bareInPlace = regexp.MustCompile(`^-[A-Za-z]*i$`)

// anyOf returns what the first use that grants the words found. If no use grants them, it returns the error of the use
// that fits best.
func (j judge) anyOf(uses Uses, name string, command Command, words []string, before given) (found, error) {
	var reason error
	best := fitsNot
	for i := range uses {
		result, fits, err := j.use(&uses[i], name, command, words, before)
		if err == nil {
			return result, nil
		}
		if fits > best {
			reason, best = err, fits
		}
	}
	if reason == nil {
		reason = denied("it is not granted")
	}
	return found{}, withRule(reason, name)
}

// notGranted returns the error for a program or subcommand of which the tier is granted no use, with what to use in its
// place.
func (j judge) notGranted(name string) error {
	reason := name + " is not granted at any tier that is held to a list"
	if _, there := j.policy.Programs[name]; there {
		reason = name + " is granted to a higher tier only"
	}
	if instead := j.policy.Instead[name]; instead != "" {
		reason += ": " + instead
	}
	return &DeniedError{Rule: name, Reason: reason}
}

// fit says how well a use fits to words that it does not grant. Below fitsLess it is the number of words that fit.
type fit int

const (
	fitsNot     fit = -1
	fitsLess    fit = iota + 1<<20 // an option is missing
	fitsOptions                    // an argument is not granted
	fitsHigher                     // a higher tier is granted the words
)

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
func (j judge) use(use *Use, name string, command Command, words []string, before given) (found, fit, error) {
	in := use.form.style
	if j.style != nil {
		in = *j.style
	}
	got, read, err := use.form.read(words, in, use.AnyOption, func(word string) bool {
		return len(use.Commands) > 0 && (use.Commands[word] != nil || use.form.args == nil)
	})
	if err != nil {
		return found{}, fit(read), err
	}
	got = before.and(got)
	if read < len(words) { // at a subcommand
		sub, known := use.Commands[words[read]]
		if !known {
			return found{}, fitsLess, j.notGranted(name + " " + words[read])
		}
		if len(got.args) > 0 {
			return found{}, fit(read), denied("the argument %s in front of %s is not granted", got.args[0], words[read])
		}
		result, err := j.anyOf(sub, name+" "+words[read], command, words[read+1:], got)
		return result, fitsOptions, err
	}
	if len(use.Commands) > 0 && use.form.args == nil && !use.AnyOption {
		return found{}, fitsLess, denied("a subcommand is missing")
	}
	if err := use.form.checkNeeds(&got, use.In == "project"); err != nil {
		return found{}, fitsLess, err
	}
	if use.Tier <= j.tier {
		result, err := j.grants(use, name, command, got)
		return result, fitsOptions, err
	}
	higher := fmt.Errorf("%s is granted to Tier %d only", name, use.Tier)
	if _, err := j.asTier(use.Tier).grants(use, name, command, got); err != nil && !errors.Is(err, errAtRun) {
		return found{}, fit(read), higher
	}
	return found{}, fitsHigher, higher
}

// bare reports whether a program with subcommands may be called without a subcommand.
func (u *Use) bare() bool { return u.form.args != nil }

// grants checks the options and arguments of a command against the use.
func (j judge) grants(use *Use, name string, command Command, got given) (found, error) {
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
	if err := j.project(use, got, command.Dir); err != nil {
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
	result.offline = j.confined() && !j.limits().Anything && slices.ContainsFunc(words, typed.isText)
	if result.words, err = j.committed(name, command, got, args); err != nil {
		return found{}, err
	}
	if adds := strings.Fields(use.Adds); len(adds) > 0 && !j.limits().Anything {
		if !j.remote {
			result.edits = []edit{{added: adds}}
		} else if err := asksItself(name, words); err != nil { // nobody adds them there
			return found{}, err
		}
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

// isProject reports whether a directory is the directory of one of the policy's projects. A directory below it is none:
// another project can be there.
func (j judge) isProject(dir string) bool { return len(j.namesAt(dir)) > 0 }

// namesAt returns the names of the policy's projects whose directory is dir; the name of the one that needs no name is
// empty.
func (j judge) namesAt(dir string) (names []string) {
	resolved, err := j.files.Resolve(dir)
	if err != nil || j.remote {
		return nil
	}
	for _, entry := range j.policy.Projects {
		at, name := projectOf(entry)
		if slices.Contains(j.roots([]string{at}), resolved) {
			names = append(names, name)
		}
	}
	return names
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
	if use.Services == "compose" && !slices.Contains(command.Words, "--no-deps") {
		services = j.withDependents(services, words, command.Dir)
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
