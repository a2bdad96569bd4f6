package prompts

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// fence formats untrusted text as a code block. The text cannot close the block, because the fence is longer than any
// run of backticks in the text.
func fence(text string) string {
	text = strings.TrimSpace(plaintext.Block(text))
	ticks := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return ticks + "text\n" + text + "\n" + ticks
}

// quote formats a name or another short text as a code span on one line.
func quote(text string) string {
	const longest = 201 // characters; far longer than any name of a service, tool or command
	text = plaintext.Cut(plaintext.Compact(text), longest)
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if len(ticks) > 1 {
		text = " " + text + " " // a code span may not begin or end with its own delimiter
	}
	return ticks + text + ticks
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
