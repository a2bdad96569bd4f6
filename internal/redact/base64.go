package redact

import (
	"encoding/base64"
	"strings"
)

const (
	// minBase64 is the length of the shortest text in base64 that is decoded, in characters.
	minBase64 = 20
	// probe is the number of characters that must decode to readable text before the whole is decoded.
	probe = 16
	// fullLine is the length from which a line of base64 continues on the next line.
	fullLine = 60
	// maxNested limits how often a text in base64 is decoded again.
	maxNested = 2
)

// findBase64 returns the positions of texts in base64 that contain a secret.
func (r *Redactor) findBase64(text string, nested int) (found []span) {
	if nested == maxNested {
		return nil
	}
	for at := 0; at < len(text); at++ {
		if !isBase64(text[at]) {
			continue
		}
		from := at
		if from > 0 && text[from-1] == '\\' {
			from++ // the letter of an escape
		}
		content, end := base64At(text, from)
		at = max(end, at+1) - 1
		secrets := r.findIn(readable(content), nested+1)
		// possibly of an address
		if slash := strings.LastIndexByte(text[from:end], '/'); len(secrets) == 0 && slash >= 0 {
			from += slash + 1
			content, end = base64At(text, from)
			secrets = r.findIn(readable(content), nested+1)
		}
		if len(secrets) > 0 {
			found = append(found, span{from, end, secrets[0].label, secrets[0].rank})
		}
	}
	return found
}

// base64At returns the characters of base64 from a position on, without line breaks, and the position after them.
func base64At(text string, from int) (content string, end int) {
	line := from
	for end = from; end < len(text); {
		if isBase64(text[end]) || text[end] == '=' {
			end++
			continue
		}
		next := end
		for next < len(text) && next-end < fullLine && isBreak(text[next]) {
			next++
		}
		if end-line < fullLine || !strings.Contains(text[end:next], "\n") || next == len(text) ||
			!isBase64(text[next]) {
			break
		}
		line, end = next, next
	}
	if end-from < minBase64 {
		return "", end
	}
	content = text[from:end]
	if strings.ContainsAny(content, " \t\r\n") {
		content = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(content)
	}
	return strings.TrimRight(content, "="), end
}

// readable decodes base64; "" if it is none, or stands for something that nobody reads.
func readable(content string) string {
	if len(content) < minBase64 {
		return ""
	}
	alphabet := base64.RawStdEncoding
	if strings.ContainsAny(content, "-_") {
		alphabet = base64.RawURLEncoding
	}
	first, err := alphabet.DecodeString(content[:probe])
	if err != nil || !isReadable(first) {
		return ""
	}
	whole, err := alphabet.DecodeString(content)
	if err != nil {
		whole, err = alphabet.DecodeString(content[:len(content)/4*4])
	}
	if err != nil {
		return ""
	}
	return string(whole)
}

func isReadable(text []byte) bool {
	for _, c := range text {
		if c < ' ' && !isBreak(c) || c == 0x7f {
			return false
		}
	}
	return true
}
