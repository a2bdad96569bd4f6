package prompts

import (
	"slices"
	"strings"
	"unicode"
)

// fence wraps text that is not ours into a block that nothing inside it can close: the
// fence has more backticks than any run of them in text.
func fence(text string) string {
	text = clean(text)
	ticks := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return ticks + "text\n" + text + "\n" + ticks
}

// quote wraps a name or another short text into a code span on one line.
func quote(text string) string {
	const longest = 200 // runes; far above any name of a service, tool or command
	text = strings.Join(strings.Fields(clean(text)), " ")
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if len(ticks) > 1 {
		text = " " + text + " " // a code span may not begin or end with its own delimiter
	}
	return ticks + text + ticks
}

// clean removes what a reader cannot see, and could therefore not notice: control and
// format characters (such as those that turn the direction of text), broken UTF-8, and
// the blank space around.
func clean(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, text))
}

func longestRun(text string, of rune) int {
	longest, run := 0, 0
	for _, r := range text {
		if r == of {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

func nonBlank(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return strings.TrimSpace(item) == "" })
}
