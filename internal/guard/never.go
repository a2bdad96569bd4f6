package guard

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// never refuses commands that match a rule of the policy's never list. A rule does not describe the whole command line
// of a program, so it is compared loosely. For example, an option matches in any position, alone or combined with
// others.
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

// hasCommand reports whether the words of the rule's subcommand occur in this order among the arguments. The hole
// anyWords stands for all words that are still missing, unless an argument that is not part of the subcommand precedes
// it.
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

// hasFlag reports whether an option is among the words in front of "--". A long option can be abbreviated, and a short
// option can be combined with others. The hole anyWords counts as the option, because it could be any option.
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

// hasArgument reports whether a word matches one of the patterns: as written, in lower case, or as a path. The pattern
// "?" matches words that are completely unknown.
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

// mayBecome reports whether a text matches a pattern. A text with holes matches if some content of the holes could make
// it match.
func mayBecome(pattern, text string) bool {
	known := Word(text).Start()
	if known == text && strings.HasPrefix(pattern, "/") {
		return doublestar.MatchUnvalidated(pattern, text)
	}
	if known == text { // not a path: a slash is an ordinary character
		return doublestar.MatchUnvalidated(strings.ReplaceAll(pattern, "/", "\x1f"), strings.ReplaceAll(text, "/", "\x1f"))
	}
	literal, rest, _ := strings.Cut(pattern, "*")
	literal, _, _ = strings.Cut(literal, "{")
	return strings.HasPrefix(literal, known) || strings.HasPrefix(known, literal) && strings.HasPrefix(rest, "*")
}

// anything judges a command of a tier with anything: true. It allows every command that Tier 2 may run. Any other
// command must not do three things: name a port of the supervisor, name a private or protected file, or appear to run a
// command of the never list. A command that Tier 1 may run is permitted to name a private or protected file.
func (j *judge) anything(name string, command Command) error {
	if j.asTier(2, name, command) == nil {
		return nil
	}
	for _, word := range command.Words[1:] {
		if reason := j.touches(word, command.Dir); reason != nil && j.asTier(1, name, command) != nil {
			return reason
		}
		if err := j.doors(word); err != nil {
			return err
		}
	}
	*j.rules = append(*j.rules, "tier "+strconv.Itoa(j.tier)+": anything")
	if err := j.wrappedCommand(name, command); err != nil {
		return err
	}
	return j.within(command)
}

// asTier judges a command as if a lower tier ran it.
func (j *judge) asTier(tier int, name string, command Command) error {
	as := *j
	as.tier = tier
	mark, actions := len(*j.rules), len(*j.actions)
	err := as.uses(name, command)
	if err != nil {
		*j.rules, *j.actions = (*j.rules)[:mark], (*j.actions)[:actions]
	}
	return err
}

// within looks for forbidden commands in the arguments of a command. If an argument names a program of the never list,
// within checks this argument and all later arguments as a command. It also checks arguments that could be scripts, and
// a script on the standard input.
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
			if err := j.possibleScript(text, command.Dir); err != nil {
				return err
			}
		}
	}
	if text, known := command.Input.Known(); known && text != "" {
		return j.possibleScript(text, command.Dir)
	}
	return nil
}

// possibleScript refuses a text that, run as a script, would run a command of the never list. It accepts all other
// texts, including a text that does not parse.
func (j *judge) possibleScript(text string, dir Word) error {
	if j.depth >= maxDepth {
		return nil
	}
	var found *DeniedError
	if err := j.walk(text, dir); errors.As(err, &found) && strings.HasPrefix(found.Rule, "never") {
		return err
	}
	return nil
}

// touches returns an error if a part of the word names a private or protected file.
func (j *judge) touches(word, dir Word) error {
	for text := range strings.FieldsFuncSeq(string(word), func(r rune) bool { return strings.ContainsRune(" \t\n=,;'\"", r) }) {
		path, err := j.at(Word(text), dir)
		if err != nil {
			continue // an unknown path
		}
		paths, err := j.resolve(path)
		if err != nil {
			continue // not a path
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

// doors refuses words that name a port of the supervisor. For a port 80 or 443 it instead refuses words that name the
// port's host.
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

// wrappedCommand judges the command inside another command, such as COMMAND in "timeout 5 COMMAND". It returns nil if,
// according to the policy, the outer program runs no other command.
func (j *judge) wrappedCommand(name string, command Command) error {
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

// lenient drops an UnclearError.
func lenient(err error) error {
	if _, unclear := errors.AsType[*UnclearError](err); unclear {
		return nil
	}
	return err
}
