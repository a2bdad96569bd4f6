package envfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// plain matches values that need no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=?&~-]*$`)

// Quote returns a value as it stands in a file of settings, so that this package, systemd and Compose read the same
// value. It refuses values with line breaks or other control characters, which none of the settings has.
func Quote(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("a value must be on one line and have no control characters")
	}
	switch {
	case plain.MatchString(value):
		return value, nil
	case !strings.ContainsAny(value, `'\`):
		return "'" + value + "'", nil
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`, nil
}

// Setting is a variable with its value, and the comment for the line if it is new.
type Setting struct {
	Name, Value string
	// Comment has one or more lines without #.
	Comment string
}

// Set returns the content of a file of settings in which a variable has a value. If a line sets the variable, only the
// value on that line changes, and nothing if it is the same text or the same number. Otherwise Set adds a line at the
// end, below its comment.
func Set(content string, s Setting) (string, error) {
	file, err := parse("", content)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(file.Variables, func(entry Entry) bool { return entry.Name == s.Name })
	if at >= 0 && same(file.Variables[at].Value, s.Value) {
		return content, nil
	}
	quoted, err := Quote(s.Value)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	if at < 0 {
		return ended(content) + "\n# " + strings.ReplaceAll(s.Comment, "\n", "\n# ") + "\n" + s.Name + "=" + quoted +
			"\n", nil
	}
	lines, number := slices.Collect(strings.Lines(content)), file.Variables[at].Line-1
	lines[number] = withValue(lines[number], s, quoted)
	return strings.Join(lines, ""), nil
}

// same reports whether two values are the same text or the same number, such as 5 and 5.00.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
	y, problem := strconv.ParseFloat(strings.TrimSpace(b), 64)
	return err == nil && problem == nil && x == y
}

// ended returns content with a line break at its end.
func ended(content string) string {
	if content != "" && !strings.HasSuffix(content, "\n") {
		return content + "\n"
	}
	return content
}

// quotedValue matches a value with the comment after it.
var quotedValue = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#]*)(\s+#.*)?$`)

// withValue returns a line that sets a variable with another value. It keeps the comment after the value, if a reader
// still finds the value in front of it.
func withValue(line string, s Setting, quoted string) string {
	body := strings.TrimRight(line, "\r\n")
	end := line[len(body):]
	before, value, _ := strings.Cut(body, "=")
	start := before + "=" + value[:len(value)-len(strings.TrimLeft(value, " \t"))]
	if parts := quotedValue.FindStringSubmatch(strings.TrimSpace(value)); len(parts) == 3 && parts[2] != "" {
		commented := start + quoted + parts[2]
		if read, err := parse("", commented); err == nil && len(read.Variables) == 1 &&
			read.Variables[0].Value == s.Value {
			return commented + end
		}
	}
	return start + quoted + end
}
