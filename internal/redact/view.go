package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// view is a text with its escapes decoded. For each byte it knows which part of the original text stands for it, unless
// start is nil.
type view struct {
	bytes      []byte
	start, end []int32
}

// maxView is the length of the longest text of which there are views, because positions have 32 bits.
const maxView = 1<<31 - 1

// maxPasses limits how often a text is decoded: a URL in JSON in a URL takes three passes. Each pass decodes all
// repetitions of one kind, such as %2520 and \\\".
const maxPasses = 4

// newView returns a view of a text without escapes. Without positions it takes a tenth of the memory.
func newView(text string, positions bool) *view {
	v := &view{bytes: []byte(text)}
	if positions {
		v.start, v.end = make([]int32, len(text)), make([]int32, len(text))
		for i := range v.start {
			v.start[i], v.end[i] = int32(i), int32(i+1)
		}
	}
	return v
}

// decode decodes all escapes.
func (v *view) decode() *view {
	for pass := 0; pass < maxPasses && hasEscapes(v.bytes); pass++ {
		if !v.pass() {
			break
		}
	}
	return v
}

// spelling lists the characters that differ between spellings of a value: blanks, quotes, line breaks.
var spelling = func() (set [256]bool) {
	for _, c := range []byte(" \t\r\n+'\"`\\$") {
		set[c] = true
	}
	return set
}()

// plain leaves out the characters of spelling.
func (v *view) plain() *view {
	to := 0
	for at, c := range v.bytes {
		if !spelling[c] {
			v.move(to, at)
			to++
		}
	}
	v.cut(to)
	return v
}

func (v *view) move(to, at int) {
	v.bytes[to] = v.bytes[at]
	if v.start != nil {
		v.start[to], v.end[to] = v.start[at], v.end[at]
	}
}

func (v *view) cut(length int) {
	v.bytes = v.bytes[:length]
	if v.start != nil {
		v.start, v.end = v.start[:length], v.end[:length]
	}
}

// hasEscapes reports whether a text has escapes.
func hasEscapes[T string | []byte](text T) bool {
	for i := range len(text) - 2 {
		switch text[i] {
		case '%':
			if isHex(text[i+1]) && isHex(text[i+2]) {
				return true
			}
		case '&':
			if next := text[i+1]; next == '#' || next == 'a' || next == 'l' || next == 'g' || next == 'q' {
				return true
			}
		case '=':
			if text[i+1] == '3' && text[i+2] == 'D' || i+3 < len(text) && text[i+3] == '=' && isHex(text[i+1]) &&
				isHex(text[i+2]) {
				return true
			}
		case '\\':
			return true
		}
	}
	return false
}

// pass decodes one level of escapes in place. It reports whether there was one.
func (v *view) pass() (changed bool) {
	to := 0
	for at := 0; at < len(v.bytes); {
		c := v.bytes[at]
		if c != '\\' && c != '%' && c != '=' && c != '&' {
			v.move(to, at)
			to, at = to+1, at+1
			continue
		}
		char, length := v.escape(at)
		if length == 0 {
			v.move(to, at)
			to, at = to+1, at+1
			continue
		}
		changed = true
		to = v.put(to, at, length, char)
		at += length
	}
	v.cut(to)
	return changed
}

// put writes the character for which an escape stands, and returns the position after it.
func (v *view) put(to, at, length int, char rune) int {
	var encoded [utf8.UTFMax]byte
	size := 1
	if encoded[0] = byte(char); char&rawByte == 0 { //nolint:gosec // a byte
		size = utf8.EncodeRune(encoded[:], char)
	}
	var start, end int32
	if v.start != nil {
		start, end = v.start[at], v.end[at+length-1]
	}
	for i := range min(size, length) {
		v.bytes[to] = encoded[i]
		if v.start != nil {
			v.start[to], v.end[to] = start, end
		}
		to++
	}
	return to
}

// rawByte marks an escape that stands for a byte and not for a character.
const rawByte = 1 << 30

// escape returns the character for which the escape at a position stands, and the escape's length; 0 if there is none.
func (v *view) escape(at int) (char rune, length int) {
	rest := v.bytes[at:]
	if len(rest) < 2 {
		return 0, 0
	}
	switch rest[0] {
	case '\\':
		return backslashed(rest)
	case '%':
		return hexAfter(rest, '%', "25")
	case '=':
		if len(rest) > 5 && rest[3] == '=' && isHex(rest[4]) && isHex(rest[5]) || hasPrefix(rest, "=3D") ||
			at > 2 && v.bytes[at-3] == '=' && isHex(v.bytes[at-2]) && isHex(v.bytes[at-1]) {
			return hexAfter(rest, '=', "3D")
		}
	case '&':
		return entity(rest)
	}
	return 0, 0
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// hexAfter decodes a byte in two hexadecimal digits after a mark. The argument again is the mark itself in digits: the
// text can be encoded several times.
func hexAfter(text []byte, mark byte, again string) (char rune, length int) {
	if len(text) < 3 || text[0] != mark || !isHex(text[1]) || !isHex(text[2]) {
		return 0, 0
	}
	at := 1
	for len(text) >= at+4 && hasPrefix(text[at:], again) && isHex(text[at+2]) && isHex(text[at+3]) {
		at += 2
	}
	return rune(hexValue(text[at])<<4|hexValue(text[at+1])) | rawByte, at + 2
}

func hexValue(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// maxBackslashes limits the backslashes of one escape.
const maxBackslashes = 64

// backslashed decodes the escapes of shells, of JSON and of programming languages. Several backslashes are one: the
// text can be quoted several times.
func backslashed(text []byte) (char rune, length int) {
	at := 0
	for at < len(text) && at < maxBackslashes && text[at] == '\\' {
		at++
	}
	if at == len(text) {
		return '\\', at
	}
	digits := func(from, count, base int) (rune, int) {
		if len(text) < from+count {
			return 0, 0
		}
		value, err := strconv.ParseUint(string(text[from:from+count]), base, 32)
		if err != nil || value > utf8.MaxRune {
			return 0, 0
		}
		return rune(value), from + count
	}
	char, length = rune(text[at]), at+1
	decoded, to := rune(0), 0
	switch text[at] {
	case 'n', 'r', 't', '\n', '\r':
		return '\n', length
	case 'u':
		decoded, to = digits(at+1, 4, 16)
	case 'U':
		decoded, to = digits(at+1, 8, 16)
	case 'x':
		decoded, to = digits(at+1, 2, 16)
		decoded |= rawByte
	case '0', '1', '2', '3':
		decoded, to = digits(at, 3, 8)
		decoded |= rawByte
	}
	if to > 0 {
		return decoded, to
	}
	return char, length
}

// maxEntity limits the length of a character reference of HTML.
const maxEntity = 48

// entity decodes a character reference of HTML, which can be written several times.
func entity(text []byte) (char rune, length int) {
	rest := string(text[1:min(len(text), maxEntity)])
	at := 1
	for strings.HasPrefix(rest, "amp;") {
		rest, at = rest[len("amp;"):], at+len("amp;")
		char, length = '&', at
	}
	name, _, closed := strings.Cut(rest, ";")
	if !closed {
		return char, length
	}
	after := at + len(name) + 1
	switch name {
	case "lt":
		return '<', after
	case "gt":
		return '>', after
	case "quot":
		return '"', after
	case "apos":
		return '\'', after
	}
	number, is := strings.CutPrefix(name, "#")
	if !is {
		return char, length
	}
	base := 10
	if hexadecimal, is := strings.CutPrefix(strings.ToLower(number), "x"); is {
		number, base = hexadecimal, 16
	}
	if value, err := strconv.ParseUint(number, base, 32); err == nil && value <= utf8.MaxRune {
		return rune(value), after
	}
	return char, length
}

// inText returns the position in the original text of what the view shows in a span.
func (v *view) inText(s span) span {
	s.start, s.end = int(v.start[s.start]), int(v.end[s.end-1])
	return s
}

// plainForm returns the spelling of a value in the views that leave out blanks and quotes.
func plainForm(value string) string { return string(newView(value, false).decode().plain().bytes) }

// findPlain returns the positions of known values in any mixture of escapes, quotes and line breaks. Most texts have
// none, and then it needs no positions.
func (r *Redactor) findPlain(text string) []span {
	if len(r.plain) == 0 || len(text) > maxView {
		return nil
	}
	if len(r.plainIn(newView(text, false).decode().plain())) == 0 {
		return nil
	}
	v := newView(text, true).decode().plain()
	found := r.plainIn(v)
	for i := range found {
		found[i] = v.inText(found[i])
	}
	return found
}

// plainIn returns the positions of known values in a view.
func (r *Redactor) plainIn(v *view) (found []span) {
	seen := make([]int, len(r.plain))
	shown := string(v.bytes)
	r.plainScanner.scan(shown, func(at, id int) {
		f := &r.plain[id]
		if at >= seen[id] && strings.HasPrefix(shown[at:], f.text) {
			seen[id] = at + len(f.text)
			found = append(found, span{at, at + len(f.text), f.name, 0})
		}
	})
	return found
}

// findDecoded returns the positions of secrets in a text with its escapes decoded.
func findDecoded(text string) []span {
	if len(text) > maxView || !hasEscapes(text) {
		return nil
	}
	if len(findAnnounced(string(newView(text, false).decode().bytes))) == 0 {
		return nil
	}
	v := newView(text, true).decode()
	found := findAnnounced(string(v.bytes))
	for i := range found {
		found[i] = v.inText(found[i])
	}
	return found
}
