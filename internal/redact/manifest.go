package redact

import (
	"regexp"
	"strings"
)

// The values in the data of a Secret of Kubernetes are secrets, whatever their names.
var (
	secretKind = regexp.MustCompile(`\bkind["']?[ \t]*:[ \t]*["']?Secret\b`)
	// dataObject matches the data in JSON, dataValue a value in it, and dataLine the line of a name in the data of
	// YAML.
	dataObject = regexp.MustCompile(`"(?:data|stringData)"\s*:\s*\{[^{}]*\}`)
	dataValue  = regexp.MustCompile(`:\s*"([^"\\]+)"`)
	dataLine   = regexp.MustCompile(`^[ \t]+["']?[\w.-]+["']?:[ \t]*(?:[|>][-+0-9]*$)?`)
	dataBegins = regexp.MustCompile(`^(?:data|stringData):$`)
)

// findManifests returns the positions of the values of Secrets of Kubernetes in YAML and JSON.
func findManifests(text string) (found []span) {
	done := 0
	for _, at := range secretKind.FindAllStringIndex(text, -1) {
		if at[0] < done {
			continue
		}
		from, to := objectAround(text, at[0], done)
		if from >= 0 {
			for _, data := range dataObject.FindAllStringIndex(text[from:to], -1) {
				for _, value := range dataValue.FindAllStringSubmatchIndex(text[from+data[0]:from+data[1]], -1) {
					found = appendData(found, text, from+data[0]+value[2], from+data[0]+value[3])
				}
			}
			done = to
			continue
		}
		lines, end := manifestLines(text, at[0], done)
		found, done = append(found, lines...), end
	}
	return found
}

// objectAround returns the object of JSON around a position, from a position on; -1 if there is none.
func objectAround(text string, at, after int) (from, to int) {
	depth := 0
	for from = at - 1; ; from-- {
		if from < max(after, at-maxWindow) {
			return -1, at
		}
		if depth += strings.Count(text[from:from+1], "}") - strings.Count(text[from:from+1], "{"); depth < 0 {
			break
		}
	}
	depth = 0
	for to = at; to < min(len(text), at+maxWindow); to++ {
		if depth += strings.Count(text[to:to+1], "{") - strings.Count(text[to:to+1], "}"); depth < 0 {
			break
		}
	}
	return from, to
}

// manifestLines returns the values in the document of YAML around the position of its kind, from a position on, and the
// end of the document.
func manifestLines(text string, at, after int) (found []span, end int) {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	column, isItem := contentColumn(text[from:])
	for !isItem && from > max(after, at-maxWindow) { // up to the first line of the same object
		start := strings.LastIndexByte(text[:from-1], '\n') + 1
		above, begins := contentColumn(text[start:])
		if start < after || above < column {
			break
		}
		from, isItem = start, begins && above == column
	}
	inData, entry := false, 0
	for end = from; end < min(len(text), at+maxWindow); {
		line, _, _ := strings.Cut(text[end:], "\n")
		line = strings.TrimRight(line, " \t\r")
		switch of, begins := contentColumn(line); {
		case line == "":
		case end > at && (of < column || begins && of == column):
			return found, end
		case of <= column:
			inData, entry = dataBegins.MatchString(strings.TrimLeft(line, " -")), 0
		case inData:
			if entry == 0 {
				entry = of
			}
			name := 0
			if of == entry {
				name = len(dataLine.FindString(line))
			}
			value := strings.Trim(line[name:], " \t\"'")
			start := end + name + strings.Index(line[name:], value)
			found = appendData(found, text, start, start+len(value))
		}
		next := strings.IndexByte(text[end:], '\n')
		if next < 0 {
			return found, len(text)
		}
		end += next + 1
	}
	return found, max(end, at+1)
}

// contentColumn returns the column of what follows the blanks and the dash of a line, and whether there is a dash; -1
// between documents.
func contentColumn(line string) (column int, isItem bool) {
	if strings.HasPrefix(line, "---") {
		return -1, false
	}
	rest := strings.TrimLeft(line, " \t")
	if strings.HasPrefix(rest, "- ") {
		isItem, rest = true, strings.TrimLeft(rest[1:], " ")
	}
	return len(line) - len(rest), isItem
}

// appendData appends the position of a value, unless it is none.
func appendData(found []span, text string, start, end int) []span {
	if end-start < minAssigned || strings.HasPrefix(text[start:end], maskStart) || !isSecretText(text[start:end]) {
		return found
	}
	return append(found, span{start, end, fieldLabel, maxShapes + 2})
}
