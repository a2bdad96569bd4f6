package redact

import (
	"encoding/hex"
	"strings"
)

const (
	// minWords is the number of words in a row that make a part of a line a dump. A line with an offset needs one.
	minWords = 4
	// maxWordDigits is the length of the longest word of a dump. Longer words are a dump of their own (xxd -p), from
	// minSolidDigits on.
	maxWordDigits  = 8
	minSolidDigits = 2 * minSecret
	// minOffsetDigits is the length of the shortest offset at the beginning of a line.
	minOffsetDigits = 6
)

// dump holds the bytes that the lines of a text show in hexadecimal digits.
type dump struct {
	// plain has two digits for each byte. In swapped, the bytes of words of two bytes are swapped: hexdump and od -x
	// show numbers of 16 bits, lower byte first.
	plain, swapped strings.Builder
	// from and to hold, for each byte, where its word begins and where its line ends.
	from, to []int
}

// findDumped returns the positions of values that are printed byte by byte, as by xxd, od and hexdump. A position
// includes the rest of the line, where such programs show the text itself.
func (r *Redactor) findDumped(text string) []span {
	if len(r.values) == 0 {
		return nil
	}
	d := readDump(text)
	if len(d.from) < minSecret {
		return nil
	}
	var found []span
	for _, digits := range []string{d.plain.String(), d.swapped.String()} {
		for _, v := range r.values {
			secret := hex.EncodeToString([]byte(v.secret))
			for at := range occurrences(digits, secret) {
				if at%2 == 0 {
					found = append(found, span{d.from[at/2], d.to[(at+len(secret))/2-1], v.name, 0})
				}
			}
		}
	}
	return found
}

// readDump reads the bytes that the lines of a text show.
func readDump(text string) *dump {
	d := &dump{}
	for start := 0; start < len(text); {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += start
		}
		d.readLine(text[:end], start)
		start = end + 1
	}
	return d
}

// readLine reads the bytes that a line shows. The line begins at start, and ends with the text.
func (d *dump) readLine(text string, start int) {
	at, least := start, minWords
	if after := offsetEnd(text, start); after > start {
		at, least = after, 1
	}
	for at < len(text) {
		if !isAlphanumeric(text[at]) {
			at = max(at+1, gapEnd(text, at)) // past the prefix of a first word
			continue
		}
		if strings.HasPrefix(text[at:], "0x") {
			at += len("0x")
		}
		at = d.readPart(text, at, least)
	}
}

// readPart reads the words from the position at on, if they are at least so many or one without gaps. It returns the
// position after them.
func (d *dump) readPart(text string, at, least int) int {
	var words [][2]int
	digits := 0
	for {
		end := hexEnd(text, at)
		if end == at || (end-at)%2 != 0 || end-at > maxWordDigits && (digits > 0 || end-at < minSolidDigits) ||
			end < len(text) && isAlphanumeric(text[end]) {
			break
		}
		words, digits = append(words, [2]int{at, end}), digits+end-at
		next := gapEnd(text, end)
		if at = next; next == end || next == len(text) {
			break
		}
	}
	if len(words) >= least || len(words) == 1 && digits >= minSolidDigits {
		for _, word := range words {
			d.add(text[word[0]:word[1]], word[0], len(text))
		}
	}
	for at < len(text) && isAlphanumeric(text[at]) {
		at++
	}
	return at
}

// add adds the bytes of a word. The argument from is the position of the word, and end that of the end of its line.
func (d *dump) add(word string, from, end int) {
	word = lowerASCII(word)
	d.plain.WriteString(word)
	if len(word) == 4 {
		word = word[2:] + word[:2]
	}
	d.swapped.WriteString(word)
	for range len(word) / 2 {
		d.from, d.to = append(d.from, from), append(d.to, end)
	}
}

// offsetEnd returns the end of the offset at the beginning of a line and of the gap after it; start if there is none.
func offsetEnd(text string, start int) int {
	at := start
	for at < len(text) && isBreak(text[at]) {
		at++
	}
	end := hexEnd(text, at)
	if end-at < minOffsetDigits || end == len(text) || text[end] != ':' && !isBreak(text[end]) {
		return start
	}
	next := gapEnd(text, end)
	if text[end] != ':' && hexEnd(text, next)-next == end-at { // a word like the next one
		return start
	}
	return next
}

// gapEnd returns the end of the gap between two words: one or two characters, and a prefix of the next word.
func gapEnd(text string, at int) int {
	from := at
	for at < len(text) && at-from < 2 && strings.IndexByte(" \t:,-\\", text[at]) >= 0 {
		at++
	}
	if at == from {
		return at
	}
	if strings.HasPrefix(text[at:], "0x") {
		return at + len("0x")
	}
	if text[at-1] == '\\' && strings.HasPrefix(text[at:], "x") {
		return at + len("x")
	}
	return at
}

// hexEnd returns the end of the hexadecimal digits that begin at the position at.
func hexEnd(text string, at int) int {
	for at < len(text) && isHex(text[at]) {
		at++
	}
	return at
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
