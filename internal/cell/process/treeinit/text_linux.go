package treeinit

import "unicode/utf8"

// These functions are those of package strings, which is initialized too late.

func hasPrefix(text, prefix string) bool {
	return len(text) >= len(prefix) && text[:len(prefix)] == prefix
}

func hasSuffix(text, suffix string) bool {
	return len(text) >= len(suffix) && text[len(text)-len(suffix):] == suffix
}

func trimSuffix(text, suffix string) string {
	if hasSuffix(text, suffix) {
		return text[:len(text)-len(suffix)]
	}
	return text
}

// cutPath returns the first part of a path, and what follows its slash.
func cutPath(text string) (part, rest string, deeper bool) {
	for at := range len(text) {
		if text[at] == '/' {
			return text[:at], text[at+1:], true
		}
	}
	return text, "", false
}

// trimSlashes removes the slashes at the end of a path.
func trimSlashes(path string) string {
	for hasSuffix(path, "/") {
		path = path[:len(path)-1]
	}
	return path
}

// baseOf returns the part of a path after its last slash.
func baseOf(path string) string {
	at := len(path)
	for at > 0 && path[at-1] != '/' {
		at--
	}
	return path[at:]
}

// below returns the path of a name in a directory.
func below(dir, name string) string { return trimSlashes(dir) + "/" + name }

// folded returns a text with small letters in place of capital ones. Of the letters beyond ASCII it changes those that
// a file system without case takes for a letter of ASCII: the long s and the sign of Kelvin.
func folded(text string) string {
	var small []byte
	for at := 0; at < len(text); {
		letter, size := utf8.DecodeRuneInString(text[at:])
		replaced := letter
		switch {
		case 'A' <= letter && letter <= 'Z':
			replaced += 'a' - 'A'
		case letter == 'ſ':
			replaced = 's'
		case letter == '\u212a':
			replaced = 'k'
		}
		if replaced != letter && small == nil {
			small = append(make([]byte, 0, len(text)), text[:at]...)
		}
		switch {
		case replaced != letter:
			small = append(small, byte(replaced)) // of ASCII
		case small != nil:
			small = append(small, text[at:at+size]...)
		}
		at += size
	}
	if small == nil {
		return text
	}
	return string(small)
}
