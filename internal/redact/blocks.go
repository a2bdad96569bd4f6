package redact

import "strings"

const (
	// minBlockLines is the number of full lines that make a block.
	minBlockLines = 3
	// minVariety is the number of different characters in a full line of a block. A line of random base64 has some 40,
	// and one of hexadecimal digits at most 22.
	minVariety = 28
)

// isBlockLine reports whether a line has the length of the lines of a key: 64 in PEM, 70 in the form of OpenSSH.
func isBlockLine(length int) bool { return length == 64 || length == 70 }

// findBlocks returns the positions of blocks of base64 that can be the rest of a private key, without its beginning: at
// least minBlockLines lines of the same full length, and the rest. After the header of something public, such as a
// certificate, a block is harmless.
func findBlocks(text string) (found []span) {
	for at := 0; at < len(text); {
		from, to := nextRun(text, at)
		if at = to; !isBlockLine(to - from) {
			continue
		}
		end, lines := blockEnd(text, from, to)
		if lines >= minBlockLines {
			if !isPublic(text[:from]) {
				found = append(found, span{from, bodyEnd(text, end), pemLabel, 0})
			}
			at = end
		}
	}
	return found
}

// nextRun returns the next run of characters of base64. The letter of an escaped line break is no part of it.
func nextRun(text string, at int) (from, to int) {
	for at < len(text) && !isStandardBase64(text[at]) {
		at++
	}
	from = at
	if from > 0 && from < len(text) && text[from-1] == '\\' && (text[from] == 'n' || text[from] == 'r') {
		from++
	}
	to = from
	for to < len(text) && isStandardBase64(text[to]) {
		to++
	}
	return from, to
}

// blockEnd returns the end of the last full line of a block whose first line is text[from:to], and the number of full
// lines.
func blockEnd(text string, from, to int) (end, lines int) {
	length := to - from
	for end = from; isDense(text[from:to]); lines++ {
		end = to
		from, to = nextRun(text, to)
		if to-from != length || !isLineBreak(text[end:from]) {
			return end, lines + 1
		}
	}
	return end, lines
}

// isLineBreak reports whether a text is a line break, which can be escaped, and an indentation.
func isLineBreak(text string) bool {
	switch strings.TrimRight(text, " \t") {
	case "\n", "\r\n", `\n`, `\r\n`:
		return true
	}
	return false
}

// isDense reports whether a line has the variety of random base64: small letters, capital letters and digits, and many
// of them.
func isDense(line string) bool {
	var seen [256]bool
	variety := 0
	for i := range len(line) {
		if !seen[line[i]] {
			seen[line[i]] = true
			variety++
		}
	}
	return variety >= minVariety && strings.ContainsAny(line, "0123456789") &&
		line != strings.ToLower(line) && line != strings.ToUpper(line)
}

// isPublic reports whether the text before a block ends with a header, which is not that of a private key. Such keys
// are found by their header.
func isPublic(before string) bool {
	before = strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(before, " \t\r\n"), `\n`), `\r`), " \t")
	line := before[max(strings.LastIndexByte(before, '\n'), strings.LastIndex(before, `\n`))+1:]
	return strings.HasSuffix(line, "-----") && strings.Contains(line, "-----BEGIN ")
}

func isStandardBase64(c byte) bool { return isAlphanumeric(c) || c == '+' || c == '/' }
