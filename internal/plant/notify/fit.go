package notify

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shortRoom is the size in bytes of the message for a service that has refused a longer one. It has room for what to
// do, and a link.
const shortRoom = 640

// fit returns m with at most room bytes. It keeps the title and the first line, shortened if necessary, and the lines
// of Then. Of the other lines it keeps the last ones: they are the latest.
func fit(m Message, room int) Message {
	if len(m.Title)+len(gap)+len(m.whole()) <= room {
		return m
	}
	m.Title = cutBytes(m.Title, room/4)
	left := room - len(m.Title) - len(gap)
	first, rest, _ := strings.Cut(m.Text, "\n")
	then := keepFirst(strings.Split(m.Then, "\n"), left-min(len(first), left/3)-1)
	left -= len(then) + 1
	first = cutBytes(first, left)
	left -= len(first) + 1 + len(omitted(len(rest)))
	lines := strings.Split(rest, "\n")
	kept := len(lines)
	for kept > 0 && len(lines[kept-1])+1 <= left {
		kept--
		left -= len(lines[kept]) + 1
	}
	text := []string{first}
	if kept > 0 && rest != "" {
		text = append(text, omitted(kept))
	}
	m.Text, m.Then = strings.Join(append(text, lines[kept:]...), "\n"), then
	if len(m.Title)+len(gap)+len(m.whole()) > room {
		m.Text = first // the room is too small for a word about what is missing
	}
	return m
}

// omitted tells the reader that lines are missing.
func omitted(lines int) string { return fmt.Sprintf("… (%d lines left out)", lines) }

// keepFirst returns the first lines that fit into room bytes. It leaves out a line that is too long by itself: half a
// link leads nowhere.
func keepFirst(lines []string, room int) string {
	var kept []string
	for _, line := range lines {
		if len(line)+1 <= room {
			kept = append(kept, line)
			room -= len(line) + 1
		}
	}
	return strings.Join(kept, "\n")
}

// cutBytes returns text with at most limit bytes. It cuts no character in two.
func cutBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + ellipsis
}
