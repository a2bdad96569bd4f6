package redact

import "strings"

const (
	// fence begins and ends a block of code in Markdown.
	fence = "```"
	// longWord is the length of a word, in bytes, from which it can be a part of a secret that has several lines.
	longWord = 20
)

// Settled returns the beginning of an unfinished text, with secrets masked. It leaves out the end that could be the
// beginning of a secret: the last word with the long words before it, a block of code without its end, and the
// beginning of a known secret.
func (r *Redactor) Settled(text string) string {
	end := settledWords(text)
	if strings.Count(text[:end], fence)%2 == 1 {
		end = strings.LastIndex(text[:end], fence)
	}
	if r != nil {
		for _, known := range r.forms {
			end = min(end, len(text)-begun(text, known.text))
		}
	}
	for _, secret := range r.find(text) {
		if secret.start < end && secret.end > end {
			end = secret.start
		}
	}
	return r.Text(text[:end])
}

// settledWords returns the position of the last word and of the long words before it.
func settledWords(text string) int {
	end := strings.LastIndexAny(text, " \t\r\n") + 1
	for {
		before := strings.TrimRight(text[:end], " \t\r\n")
		start := strings.LastIndexAny(before, " \t\r\n") + 1
		if len(before)-start < longWord {
			return end
		}
		end = start
	}
}

// begun returns the length of the longest beginning of secret with which text ends.
func begun(text, secret string) int {
	for length := min(len(text), len(secret)-1); length > 0; length-- {
		if strings.HasSuffix(text, secret[:length]) {
			return length
		}
	}
	return 0
}
