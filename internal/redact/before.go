package redact

import (
	"slices"
	"strings"
)

// maxBefore limits the text before a name that counts.
const maxBefore = 100

// nameStart returns the beginning of the name that ends with the word at a position.
func nameStart(text string, at int) int {
	from := at
	for at > 0 && from-at < maxBefore && (isAlphanumeric(text[at-1]) || strings.IndexByte("_.-", text[at-1]) >= 0) {
		at--
	}
	return at
}

// skipBack returns the position before the characters of a set that stand in front of a position.
func skipBack(text string, at int, set string) int {
	from := at
	for at > 0 && from-at < maxBefore && strings.IndexByte(set, text[at-1]) >= 0 {
		at--
	}
	return at
}

// endsWith reports whether a text ends, at a position, with a word in any case.
func endsWith(text string, at int, word string) bool {
	return at >= len(word) && strings.EqualFold(text[at-len(word):at], word)
}

// inElement reports whether the name is that of an element of XML.
func inElement(text string, at int) bool {
	at = nameStart(text, at)
	if at > 0 && text[at-1] == ':' {
		at = nameStart(text, at-1)
	}
	return at > 0 && text[at-1] == '<'
}

// inTag reports whether the name stands within the tag of an element.
func inTag(text string, at int) bool {
	open := strings.LastIndexAny(text[max(0, at-maxBefore):at], "<>")
	return open >= 0 && text[max(0, at-maxBefore)+open] == '<'
}

// inCall reports whether the name is the first argument of a call: define('PASSWORD', ...).
func inCall(text string, at int) bool {
	at = nameStart(text, at)
	quoted := skipBack(text, at, "\"'\\")
	open := skipBack(text, quoted, " \t")
	return quoted < at && open > 0 && text[open-1] == '('
}

// afterNameField reports whether the name is the value of a field that is called name or key.
func afterNameField(text string, at int) bool {
	at = skipBack(text, skipBack(text, nameStart(text, at), "\"'\\"), " \t")
	if at == 0 || text[at-1] != ':' && text[at-1] != '=' {
		return false
	}
	at = skipBack(text, skipBack(text, at-1, " \t"), "\"'\\")
	return endsWith(text, at, "name") || endsWith(text, at, "key")
}

// afterSQL reports whether the name is a word of a statement.
func afterSQL(text string, at int) bool {
	if at == 0 || text[at-1] != ' ' {
		return false
	}
	return slices.ContainsFunc([]string{"with", "encrypted", "set", "role", "user", "alter", "create", "by", "="},
		func(word string) bool {
			return endsWith(text, at-1, word)
		})
}

// afterCommand reports whether the name follows a command that sets a variable or a setting.
func afterCommand(text string, at int) bool {
	at = nameStart(text, at)
	if at == 0 || text[at-1] != ' ' {
		return false
	}
	for _, words := range []string{
		"env", "arg", "setenv", "set", "set -x", "set -gx", "set -Ux", "set -gux",
		"configure set", "export",
	} {
		begin := at - 1 - len(words)
		if endsWith(text, at-1, words) && (begin == 0 || !isAlphanumeric(text[begin-1]) || isEscaped(text, begin-1)) {
			return true
		}
	}
	return false
}

// startsLine reports whether the name is the first word of a line, or follows a login.
func startsLine(text string, at int) bool {
	at = skipBack(text, nameStart(text, at), " \t|")
	return at == 0 || text[at-1] == '\n' || strings.HasSuffix(text[:at], `\n`)
}
