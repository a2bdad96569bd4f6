package redact

import (
	"regexp"
	"strings"
)

const (
	// maxBlock limits the length of a value over several lines, and of a table.
	maxBlock = 16 << 10
	// maxLine limits a line of a table, on both sides of the name.
	maxLine = 1 << 10
	// maxCells limits the cells of a line of a table.
	maxCells = 64
)

// withoutDiff returns a text with a blank for each + and - that a diff puts in front of a line. The dash of a list
// stays.
func withoutDiff(text string) string {
	file := []byte(text)
	for i, c := range file {
		if (c == '+' || c == '-') && (i == 0 || file[i-1] == '\n') {
			if next := text[i+1 : min(len(text), i+3)]; next == "  " || next != "" && !isBreak(next[0]) {
				file[i] = ' '
			}
		}
	}
	return string(file)
}

// blockStart matches what is between a name and a value on the next lines.
var blockStart = regexp.MustCompile(`^["']?[ \t]*[:=]?[ \t]*([|>][-+]?\d?[-+]?)?[ \t]*(?:#[^\n]*)?\r?\n`)

// blockOf returns the position of a value on the lines after its name: a block of YAML, or a single word.
func (w *secretWord) blockOf(text string, end int) (secret span, found bool) {
	at := blockStart.FindStringSubmatchIndex(text[end:min(len(text), end+maxLink)])
	if at == nil {
		return span{}, false
	}
	lineStart, _, short := lineAround(text, end, end)
	if !short {
		return span{}, false
	}
	outer := indentation(text[lineStart:end])
	from := end + at[1]
	if at[2] >= 0 {
		return w.indentedBlock(text, from, outer)
	}
	line, _, _ := strings.Cut(text[from:min(len(text), from+maxLink)], "\n")
	value := strings.TrimSpace(line)
	start := from + strings.Index(line, value)
	if strings.ContainsAny(value, " \t") || strings.HasSuffix(value, ":") || indentation(line) <= outer ||
		!hasDigit(value) {
		return span{}, false
	}
	v := valueAt(text, start)
	if !v.endsLine(text) || !w.accepts(text, told, v) {
		return span{}, false
	}
	return w.span(v.start, v.end), true
}

// listStart matches what is between a name, also in the plural, and a list of YAML on the next lines, and item the
// beginning of an item.
var (
	listStart = regexp.MustCompile(`^s?["']?[ \t]*:[ \t]*(?:#[^\n]*)?\r?\n`)
	// inlineList matches what is between a name and the first item of a list in the same line.
	inlineList = regexp.MustCompile(`^s?\\*["']?[ \t]*[:=][ \t]*\[`)
	item       = regexp.MustCompile(`^[ \t]*-[ \t]+`)
)

// listOf returns the positions of the values in a list on the lines after its name, and the end of the list.
func (w *secretWord) listOf(text string, end int) (items []span, after int) {
	if start := inlineList.FindString(text[end:min(len(text), end+maxLink)]); start != "" {
		return w.inlineListOf(text, end+len(start))
	}
	after = end + len(listStart.FindString(text[end:min(len(text), end+maxLink)]))
	for from := after; after > end && from < len(text) && from-end < maxBlock; {
		line, _, _ := strings.Cut(text[from:min(len(text), from+maxLink)], "\n")
		dash := len(item.FindString(line))
		if dash == 0 {
			break
		}
		if v := valueAt(text, from+dash); v.endsLine(text) && w.accepts(text, said, v) {
			items = append(items, w.span(v.start, v.end))
		}
		from += len(line) + 1
		after = from
	}
	return items, after
}

// inlineListOf returns the positions of the values of a list that begins at a position, and the end of the list.
func (w *secretWord) inlineListOf(text string, at int) (items []span, after int) {
	list, _, _ := strings.Cut(text[at:min(len(text), at+maxLine)], "\n")
	list, _, closed := strings.Cut(list, "]")
	after = at + len(list)
	if !closed {
		return nil, after
	}
	for one := range strings.SplitSeq(list, ",") {
		value := strings.Trim(one, " \t\\\"'")
		start := at + strings.Index(one, value)
		v := assignedValue{start, start + len(value), strings.ContainsAny(one, "\"'")}
		if w.accepts(text, said, v) {
			items = append(items, w.span(v.start, v.end))
		}
		at += len(one) + 1
	}
	return items, after
}

// indentedBlock returns the position of the lines that are indented more than their name.
func (w *secretWord) indentedBlock(text string, from, outer int) (secret span, found bool) {
	start, end := -1, from
	for at := from; at < len(text) && at-from < maxBlock; {
		line, _, more := strings.Cut(text[at:], "\n")
		if strings.TrimSpace(line) != "" {
			if indentation(line) <= outer {
				break
			}
			if start < 0 {
				start = at + indentation(line)
			}
			end = at + len(strings.TrimRight(line, " \t\r"))
		}
		if at += len(line) + 1; !more {
			break
		}
	}
	if start < 0 || end-start < minAssigned || !isSecretText(text[start:end]) ||
		strings.Contains(text[start:end], maskStart) {
		return span{end: end}, false
	}
	return w.span(start, end), true
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// columnOf returns the positions of the values in a column of a table whose heading is the name, and the end of the
// table.
func (w *secretWord) columnOf(text string, at, end int) (cells []span, after int) {
	lineStart, lineEnd, short := lineAround(text, at, end)
	if !short {
		return nil, 0
	}
	delimiter := delimiterOf(text[lineStart:at], text[lineStart:lineEnd], text[end:lineEnd])
	if delimiter == "" {
		return nil, 0
	}
	column := strings.Count(text[lineStart:at], delimiter)
	count := strings.Count(text[lineStart:lineEnd], delimiter)
	for from := lineEnd + 1; from < len(text) && from-end < maxBlock; {
		_, to, short := lineAround(text, from, from)
		line := text[from:to]
		rows := strings.Count(line, delimiter) == count
		if !short || !rows && strings.Trim(line, "-+=| \t\r") != "" {
			return cells, from
		}
		if rows {
			start, stop := cellAt(line, delimiter, column)
			v := assignedValue{start: from + start, end: from + stop}
			if value := line[start:stop]; hasDigit(value) && !strings.Contains(value, " ") &&
				w.accepts(text, assigned, v) {
				cells = append(cells, w.span(v.start, v.end))
			}
		}
		from = to + 1
		after = from
	}
	return cells, after
}

// cellAt returns the position of what a cell of a line holds.
func cellAt(line, delimiter string, column int) (start, end int) {
	for range column {
		start += strings.Index(line[start:], delimiter) + 1
	}
	cell, _, _ := strings.Cut(line[start:], delimiter)
	value := strings.Trim(cell, " \t\r\"'`")
	start += strings.Index(cell, value)
	return start, start + len(value)
}

// lineAround returns the line that contains a part of a text. It reports whether the line is short enough for a table.
func lineAround(text string, at, end int) (lineStart, lineEnd int, short bool) {
	from, to := max(0, at-maxLine), min(len(text), end+maxLine)
	lineStart = from + strings.LastIndexByte(text[from:at], '\n') + 1
	lineEnd = to
	if next := strings.IndexByte(text[end:to], '\n'); next >= 0 {
		lineEnd = end + next
	}
	return lineStart, lineEnd, (lineStart > from || from == 0) && (lineEnd < to || to == len(text))
}

// delimiterOf returns the delimiter of the cells of a line, if a name fills one of several; "" if not. The arguments
// before and after are the parts of the line around the name.
func delimiterOf(before, line, after string) string {
	for _, delimiter := range []string{"|", ",", "\t", ";"} {
		if count := strings.Count(line, delimiter); count > 0 && count <= maxCells && isCell(before, after, delimiter) {
			filled := 0
			for cell := range strings.SplitSeq(line, delimiter) {
				filled += min(1, len(strings.Trim(cell, " \t\r\"'`")))
			}
			if filled > 1 {
				return delimiter
			}
		}
	}
	return ""
}

// isCell reports whether a name fills a cell of a line. The arguments are the parts of the line before and after it.
func isCell(before, after, delimiter string) bool {
	before = strings.TrimRight(before, " \"'_abcdefghijklmnopqrstuvwxyz")
	after = strings.TrimLeft(after, " \"'\r")
	return (before == "" || strings.HasSuffix(before, delimiter)) &&
		(after == "" || strings.HasPrefix(after, delimiter))
}
