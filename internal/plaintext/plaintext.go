// Package plaintext makes text from agents safe to show. An agent copies text from logs, web pages and other input that
// an attacker may have written.
//
//   - Line, Compact and Block remove the characters that a reader cannot see, such as terminal escapes and marks that
//     turn the direction of text.
//   - ForChat and ForMarkdown also take the effect from markup.
//   - Cut limits the length.
//
// All of them are pure functions, so workflows may call them.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// replacement stands for bytes that are not UTF-8.
const replacement = string(utf8.RuneError)

// Line returns text on one line. Each white space character becomes one blank, and each other character that is not
// printable is removed. The number of blanks stays, so a command or an ID looks as it is.
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

// IsLine reports whether Line would leave text as it is.
func IsLine(text string) bool { return Line(text) == text }

// Compact returns text as Line does, with every run of blanks as one and none around.
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

// Cut returns at most limit characters of text. If that is not all of it, the last one is an ellipsis.
// limit must be at least 1.
func Cut(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// slashes come first: in their place other characters could join a slash to "://".
var (
	slashes = strings.NewReplacer(`\`, "/", "|", "/")
	markup  = strings.NewReplacer("://", ": //", "[", "(", "]", ")", "<", "(", ">", ")", "@", "(at)",
		"`", "'", "*", "·", "#", "No. ")
)

// ForChat returns text as Compact does, without what chat services turn into links, markup or calls for attention.
// Such characters are replaced by similar ones. The result can be longer than text: cut the result.
func ForChat(text string) string { return markup.Replace(slashes.Replace(Compact(text))) }

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`,
	"<", "&lt;", ">", "&gt;", "|", `\|`, "!", `\!`, "#", `\#`)

// ForMarkdown returns text as Compact does, with the characters that Markdown and HTML would interpret escaped. Cut text
// before: a cut through the result could split an escape.
func ForMarkdown(text string) string { return markdown.Replace(Compact(text)) }
