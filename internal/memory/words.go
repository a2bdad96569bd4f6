package memory

import (
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Words returns the words of a text in lower case: its runs of letters and digits.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// fillers are the words that do not change what a sentence says.
var fillers = []string{"a", "an", "the", "it", "its", "is", "are", "that", "this"}

// Fingerprint returns the words of a text in their order, without fillers. Two proposals with the same kind, service and
// fingerprint are the same memory. The comparison is strict, because a single word can turn a sentence into its opposite.
func Fingerprint(text string) string {
	words := slices.DeleteFunc(Words(text), func(word string) bool { return slices.Contains(fillers, word) })
	return strings.Join(words, " ")
}

// conflict identifies memories of which at most one can be right.
type conflict struct {
	kind             escalation.MemoryKind
	service, subject string
}

func conflictOf(m *Memory) conflict {
	return conflict{m.Kind, escalation.ServiceKey(m.Service), Fingerprint(m.Subject)}
}

// SearchText returns the words by which a memory is found.
func SearchText(proposal escalation.MemoryProposal) string {
	return strings.Join(Words(proposal.Service+" "+proposal.Subject+" "+proposal.Text), " ")
}

// maxSearchWords limits the words of a search, because a prompt can be long.
const maxSearchWords = 60

// SearchWords returns the different words of a text by which to search, at most maxSearchWords. It omits single letters.
func SearchWords(text string) []string {
	var found []string
	for _, word := range Words(text) {
		if len(found) < maxSearchWords && len([]rune(word)) > 1 && !slices.Contains(fillers, word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}
