package guard

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// never refuses what no tier may do. It reads a command line generously, as it is not held against a use: an option
// counts wherever it stands, alone or among others.
func (j *judge) never(name string, command Command) error {
	for _, rule := range j.policy.Never {
		programs := strings.Split(rule.Program, "|")
		if (slices.Contains(programs, name) || rule.Program == "*") && rule.matches(j, command) {
			return &DeniedError{
				Rule: "never: " + strings.TrimSpace(rule.Program+" "+rule.Command), Reason: rule.Why + ", which no agent may do",
			}
		}
	}
	return nil
}

func (n Never) matches(j *judge, command Command) bool {
	words := command.Words[1:]
	if !n.hasCommand(words) {
		return false
	}
	if n.Flags != "" && !slices.ContainsFunc(strings.Fields(n.Flags), func(name string) bool { return hasFlag(words, name) }) {
		return false
	}
	for _, patterns := range [][]string{n.Args, n.With} {
		matches := func(word Word) bool { return hasArgument(j, patterns, word, command.Dir) }
		if len(patterns) > 0 && !slices.ContainsFunc(words, matches) {
			return false
		}
	}
	return true
}

// hasCommand reports whether the words of the subcommand are among the arguments, in this order. Words that nobody
// knows may be those that are missing, unless others stand in front of them.
func (n Never) hasCommand(words []Word) bool {
	wanted := strings.Fields(strings.ToLower(n.Command))
	others := false
	for _, word := range words {
		switch {
		case len(wanted) == 0:
			return true
		case slices.Contains(strings.Split(wanted[0], "|"), strings.ToLower(string(word))):
			wanted = wanted[1:]
		case word == Word(anyWords) && !others:
			return true
		case !word.MayBeOption():
			others = true
		}
	}
	return len(wanted) == 0
}

// hasFlag reports whether an option is among the words: a long one also abbreviated, a short one also among others.
func hasFlag(words []Word, name string) bool {
	for _, word := range words {
		text := word.Start()
		switch {
		case word == "--":
			return false
		case word == Word(anyWords):
			return true
		case strings.HasPrefix(name, "--"):
			given, _, _ := strings.Cut(text, "=")
			if len(given) > 3 && strings.HasPrefix(name, given) {
				return true
			}
		case len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.Contains(text[1:], name[1:]):
			return true
		}
	}
	return false
}

// hasArgument reports whether a word matches one of the patterns, as it is, in small letters or as a path. The pattern
// "?" stands for words of which nothing is known.
func hasArgument(j *judge, patterns []string, word, dir Word) bool {
	start := word.Start()
	if start == "" && word != "" && word[0] != anyNames {
		return slices.Contains(patterns, "?") && (word[0] == anyText || word[0] == anyWords)
	}
	var candidates []string
	if start != "" {
		candidates = append(candidates, string(word), strings.ToLower(string(word)))
	}
	if path, err := j.at(word, dir); err == nil && !strings.HasPrefix(start, "-") {
		candidates = append(candidates, filepath.Clean(path))
		if paths, err := j.resolve(path); err == nil {
			candidates = append(candidates, paths...)
		}
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(candidates, func(text string) bool { return mayBecome(pattern, text) })
	})
}

// mayBecome reports whether a text matches a pattern, or may when its holes are filled.
func mayBecome(pattern, text string) bool {
	known := Word(text).Start()
	if known == text && strings.HasPrefix(pattern, "/") {
		return doublestar.MatchUnvalidated(pattern, text)
	}
	if known == text { // a slash is nothing special in what is no path
		return doublestar.MatchUnvalidated(strings.ReplaceAll(pattern, "/", "\x1f"), strings.ReplaceAll(text, "/", "\x1f"))
	}
	literal, rest, _ := strings.Cut(pattern, "*")
	literal, _, _ = strings.Cut(literal, "{")
	return strings.HasPrefix(literal, known) || strings.HasPrefix(known, literal) && strings.HasPrefix(rest, "*")
}

// anything judges a command of a tier that may do all but what the policy forbids. What Tier 2 may run needs no closer
// look. Everything else must name no protected file and no door of the supervisor, and what it seems to run in turn
// must be nothing that no tier does.
func (j *judge) anything(name string, command Command) error {
	if j.lower(2, name, command) == nil {
		return nil
	}
	for _, word := range command.Words[1:] {
		if reason := j.touches(word, command.Dir); reason != nil && j.lower(1, name, command) != nil {
			return reason
		}
		if err := j.doors(word); err != nil {
			return err
		}
	}
	*j.rules = append(*j.rules, "tier "+strconv.Itoa(j.tier)+": anything")
	if err := j.follow(name, command); err != nil {
		return err
	}
	return j.within(command)
}

// lower judges a command as if a lower tier ran it.
func (j *judge) lower(tier int, name string, command Command) error {
	as := *j
	as.tier = tier
	mark, actions := len(*j.rules), len(*j.actions)
	err := as.uses(name, command)
	if err != nil {
		*j.rules, *j.actions = (*j.rules)[:mark], (*j.actions)[:actions]
	}
	return err
}

// within looks for commands among the words of a program that the policy does not know: a word that is the name of a
// program of the never list with what follows it, a word that is a script, a script on the standard input.
func (j *judge) within(command Command) error {
	for i, word := range command.Words[1:] {
		text, known := word.Known()
		if !known {
			continue
		}
		name := filepath.Base(text)
		if slices.ContainsFunc(j.policy.Never, func(rule Never) bool { return slices.Contains(strings.Split(rule.Program, "|"), name) }) {
			inner := command
			inner.Words = command.Words[i+1:]
			if err := j.never(name, inner); err != nil {
				return err
			}
		}
		if strings.ContainsAny(text, " \t\n") {
			if err := j.seeming(text, command.Dir); err != nil {
				return err
			}
		}
	}
	if text, known := command.Input.Known(); known && text != "" {
		return j.seeming(text, command.Dir)
	}
	return nil
}

// seeming judges a text that may be a script. One that does not parse is none.
func (j *judge) seeming(text string, dir Word) error {
	if j.depth >= maxDepth {
		return nil
	}
	var found *DeniedError
	if err := j.walk(text, dir); errors.As(err, &found) && strings.HasPrefix(found.Rule, "never") {
		return err
	}
	return nil
}

// touches returns why a word must not be changed, if it names such a file.
func (j *judge) touches(word, dir Word) error {
	for text := range strings.FieldsFuncSeq(string(word), func(r rune) bool { return strings.ContainsRune(" \t\n=,;'\"", r) }) {
		path, err := j.at(Word(text), dir)
		if err != nil {
			continue // not known
		}
		paths, err := j.resolve(path)
		if err != nil {
			continue // no path
		}
		for _, one := range paths {
			if err := j.private(one); err != nil {
				return err
			}
			if matchesAny(j.policy.Protected, one) {
				return &DeniedError{Rule: "protected", Reason: Word(one).String() + " is changed by people only"}
			}
		}
	}
	return nil
}

// doors refuses words that name a port of the supervisor.
func (j *judge) doors(word Word) error {
	text := string(word)
	for _, door := range j.place.Doors {
		if door.Port == 80 || door.Port == 443 {
			if strings.Contains(strings.ToLower(text), strings.ToLower(door.Host)) {
				return &DeniedError{Rule: "doors", Reason: door.Host + " is the supervisor's own: agents do not ask it"}
			}
			continue
		}
		if containsNumber(text, door.Port) {
			return &DeniedError{Rule: "doors", Reason: word.String() + " names a port of the supervisor, which agents do not ask"}
		}
	}
	return nil
}

// follow judges the command within a command, where the policy knows the program to have one.
func (j *judge) follow(name string, command Command) error {
	uses := j.policy.Programs[name]
	for i := range uses {
		got, _, err := uses[i].form.read(command.Words[1:], true, func(Word) bool { return false })
		if err != nil {
			continue
		}
		if kind, inner := uses[i].form.wrapped(got.args); inner != nil {
			return lenient(j.inner(kind, inner, got, command))
		}
	}
	return nil
}

// lenient forgives what is unclear.
func lenient(err error) error {
	if _, unclear := errors.AsType[*UnclearError](err); unclear {
		return nil
	}
	return err
}
