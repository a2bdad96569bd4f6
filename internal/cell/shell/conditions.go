package shell

import (
	"slices"
	"strconv"
	"strings"
)

// condition returns the exit code of `[ WORDS ]` for the forms that the interpreter reads differently than bash, and
// what is wrong with it. It takes text that is no number for 0, and a word that begins with - for an operator.
func condition(words []string) (code int, mistake string, known bool) {
	switch {
	case len(words) == 1:
		return exitOf(words[0] != ""), "", true
	case len(words) == 2 && words[0] == "!":
		return exitOf(words[1] == ""), "", true
	case len(words) == 3 && slices.Contains([]string{"=", "=="}, words[1]):
		return exitOf(words[0] == words[2]), "", true
	case len(words) == 3 && words[1] == "!=":
		return exitOf(words[0] != words[2]), "", true
	case len(words) == 4 && words[0] == "!":
		code, mistake, known = condition(words[1:])
		if known && code < 2 {
			code = 1 - code
		}
		return code, mistake, known
	}
	for i, word := range words {
		if i == 0 || i == len(words)-1 || !slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, word) {
			continue
		}
		for _, operand := range []string{words[i-1], words[i+1]} {
			if _, err := strconv.ParseInt(strings.TrimSpace(operand), 10, 64); err != nil {
				return 2, operand + ": integer expression expected", true
			}
		}
	}
	return 0, "", false
}

func exitOf(holds bool) int {
	if holds {
		return 0
	}
	return 1
}

// replacedCondition returns the command in place of `[` or `test`.
func replacedCondition(args []string) []string {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			return args
		}
		words = words[:len(words)-1]
	}
	code, mistake, known := condition(words)
	switch {
	case !known:
		return args
	case mistake != "":
		return []string{setStatus, strconv.Itoa(code), args[0] + ": " + mistake}
	}
	return []string{setStatus, strconv.Itoa(code)}
}
