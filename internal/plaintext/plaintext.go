// Package plaintext makes text from agents safe to show. An agent copies text from logs, web pages and other input. An
// attacker can have written that input.
//
//   - Line, Compact and Block remove the characters that a reader cannot see, such as terminal escapes and marks that
//     change the direction of text.
//   - ForChat and ForMarkdown also disable markup.
//   - Cut limits the length.
//   - Count writes a number of things; Dollars, Duration, Span, About and Length write amounts and times.
//
// All of them are pure functions, so workflows may call them.
package plaintext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// replacement replaces bytes that are not UTF-8.
const replacement = string(utf8.RuneError)

// Line returns text on one line. It replaces each white space character with one blank, and removes all other
// characters that are not printable. Runs of blanks are kept, so that commands and IDs look unchanged.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, replacement))
}

// IsLine reports whether Line would return text unchanged.
func IsLine(text string) bool { return Line(text) == text }

// Compact returns text in the same form as Line, but with one blank for each run of blanks, and without blanks at both
// ends.
func Compact(text string) string { return strings.Join(strings.Fields(Line(text)), " ") }

// Block returns text of one or more lines. Every kind of line break becomes \n, tabs stay, and other control characters
// and all format characters are removed.
func Block(text string) string {
	valid := strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), replacement)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || unicode.In(r, unicode.Zl, unicode.Zp):
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		default:
			return r
		}
	}, valid)
}

// Name returns the name of a file for a sentence: as it is, if it has only letters, digits and . _ - / +; otherwise in
// quotes, with escapes for what would end a line, a quotation or a code span.
func Name(name string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/+", r)
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return strings.ReplaceAll(strconv.QuoteToGraphic(name), "`", `\x60`)
}

// Cut returns text if it has at most limit characters. If text is longer, Cut returns the first limit-1 characters and
// an ellipsis. limit must be at least 1.
func Cut(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// Apply the replacer slashes before the replacer markup. In the other order, replaced backslashes and bars could form a
// new "://".
var (
	slashes = strings.NewReplacer(`\`, "/", "|", "/")
	markup  = strings.NewReplacer("://", ": //", "[", "(", "]", ")", "<", "(", ">", ")", "@", "(at)",
		"`", "'", "*", "·", "#", "No. ")
)

// ForChat returns text like Compact. In addition it replaces characters that chat services turn into links, markup or
// mentions. The replacements look similar. The result can be longer than text, so cut the result and not text.
func ForChat(text string) string { return markup.Replace(slashes.Replace(Compact(text))) }

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`,
	"<", "&lt;", ">", "&gt;", "|", `\|`, "!", `\!`, "#", `\#`)

// ForMarkdown returns text like Compact. In addition it escapes the characters that Markdown and HTML would interpret.
// Cut text before the call, because cutting the result could split an escape sequence.
func ForMarkdown(text string) string { return markdown.Replace(Compact(text)) }

// Count returns a number of things in words, such as "1 session" or "2 sessions". The plural of thing must end in s.
func Count(number int, thing string) string {
	if number != 1 {
		thing += "s"
	}
	return strconv.Itoa(number) + " " + thing
}

// Or lists words as alternatives, such as "a, b or c". There must be at least one.
func Or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
