package memory

import (
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Words returns the words of a text in lower case: its runs of letters and digits.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
}

// fillers are the words by which nobody searches.
var fillers = []string{"a", "an", "the", "it", "its", "is", "are", "that", "this"}

// Fingerprint returns the form of a text in which two texts are compared. Proposals with the same kind, service and
// fingerprint are the same memory. A single character can turn a sentence into its opposite, or a path into two. So
// only the case of ordinary words, the word "the" and the full stop at the end make no difference.
func Fingerprint(text string) string {
	text = plaintext.Compact(text)
	text = strings.TrimRight(text, ".!")
	words := strings.Fields(text)
	for i, word := range words {
		if !strings.ContainsFunc(word, func(r rune) bool { return !isLatin(r) }) {
			words[i] = strings.ToLower(word)
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "the" }), " ")
}

// isLatin reports whether r is a letter of ASCII.
func isLatin(r rune) bool { return r <= unicode.MaxASCII && unicode.IsLetter(r) }

// conflict identifies memories of which at most one can be right.
type conflict struct {
	kind             escalation.MemoryKind
	service, subject string
}

func conflictOf(m *Memory) conflict {
	return conflict{m.Kind, escalation.ServiceKey(m.Service), strings.Join(Words(m.Subject), " ")}
}

// SearchText returns the words by which a memory is found.
func SearchText(proposal escalation.MemoryProposal) string {
	return strings.Join(Words(proposal.Service+" "+proposal.Subject+" "+proposal.Text), " ")
}

// maxSearchWords limits the words of a search, because a prompt can be long.
const maxSearchWords = 60

// SearchWords returns the different words of a text by which to search, at most maxSearchWords. It omits single
// letters.
func SearchWords(text string) []string {
	var found []string
	for _, word := range Words(text) {
		if len(found) < maxSearchWords && len([]rune(word)) > 1 && !slices.Contains(fillers, word) &&
			!slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}
