package guard

import "strings"

// Word is a word of a command as far as it is known before the command runs. A hole stands for what is
// not: the output of a command, a variable that a program sets, the files that a pattern matches. No word
// that bash can pass to a program has these characters in it.
type Word string

// The holes.
const (
	anyText   = '\x00' // any text, within this one word
	anyWords  = '\x01' // any text, in any number of words
	anyNames  = '\x02' // the names of files in one directory, a word each; without a slash
	anyNumber = '\x03' // an integer
	anyBelow  = '\x04' // the path of a file below what is in front of it, without ".."
	anyItem   = '\x05' // a name: letters, digits and . _ - : / @, the first a letter or digit
	anyItems  = '\x06' // such names, in any number of words
)

const holes = "\x00\x01\x02\x03\x04\x05\x06"

// Known returns the word if it has no hole.
func (w Word) Known() (text string, ok bool) {
	return string(w), !strings.ContainsAny(string(w), holes)
}

// Start returns what the word begins with for certain.
func (w Word) Start() string {
	if at := strings.IndexAny(string(w), holes); at >= 0 {
		return string(w[:at])
	}
	return string(w)
}

// Many reports whether the word may become none, or several.
func (w Word) Many() bool {
	return strings.ContainsAny(string(w), string([]byte{anyWords, anyNames, anyBelow, anyItems}))
}

// MayBeOption reports whether a program may take the word, or one that it becomes, for an option.
func (w Word) MayBeOption() bool {
	switch start := w.Start(); {
	case strings.HasPrefix(start, "-"):
		return true
	case strings.ContainsRune(string(w), anyWords):
		return true // a later word may begin with a dash
	case start != "":
		return false
	case w == Word(anyItem) || w == Word(anyItems):
		return false
	default:
		return w != "" // a number may be negative
	}
}

// one returns what is known of one of the words that the word may become.
func (w Word) one() Word {
	return Word(strings.NewReplacer("\x01", "\x00", "\x06", "\x05").Replace(string(w)))
}

// isNumber reports whether the word is an integer.
func (w Word) isNumber() bool {
	return w != "" && strings.Trim(string(w), "0123456789"+string(rune(anyNumber))) == ""
}

// String returns the word for people, with … for its holes.
func (w Word) String() string {
	return strings.NewReplacer("\x00", "…", "\x01", "…", "\x02", "…", "\x03", "…", "\x04", "…", "\x05", "…", "\x06", "…").Replace(string(w))
}
