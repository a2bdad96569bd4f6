package treeinit

import "unicode/utf8"

// matches reports whether a pattern matches a path, as doublestar.Match does for patterns without alternatives in
// braces: ** stands for any directories, * and ? for characters of a name, and [...] for one of these characters. The
// package doublestar is initialized too late.
func matches(pattern, path string) bool {
	for {
		part, rest, more := cutPath(pattern)
		if part == "**" {
			return !more || matchesAnywhere(rest, path)
		}
		name, below, deeper := cutPath(path)
		switch {
		case !matchesName(part, name):
			return false
		case !more:
			return !deeper
		case !deeper:
			return rest == "**" // the directory itself
		}
		pattern, path = rest, below
	}
}

// matchesAnywhere reports whether a pattern matches the path, or the rest of the path below one of its directories.
func matchesAnywhere(pattern, path string) bool {
	for deeper := true; deeper; {
		if matches(pattern, path) {
			return true
		}
		_, path, deeper = cutPath(path)
	}
	return false
}

// matchesName is matches for a single name.
func matchesName(pattern, name string) bool {
	rest, again := "", "" // after the last *: the pattern, and the name without what * stands for
	starred := false
	for {
		if pattern != "" && pattern[0] == '*' {
			pattern = pattern[1:]
			rest, again, starred = pattern, name, true
			continue
		}
		if name == "" && pattern == "" {
			return true
		}
		used, taken := matchesOne(pattern, name)
		if used > 0 {
			pattern, name = pattern[used:], name[taken:]
			continue
		}
		if !starred || again == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(again)
		again = again[size:]
		pattern, name = rest, again
	}
}

// matchesOne matches the first character of a name. It returns the lengths of the part of the pattern and of the
// character; 0 if they do not match.
func matchesOne(pattern, name string) (used, taken int) {
	if pattern == "" || name == "" {
		return 0, 0
	}
	character, size := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return 1, size
	case '[':
		if length, in := matchesClass(pattern, character); in {
			return length, size
		}
		return 0, 0
	}
	wanted, length := patternRune(pattern)
	if wanted != character {
		return 0, 0
	}
	return length, size
}

// patternRune returns the first character of a pattern, which may be escaped, and the length of its text.
func patternRune(pattern string) (character rune, length int) {
	escape := 0
	if pattern[0] == '\\' && len(pattern) > 1 {
		escape = 1
	}
	character, length = utf8.DecodeRuneInString(pattern[escape:])
	return character, length + escape
}

// matchesClass reports whether the class at the start of a pattern, such as [a-z] or [!.], contains the character. It
// also returns the length of the class.
func matchesClass(pattern string, character rune) (length int, in bool) {
	at := 1
	negated := at < len(pattern) && (pattern[at] == '!' || pattern[at] == '^')
	if negated {
		at++
	}
	for first := at; at < len(pattern) && (pattern[at] != ']' || at == first); {
		low, size := patternRune(pattern[at:])
		at += size
		high := low
		if at+1 < len(pattern) && pattern[at] == '-' && pattern[at+1] != ']' {
			high, size = patternRune(pattern[at+1:])
			at += 1 + size
		}
		in = in || low <= character && character <= high
	}
	return min(at+1, len(pattern)), in != negated
}
