package guard

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"
)

// never refuses commands that match a rule of the policy's never list. A rule does not describe the whole command line
// of a program, so it is compared loosely. For example, an option matches in any position, alone or combined with
// others.
func (j judge) never(name string, command Command) error {
	for _, rule := range j.policy.Never {
		programs := strings.Split(rule.Program, "|")
		if (slices.Contains(programs, name) || rule.Program == "*") && rule.matches(j, command) {
			return &DeniedError{
				Rule: "never: " + strings.TrimSpace(rule.Program+" "+rule.Command), Reason: rule.Why +
					", which no agent may do",
			}
		}
	}
	return nil
}

func (n Never) matches(j judge, command Command) bool {
	words := command.Words[1:]
	if !n.hasCommand(words) {
		return false
	}
	if n.Flags != "" && !slices.ContainsFunc(strings.Fields(n.Flags),
		func(name string) bool { return hasFlag(words, name) }) {
		return false
	}
	for _, patterns := range [][]string{n.Args, n.With} {
		matches := func(word string) bool { return hasArgument(j, patterns, word, command.Dir) }
		if len(patterns) > 0 && !slices.ContainsFunc(words, matches) {
			return false
		}
	}
	return true
}

// hasCommand reports whether the words of the rule's subcommand occur in this order among the arguments.
func (n Never) hasCommand(words []string) bool {
	wanted := strings.Fields(strings.ToLower(n.Command))
	for _, word := range words {
		if len(wanted) > 0 && slices.Contains(strings.Split(wanted[0], "|"), strings.ToLower(word)) {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

// hasFlag reports whether an option is among the words in front of "--". A long option can be abbreviated, and a short
// option can be combined with others.
func hasFlag(words []string, name string) bool {
	for _, word := range words {
		switch {
		case word == "--":
			return false
		case strings.HasPrefix(name, "--"):
			given, _, _ := strings.Cut(word, "=")
			if len(given) > 3 && strings.HasPrefix(name, given) {
				return true
			}
		case len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word[1:], name[1:]):
			return true
		}
	}
	return false
}

// hasArgument reports whether a word matches one of the patterns: as written, in lower case, or as a path.
func hasArgument(j judge, patterns []string, word, dir string) bool {
	if word == "" {
		return false
	}
	candidates := []string{word, strings.ToLower(word)}
	if path, err := at(word, dir); err == nil && !strings.HasPrefix(word, "-") {
		candidates = append(candidates, filepath.Clean(path))
		if paths, err := j.resolve(path); err == nil {
			candidates = append(candidates, paths...)
		}
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(candidates, func(text string) bool { return matchesWord(pattern, text) })
	})
}

// matchesWord reports whether a word matches a pattern. In a pattern that is no path, a slash is an ordinary character.
func matchesWord(pattern, word string) bool {
	if !strings.HasPrefix(pattern, "/") {
		pattern, word = strings.ReplaceAll(pattern, "/", "\x1f"), strings.ReplaceAll(word, "/", "\x1f")
	}
	return doublestar.MatchUnvalidated(pattern, word)
}

// anything judges a command of a tier with anything: true. It allows every use that the policy lists. Any other
// command must not do three things: name a port of the supervisor, name a private or protected file, or appear to run a
// command of the never list. A command that Tier 1 may run is permitted to name a private or protected file.
func (j judge) anything(name string, command Command) (found, error) {
	if slices.Contains(shells, name) && !slices.ContainsFunc(command.Words[1:], isScriptOrFile) {
		input := Script{POSIX: name != "bash", Input: true}
		return found{rules: []string{name}, atRun: "the script on the standard input", script: &input}, nil
	}
	result, err := j.uses(name, command)
	if err == nil || isNever(err) || errors.Is(err, errAtRun) {
		return result, err
	}
	_, look := j.asTier(1).uses(name, command)
	for _, word := range command.Words[1:] {
		if reason := j.touches(word, command.Dir); reason != nil && look != nil {
			return found{}, reason
		}
		if err := j.doors(word); err != nil {
			return found{}, err
		}
	}
	return allowedBy("tier " + strconv.Itoa(j.tier) + ": anything"), j.within(command)
}

// shells are the programs whose scripts are interpreted.
var shells = []string{"bash", "sh", "dash"}

// isScriptOrFile reports whether a word of a shell makes it run something else than its standard input.
func isScriptOrFile(word string) bool {
	return word == "-c" || !strings.HasPrefix(word, "-") ||
		!strings.HasPrefix(word, "--") && strings.Contains(word, "c")
}

// asTier returns the judge of another tier.
func (j judge) asTier(tier int) judge {
	j.tier = tier
	return j
}

// within looks for forbidden commands in the arguments of a command. If an argument names a program of the never list,
// within checks this argument and all later arguments as a command. It also checks arguments that could be scripts.
func (j judge) within(command Command) error {
	for i, word := range command.Words[1:] {
		name := filepath.Base(word)
		if slices.ContainsFunc(j.policy.Never,
			func(rule Never) bool { return slices.Contains(strings.Split(rule.Program, "|"), name) }) {
			inner := command
			inner.Words = command.Words[i+1:]
			if err := j.never(name, inner); err != nil {
				return err
			}
		}
		if strings.ContainsAny(word, " \t\n") {
			if err := j.possibleScript(word, command.Dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// possibleScript refuses a text that, run as a script, would run a command of the never list. It accepts all other
// texts, including a text that does not parse.
func (j judge) possibleScript(text, dir string) error {
	if j.depth >= maxDepth {
		return nil
	}
	if _, err := j.deeper().preview(text, dir, syntax.LangBash); isNever(err) {
		return err
	}
	return nil
}

// isNever reports whether an error comes from the never list.
func isNever(err error) bool {
	reason, is := errors.AsType[*DeniedError](err)
	return is && strings.HasPrefix(reason.Rule, "never")
}

// touches returns an error if a part of the word names a private or protected file.
func (j judge) touches(word, dir string) error {
	for text := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune(" \t\n=,;'\"", r) }) {
		path, err := at(text, dir)
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
			if kept(j.policy.Protected, one) {
				return &DeniedError{Rule: "protected", Reason: one + " is changed by people only"}
			}
		}
	}
	return nil
}

// doors refuses words that name a port of the supervisor. For a port 80 or 443 it instead refuses words that name the
// port's host.
func (j judge) doors(word string) error {
	for _, door := range j.place.Doors {
		if door.Port == 80 || door.Port == 443 {
			if strings.Contains(strings.ToLower(word), strings.ToLower(door.Host)) {
				return &DeniedError{Rule: "doors", Reason: door.Host + " is the supervisor's own: agents do not ask it"}
			}
			continue
		}
		if containsNumber(word, door.Port) {
			return &DeniedError{Rule: "doors", Reason: word +
				" names a port of the supervisor, which agents do not ask"}
		}
	}
	return nil
}

// containsNumber reports whether text contains number as a whole number. It ignores parts of longer numbers, and
// fractions of decimal numbers. Zeros in front count for numbers of four digits or more: 001 is a name, and 07233 a
// port.
func containsNumber(text string, number int) bool {
	for _, at := range wholeNumber.FindAllStringSubmatch(text, -1) {
		text := at[2]
		if number >= 1000 {
			text = strings.TrimLeft(text, "0")
		}
		if at[1] == "" && text == strconv.Itoa(number) {
			return true
		}
	}
	return false
}

// wholeNumber matches numbers. The first group is the integer part, if the second is a fraction.
var wholeNumber = regexp.MustCompile(`(\d+\.)?(\d+)`)
