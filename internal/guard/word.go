package guard

import "strings"

// Word is a word of a command. It holds what is known before the command runs, with holes. A hole is a control
// character that marks an unknown part: the output of a command, a variable of unknown value, or the files that a
// pattern matches. Scripts that contain these characters are refused, so these characters never have another meaning in
// a Word.
type Word string

// The holes.
const (
	anyText   = '\x00' // any text, within this one word
	anyWords  = '\x01' // any text, in any number of words
	anyNames  = '\x02' // names of files in one directory, one word each; without a slash
	anyNumber = '\x03' // an integer
	anyBelow  = '\x04' // the path of a file below the preceding path, without ".."
	anyItem   = '\x05' // a name: letters, digits and . _ - : / @, beginning with a letter or digit
	anyItems  = '\x06' // any number of words, each a name like anyItem
)

const holes = "\x00\x01\x02\x03\x04\x05\x06"

// Known returns the text of the word. If the word has a hole, ok is false.
func (w Word) Known() (text string, ok bool) {
	return string(w), !strings.ContainsAny(string(w), holes)
}

// Start returns the known beginning of the word.
func (w Word) Start() string {
	if at := strings.IndexAny(string(w), holes); at >= 0 {
		return string(w[:at])
	}
	return string(w)
}

// Many reports whether bash can expand the word to no word or to several words.
func (w Word) Many() bool {
	return strings.ContainsAny(string(w), string([]byte{anyWords, anyNames, anyBelow, anyItems}))
}

// MayBeOption reports whether a program could read the word as an option. If the word expands to several words, any of
// these words could be the option.
func (w Word) MayBeOption() bool {
	switch start := w.Start(); {
	case strings.HasPrefix(start, "-"):
		return true
	case strings.ContainsRune(string(w), anyWords):
		return true // a later word can begin with a dash
	case start != "":
		return false
	case w == Word(anyItem) || w == Word(anyItems):
		return false
	default:
		return w != "" // a number can be negative
	}
}

// one returns one of the words to which the word expands. It replaces each hole for several words with a hole for one
// word.
func (w Word) one() Word {
	return Word(strings.NewReplacer("\x01", "\x00", "\x06", "\x05").Replace(string(w)))
}

// isNumber reports whether the word is an integer.
func (w Word) isNumber() bool {
	return w != "" && strings.Trim(string(w), "0123456789"+string(rune(anyNumber))) == ""
}

// String returns the word for people, with … for each hole.
func (w Word) String() string {
	return strings.NewReplacer("\x00", "…", "\x01", "…", "\x02", "…", "\x03", "…", "\x04", "…", "\x05", "…", "\x06", "…").Replace(string(w))
}
