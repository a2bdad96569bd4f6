package guard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// form is the compiled Use of a program. Command lines are checked against the form.
type form struct {
	flags map[string]flag
	// number permits options such as -50.
	number bool
	needs  [][]string
	// without lists options that must not be given.
	without []string
	args    []argument
	style   style
}

// flag is an option that may be given.
type flag struct {
	// value is the type of the option's value; empty if the option takes no value. An option with two values has a
	// second type.
	value, second string
	// optional means that the value can be omitted. A value that is given must be attached to the option: -i.bak,
	// --color=auto.
	optional bool
}

// argument describes consecutive arguments of one type. The number of these arguments is from min to max.
type argument struct {
	kind     string
	min, max int
}

// style is the syntax of a program's command line.
type style string

const (
	styleGNU   style = ""
	stylePOSIX style = "posix"
	styleWords style = "words"
)

// parseForm compiles a use. It reads flags in the form "-a -n,--lines=INT -i?=TEXT -INT", and arguments in the form
// "NAME FILE*".
func parseForm(use *Use) (*form, error) {
	f := &form{flags: map[string]flag{}, style: style(use.Style)}
	if !slices.Contains([]style{styleGNU, "gnu", stylePOSIX, styleWords}, f.style) {
		return nil, fmt.Errorf("style must be gnu, posix or words, and is %q", use.Style)
	}
	for token := range strings.FieldsSeq(use.Flags + " " + use.Before) {
		if err := f.addFlag(token); err != nil {
			return nil, err
		}
	}
	f.without = strings.Fields(use.Without)
	for token := range strings.FieldsSeq(use.Needs) {
		f.needs = append(f.needs, strings.Split(token, "|"))
	}
	for token := range strings.FieldsSeq(use.Args) {
		arg, err := parseArgument(token)
		if err != nil {
			return nil, err
		}
		f.args = append(f.args, arg)
	}
	if !slices.Contains([]string{"", "restart", "redeployment"}, use.Action) {
		return nil, fmt.Errorf("action must be restart or redeployment, and is %q", use.Action)
	}
	if !slices.Contains([]string{"", "work", "project", "repository"}, use.In) {
		return nil, fmt.Errorf("in must be work, project or repository, and is %q", use.In)
	}
	return f, nil
}

func (f *form) addFlag(token string) error {
	if token == "-INT" {
		f.number = true
		return nil
	}
	if f.style == styleWords && !strings.HasPrefix(token, "-") { // find's "(", "!" and ","
		f.flags[token] = flag{}
		return nil
	}
	names, value, _ := strings.Cut(token, "=")
	names, optional := strings.CutSuffix(names, "?")
	second := ""
	if !strings.HasPrefix(value, "/") {
		value, second, _ = strings.Cut(value, ",")
	}
	for _, kind := range []string{value, second} {
		if kind != "" && !known(kind) {
			return fmt.Errorf("flags: %s: there is no type %q", token, kind)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "+") {
			return fmt.Errorf("flags: %s does not begin with a dash", name)
		}
		f.flags[name] = flag{value, second, optional}
	}
	return nil
}

func parseArgument(token string) (argument, error) {
	arg := argument{token, 1, 1}
	switch token[len(token)-1] {
	case '?':
		arg = argument{token[:len(token)-1], 0, 1}
	case '*':
		arg = argument{token[:len(token)-1], 0, math.MaxInt}
	case '+':
		arg = argument{token[:len(token)-1], 1, math.MaxInt}
	}
	if !known(arg.kind) {
		return arg, fmt.Errorf("args: there is no type %q", arg.kind)
	}
	return arg, nil
}

// given is a command line parsed by a form.
type given struct {
	flags  map[string]bool
	values []typed
	args   []string
	// at has the number of words from each argument to the end of the command line, dashes that from "--"; 0 if it is
	// not given.
	at     []int
	dashes int
}

// and returns g with what is given after it.
func (g *given) and(after given) given {
	flags := maps.Clone(after.flags)
	maps.Copy(flags, g.flags)
	after.flags, after.values = flags, slices.Concat(after.values, g.values)
	return after
}

// typed is a word with the type that it must have.
type typed struct {
	kind string
	word string
	// flag is the name of the option, if the word is the value of an option; empty for arguments.
	flag string
	// command is the command of find -exec, without its terminator. The field fromEnd counts the words from its start
	// to the end of the command line.
	command []string
	fromEnd int
}

// read parses the words after a program's name in a style. It stops before the first argument for which the function
// stop returns true. It returns the options and arguments, and the number of words that it has read.
func (f *form) read(words []string, in style, anyOption bool, stop func(string) bool) (given, int, error) {
	g := given{flags: map[string]bool{}}
	ended := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case ended:
			g.args, g.at = append(g.args, word), append(g.at, len(words)-i)
		case word == "--" && f.style != styleWords:
			ended = true
			g.flags["--"], g.dashes = true, len(words)-i
		case f.isOption(word):
			used, err := f.option(&g, words[i:], anyOption)
			if err != nil {
				return g, i, err
			}
			i += used
		case stop(word):
			return g, i, nil
		default:
			g.args, g.at = append(g.args, word), append(g.at, len(words)-i)
			ended = in == stylePOSIX
		}
	}
	return g, len(words), nil
}

func (f *form) isOption(word string) bool {
	if _, is := f.flags[word]; is && f.style == styleWords {
		return true
	}
	return len(word) > 1 && word[0] == '-'
}

// option parses the option at the start of words. It returns the number of further words that belong to the option.
func (f *form) option(g *given, words []string, anyOption bool) (int, error) {
	name, value, hasValue := strings.Cut(words[0], "=")
	if spec, is := f.flags[name]; is && (len(name) != 2 || f.style == styleWords || !hasValue) {
		g.flags[name] = true
		switch {
		case spec.value == "" && hasValue:
			return 0, denied("%s takes no value here", name)
		case spec.value == "" || spec.optional && !hasValue:
			return 0, nil
		case hasValue && spec.second == "":
			g.values = append(g.values, typed{kind: spec.value, word: value, flag: name})
			return 0, nil
		case hasValue:
			return 0, denied("%s has two values: write each as a word", name)
		}
		return g.next(name, spec, words)
	}
	if strings.HasPrefix(name, "--") || f.style == styleWords {
		if anyOption {
			return 0, nil
		}
		return 0, denied("the option %s is not granted", name)
	}
	return f.short(g, words, anyOption)
}

// next uses the following words as the values of an option. For find's -exec it uses the words of the command.
func (g *given) next(name string, spec flag, words []string) (int, error) {
	if spec.value == kindExec {
		return g.exec(name, words)
	}
	kinds := []string{spec.value}
	if spec.second != "" {
		kinds = append(kinds, spec.second)
	}
	if len(words) <= len(kinds) {
		return 0, denied("%s is without its value", name)
	}
	for i, kind := range kinds {
		g.values = append(g.values, typed{kind: kind, word: words[i+1], flag: name})
	}
	return len(kinds), nil
}

// exec parses the command after find's -exec, up to ";" or "+".
func (g *given) exec(name string, words []string) (int, error) {
	end := slices.Index(words, ";")
	if plus := slices.Index(words, "+"); plus >= 0 { // + ends the command only after {}
		if end >= 0 && end < plus || words[plus-1] != "{}" {
			return 0, denied("a + within the command of %s is not granted", name)
		}
		end = plus
	}
	if end < 2 {
		return 0, denied(`%s needs a command, and \; or + after it`, name)
	}
	g.values = append(g.values, typed{kind: kindExec, command: words[1:end], fromEnd: len(words) - 1})
	return end, nil
}

// short parses a word of one or several one-letter options, such as -a or -abc.
func (f *form) short(g *given, words []string, anyOption bool) (int, error) {
	if anyOption {
		return 0, nil
	}
	letters := words[0][1:]
	if f.number && strings.Trim(letters, "0123456789") == "" {
		return 0, nil
	}
	for at, letter := range letters {
		name := "-" + string(letter)
		spec, is := f.flags[name]
		if !is {
			return 0, denied("the option %s is not granted", name)
		}
		g.flags[name] = true
		if spec.value == "" {
			continue
		}
		if rest := letters[at+len(string(letter)):]; rest != "" {
			if rest[0] == '=' && spec.value != "TEXT" && spec.value != "NAME" {
				return 0, denied("the = behind %s is part of the value for some programs: write %s VALUE", name, name)
			}
			g.values = append(g.values, typed{kind: spec.value, word: rest, flag: name})
			return 0, nil
		}
		if spec.optional {
			return 0, nil
		}
		return g.next(name, spec, words)
	}
	return 0, nil
}

// assign returns each argument with the type that the form requires. If the last argument of the form is a command,
// assign leaves that command out.
func (f *form) assign(args []string) ([]typed, error) {
	var all []typed
	rest := args
	for i, place := range f.args {
		later := 0
		for _, after := range f.args[i+1:] {
			later += after.min
		}
		if wrapping(place.kind) { // the rest is a command
			if len(rest) == 0 && place.min > 0 {
				return nil, denied("a command is missing")
			}
			return all, nil
		}
		take := min(max(len(rest)-later, 0), place.max)
		if take < place.min {
			return nil, denied("%s is missing", place.kind)
		}
		for _, word := range rest[:take] {
			all = append(all, typed{kind: place.kind, word: word})
		}
		rest = rest[take:]
	}
	if len(rest) > 0 {
		return nil, denied("the argument %s is not granted", rest[0])
	}
	return all, nil
}

// wrapped returns the command at the end of the arguments, and the type of that command. If there is no such command,
// wrapped returns nil.
func (f *form) wrapped(args []string) (kind string, command []string) {
	before := len(f.args) - 1
	if before < 0 || len(args) <= before || !wrapping(f.args[before].kind) {
		return "", nil
	}
	return f.args[before].kind, args[before:]
}

// checkNeeds returns an error if a required option is missing, or if a forbidden option is given. The project of a use
// that is limited to projects may have its name (see judge.project).
func (f *form) checkNeeds(g *given, ofProject bool) error {
	for _, name := range f.without {
		if g.flags[name] && (!ofProject || !slices.Contains(projectFlags, name)) {
			return denied("it is not granted with %s", name)
		}
	}
	for _, anyOf := range f.needs {
		if !slices.ContainsFunc(anyOf, func(name string) bool { return g.flags[name] }) {
			return denied("it is granted only with %s", strings.Join(anyOf, " or "))
		}
	}
	return nil
}
