package completions

import (
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/markdown"
	"github.com/claudeops/claudeops/internal/plaintext"
)

var (
	// fence matches every line that could open or close a block of code. opensCode and closesCode match those about
	// which all programs agree.
	fence      = regexp.MustCompile("^\\s*(```|~~~)")
	opensCode  = regexp.MustCompile("^```[A-Za-z0-9_+.-]*$")
	closesCode = regexp.MustCompile("^``` *$")
	// loads matches the beginning of an image or of a tag.
	loads = strings.NewReplacer("![", "!&#91;")
	tag   = regexp.MustCompile(`<([A-Za-z/!?])`)
)

// defuse returns a reply in Markdown that loads nothing by itself: images become links, and tags become text. Otherwise
// a reply that repeats words of a log could make the client fetch an address, and so carry a secret away. Code stays as
// it is, but blocks of code lose their language: Open WebUI shows a block of HTML, SVG or Mermaid as a page.
func defuse(reply string) string { return markdown.WithoutLanguages(defuseLines(reply)) }

func defuseLines(reply string) string {
	lines := strings.SplitAfter(plaintext.Block(reply), "\n")
	code, trusted := false, true // trusted reports whether all programs agree so far what is code
	for i, line := range lines {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case trusted && !code && opensCode.MatchString(text):
			code = true
			lines[i] = "```" + strings.TrimPrefix(line, text)
		case trusted && code && closesCode.MatchString(text):
			code = false
		case fence.MatchString(text):
			code, trusted = false, false
			lines[i] = defuseText(line)
		case code:
		case trusted && strings.Count(line, "`")%2 == 0 && !strings.Contains(line, "``") &&
			!strings.Contains(line, "\\`"):
			parts := []string{line}
			if !strings.Contains(line, "|") { // it separates the cells of a table, also within code
				parts = strings.Split(line, "`")
			}
			for at := 0; at < len(parts); at += 2 { // the parts between are code
				parts[at] = defuseText(parts[at])
			}
			lines[i] = strings.Join(parts, "`")
		default:
			trusted = false
			lines[i] = defuseText(line)
		}
	}
	return strings.Join(lines, "")
}

func defuseText(text string) string { return tag.ReplaceAllString(loads.Replace(text), "&lt;$1") }
