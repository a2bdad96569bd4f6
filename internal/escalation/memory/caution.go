package memory

import (
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/escalation"
)

// cautions lists groups of words. A memory with a word of a group needs a person, for the reason of the group. The
// words are many on purpose: a memory that waits for a person does no harm.
var cautions = []struct {
	reason string
	words  []string
}{
	{"it says that something is safe", strings.Fields(
		`safe safely harmless risk riskless riskfree safety benign trusted trust trustworthy legitimate expected normal fine ok okay`)},
	{"it tells agents to leave something out", strings.Fields(
		`ignore ignored ignores ignorable disregard skip skipped bypass bypassed disable disabled disables suppress suppressed silence
		silenced mute muted unnecessary needless irrelevant false noise`)},
	{"it is about escalation, gates or people", strings.Fields(
		`escalate escalated escalates escalation escalating gate gates approve approved approval human person people operator operators
		oncall notify notification notifications page`)},
	{"it is about permissions or credentials", strings.Fields(
		`permission permissions permitted allow allowed allows allowlist grant granted grants policy guard sandbox tier sudo root admin
		administrator privileged chmod chown setuid password passwords passwd token tokens secret secrets credential credentials key keys
		login authentication authorization auth masked`)},
	{"it gives instructions to agents", strings.Fields(
		`agent agents claude assistant model prompt instruction instructions always never must should shall please remember forget you
		your dont don cannot not instead`)},
	{"it names a way to destroy data or to run foreign code", strings.Fields(
		`rm rmdir delete deletes deleted deleting remove removes removed removing drop drops dropped truncate wipe wiped erase format
		mkfs dd shred purge prune kill killall force forced forcibly reset overwrite destroy destroyed curl wget bash eval exec base64
		nc ssh pipe http https ftp`)},
}

// Caution says why only a person may confirm a memory; empty if a second incident may, too. It looks for English words
// of which at least one is needed to tell an agent that it may be less careful, and for letters of other scripts, whose
// words it does not know. It is a net with holes: what it misses still has no permission that the guard does not grant.
func Caution(proposal escalation.MemoryProposal) string {
	text := proposal.Service + " " + proposal.Subject + " " + proposal.Text
	words := Words(text)
	for _, group := range cautions {
		if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(group.words, word) }) {
			return group.reason
		}
	}
	if strings.ContainsFunc(text, foreign) {
		return "it has letters whose words are not known here"
	}
	return ""
}

// foreign reports whether r is a letter outside of ASCII. A letter of another script can look like a Latin one.
func foreign(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }
