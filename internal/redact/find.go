package redact

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// windowBytes is the number of bytes from a keyword on that are searched for a secret. The window is short, because
	// patterns are fast only on short texts. If a window ends within a run without blanks, it is extended to the end of
	// the run, up to maxWindow.
	windowBytes = 1 << 10
	maxWindow   = 64 << 10
	// overlap is the number of bytes at the end of a window that the next window searches again. Otherwise the end of a
	// window could cut a secret in two.
	overlap = windowBytes / 4
	// lookBack is the number of bytes in front of a keyword that are also searched, because a secret can begin before
	// its keyword.
	lookBack = 40
)

// findShapes returns the matches of all shapes in text. The argument lower is the text in lower case. No shape searches
// any part of text more than a few times.
func findShapes(text, lower string) []span {
	found := slices.Concat(findPEM(text), findKeyBodies(text), findBlocks(text))
	known := matchers()
	var seen [maxShapes]int // end of the searched part, for each shape
	known.scanner.scan(lower, func(at, rank int) {
		if at < seen[rank] {
			return
		}
		m := &known.all[rank]
		start, end := max(0, at-lookBack), windowEnd(text, at)
		if seen[rank] = end; end < len(text) {
			seen[rank] = end - overlap
		}
		found = m.appendTo(found, text[start:end], start)
	})
	return found
}

// windowEnd returns the end of the window for a keyword that is at position at in text.
func windowEnd(text string, at int) int {
	end := at + windowBytes
	for end < len(text) && end-at < maxWindow && !isBreak(text[end]) {
		end++
	}
	return min(end, len(text))
}

// appendTo appends the positions of the secrets that the shape matches in a window of the text. The argument offset is
// the position of the window in the text.
func (m *matcher) appendTo(found []span, window string, offset int) []span {
	if len(m.with) > 0 && !slices.ContainsFunc(m.with,
		func(part string) bool { return strings.Contains(window, part) }) {
		return found
	}
	for _, at := range m.compiled().FindAllStringSubmatchIndex(window, -1) {
		match := groupsOf(window, at)
		if m.accept != nil && !m.accept(match) {
			continue
		}
		start, end := m.secretOf(at)
		found = append(found, span{offset + start, offset + end, m.label, m.rank})
	}
	return found
}

// secretOf returns the position of the secret in a match. The secret is the first group that matched. If no group
// matched, the secret is the whole match.
func (m *matcher) secretOf(at []int) (start, end int) {
	for group := max(m.group, 1); group < len(at)/2; group++ {
		if at[2*group] >= 0 {
			return at[2*group], at[2*group+1]
		}
	}
	return at[0], at[1]
}

// groupsOf returns the texts of a match and its groups.
func groupsOf(text string, at []int) []string {
	groups := make([]string, len(at)/2)
	for i := range groups {
		if at[2*i] >= 0 {
			groups[i] = text[at[2*i]:at[2*i+1]]
		}
	}
	return groups
}

// lowerASCII converts the letters A to Z to lower case. The length stays the same.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + ('a' - 'A')
		}
	}
	return string(lower)
}

// pemLabel is the mask's label for keys in PEM.
const pemLabel = "private key"

// maxPEM limits the length of a key in PEM.
const maxPEM = 64 << 10

// pemBegin matches the first line of a private key in PEM or OpenPGP.
var pemBegin = regexp.MustCompile(`^-{5}BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-{5}`)

// keyBody matches a line of a key.
var keyBody = regexp.MustCompile(`[A-Za-z0-9+/=]{20}`)

// findPEM returns the positions of the private keys in PEM in a text. If a key has no last line, its position includes
// all following text that looks like a key.
func findPEM(text string) []span {
	var found []span
	last := 0
	for at := range occurrences(text, "-----BEGIN") {
		if at < last {
			continue
		}
		header := pemBegin.FindString(text[at:min(len(text), at+100)])
		if header == "" {
			continue
		}
		from := at + len(header)
		end := pemEnd(text, from)
		if !keyBody.MatchString(text[from:end]) { // the text only mentions such a first line
			continue
		}
		found, last = append(found, span{at, end, pemLabel, 0}), end
	}
	return found
}

// pemEnd returns the end of a key in text. The argument from is the end of the key's first line.
func pemEnd(text string, from int) int {
	body := text[from:min(len(text), from+maxPEM)]
	if end := strings.Index(body, "-----END"); end >= 0 {
		rest := body[end+len("-----END"):]
		if closing := strings.Index(rest[:min(len(rest), 60)], "-----"); closing >= 0 {
			return from + end + len("-----END") + closing + len("-----")
		}
		return from + end
	}
	for end := 0; ; end++ {
		if end == len(body) || !isBase64(body[end]) && !isBreak(body[end]) && !strings.ContainsRune(`=\:,`, rune(body[end])) {
			return from + end
		}
	}
}
