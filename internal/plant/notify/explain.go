package notify

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxExplanation limits an explanation, in bytes.
	maxExplanation = 200
	// wholeWord is the minimum length of a word that is compared with the URL. If such a word is part of the URL, or
	// contains a part of the URL, the word is hidden. Shorter words are too common to reveal anything.
	wholeWord = 3
	// hidden replaces hidden words.
	hidden = "…"
)

var (
	// plainWord and statusCode match the words that explain is permitted to show: plain words, and the status codes of
	// HTTP and SMTP.
	plainWord  = regexp.MustCompile(`^[A-Za-z]+(['-][A-Za-z]+)*$`)
	statusCode = regexp.MustCompile(`^[2-5]\d{2}$`)
	// pieces matches the parts of a URL.
	pieces = regexp.MustCompile(`[\pL\pN]+`)
)

// explain returns the plain words of said without any part of rawURL.
//
// Services and libraries put URLs and parts of them into their errors, in different spellings. Therefore explain shows
// words that match an allow-list of patterns and do not occur in the URL. It hides all other words.
func explain(said, rawURL string) string {
	secret := strings.ToLower(rawURL)
	if decoded, err := url.PathUnescape(rawURL); err == nil {
		secret += " " + strings.ToLower(decoded)
	}
	var words []string
	length := 0
	for field := range strings.FieldsSeq(said) {
		word := strings.Trim(field, `.,:;!?()[]{}<>"'`)
		if !plainWord.MatchString(word) && !statusCode.MatchString(word) || within(strings.ToLower(word), secret) {
			word = hidden
		} else if strings.HasSuffix(field, ":") {
			word += ":"
		}
		if word == hidden && len(words) > 0 && words[len(words)-1] == hidden {
			continue
		}
		if length += len(word) + 1; length > maxExplanation {
			break
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// within reports whether word must be hidden, because word is a part of secret or contains a part of secret. A status
// code is hidden if it equals a whole part of secret, but not if it occurs within a longer part. Three digits often
// occur by chance in ports and other numbers, and people need the status code to understand the error.
func within(word, secret string) bool {
	words := pieces.FindAllString(secret, -1)
	if statusCode.MatchString(word) {
		return slices.Contains(words, word)
	}
	if len(word) >= wholeWord && strings.Contains(secret, word) {
		return true
	}
	return slices.ContainsFunc(words, func(piece string) bool {
		return len(piece) > wholeWord && strings.Contains(word, piece)
	})
}
