package treeinit

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
