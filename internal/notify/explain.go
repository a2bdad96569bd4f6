package notify

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxExplanation is the length of an explanation in bytes.
	maxExplanation = 200
	// wholeWord is the length from which on a word that the URL holds is held back, and a
	// word that holds a piece of the URL. Shorter ones are everywhere and tell nothing.
	wholeWord = 3
	// hidden stands for what is held back.
	hidden = "…"
)

var (
	// plainWord and statusCode are what an explanation may consist of: words, and the codes of HTTP and SMTP.
	plainWord  = regexp.MustCompile(`^[A-Za-z]+(['-][A-Za-z]+)*$`)
	statusCode = regexp.MustCompile(`^[2-5]\d{2}$`)
	// pieces are what a URL consists of.
	pieces = regexp.MustCompile(`[\pL\pN]+`)
)

// explain returns what err says in plain words, without anything of rawURL.
//
// The libraries put URLs and parts of them into their errors, in spellings of their own. So
// this lets through what is a plain word and not in the URL, and nothing else.
func explain(err error, rawURL string) string {
	secret := strings.ToLower(rawURL)
	if decoded, err := url.PathUnescape(rawURL); err == nil {
		secret += " " + strings.ToLower(decoded)
	}
	var words []string
	length := 0
	for field := range strings.FieldsSeq(err.Error()) {
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

// within reports whether word is a part of secret, or has a piece of it in it. A status code is only held
// back if it is a piece by itself: its three digits are in every other port or number by chance,
// and without it nobody knows what the service answered.
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
