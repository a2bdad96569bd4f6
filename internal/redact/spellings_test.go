package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// rowsIn returns the rows of a file: a line "# NAME", and a text.
func rowsIn(t *testing.T, file string) (names, texts []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for row := range strings.SplitSeq("\n"+string(content), "\n# ") {
		if name, text, found := strings.Cut(row, "\n"); found {
			names, texts = append(names, name), append(texts, strings.TrimSuffix(text, "\n"))
		}
	}
	return names, texts
}

// shown returns a part of a secret that a text still shows; "" if there is none. Parts are runs of letters and digits.
func shown(text, secret string) string {
	for _, part := range strings.FieldsFunc(secret, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(part) > 3 && part != "BEGIN" && part != "secret" && strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// TestSpellings masks secrets as logs, configurations and command lines spell them. The rows mark the secret with
// arrows.
func TestSpellings(t *testing.T) {
	t.Parallel()
	names, texts := rowsIn(t, "testdata/spellings.txt")
	masked := 0
	for i, row := range texts {
		secret := ""
		for part := range strings.SplitSeq(row, "→") {
			if of, _, found := strings.Cut(part, "←"); found {
				secret += of + "\n"
			}
		}
		text := strings.NewReplacer("→", "", "←", "").Replace(row)
		got := (*Redactor)(nil).Text(text)
		if part := shown(got, secret); part == "" && strings.Contains(got, maskStart) {
			masked++
		} else {
			t.Errorf("%s: %q is shown in\n%s", names[i], part, got)
		}
		require.Equal(t, got, (*Redactor)(nil).Text(got), "%s: a second time changes nothing", names[i])
		for _, written := range []string{inJSON(text), inJSON(inJSON(text))} {
			if part := shown((*Redactor)(nil).Text(written), secret); part != "" {
				t.Errorf("%s: %q is shown in JSON\n%s", names[i], part, (*Redactor)(nil).Text(written))
			}
		}
	}
	t.Logf("%d of %d are masked", masked, len(texts))
}

// everyByte writes each byte of a text in the same way.
func everyByte(format string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for i := range len(text) {
			fmt.Fprintf(&b, format, text[i])
		}
		return b.String()
	}
}

// everyRune writes each character of a text in the same way.
func everyRune(format string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for _, r := range text {
			fmt.Fprintf(&b, format, r)
		}
		return b.String()
	}
}

// printfQ writes a text as printf %q of bash does.
func printfQ(text string) string {
	if strings.Contains(text, "\n") {
		return "$'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(text) + "'"
	}
	var b strings.Builder
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+=:@%", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func inJSON(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(written)
}

func wrapped(text, with string) string {
	const width = 9
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + with)
		text = text[width:]
	}
	return b.String() + text
}

// TestSpellingsOfValues masks known values in each of these spellings.
func TestSpellingsOfValues(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"DB_PASSWORD": `p&ss w0rd!/x<1>`, "FLEET_TOKEN": `tok+en/with=4711?ok`, "KUBE_TOKEN": "a1b2c3d4e5f60718293a4b5c6d7e8f90",
		"WORD_SECRET": "größe-4711-Übung", "NOTE_SECRET": "first line 1x\nsecond-line-22\n  third-333 line", "ODD_SECRET": `it's "quoted\" $HOME %d`,
	}
	var environ []string
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	r := New(environ)
	spellings := map[string]func(string) string{
		"literal":              func(v string) string { return v },
		"json":                 inJSON,
		"json twice":           func(v string) string { return inJSON(inJSON(v)) },
		"json three times":     func(v string) string { return inJSON(inJSON(inJSON(v))) },
		"url":                  url.QueryEscape,
		"url path":             url.PathEscape,
		"url twice":            func(v string) string { return url.QueryEscape(url.QueryEscape(v)) },
		"url three times":      func(v string) string { return url.QueryEscape(url.QueryEscape(url.QueryEscape(v))) },
		"every byte in a url":  everyByte("%%%02x"),
		"url in json":          func(v string) string { return inJSON(url.QueryEscape(v)) },
		"json in url":          func(v string) string { return url.QueryEscape(inJSON(v)) },
		"printf %q":            printfQ,
		"printf %q in json":    func(v string) string { return inJSON(printfQ(v)) },
		"single quotes":        func(v string) string { return strings.ReplaceAll(v, "'", `'\''`) },
		"go":                   strconv.Quote,
		"go ascii":             strconv.QuoteToASCII,
		"html":                 html.EscapeString,
		"html twice":           func(v string) string { return html.EscapeString(html.EscapeString(v)) },
		"html numbers":         everyRune("&#%d;"),
		"html hexadecimal":     everyRune("&#x%X;"),
		"bytes in hexadecimal": everyByte(`\x%02x`),
		"bytes in octal":       everyByte(`\%03o`),
		"unicode escapes":      everyRune(`\u%04x`),
		"unicode in json":      func(v string) string { return inJSON(everyRune(`\u%04x`)(v)) },
		"hexadecimal":          func(v string) string { return hex.EncodeToString([]byte(v)) },
		"hexadecimal, colons":  func(v string) string { return strings.TrimSuffix(everyByte("%02x:")(v), ":") },
		"quoted-printable":     everyByte("=%02X"),
		"base64":               func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
		"base64 url":           func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
		"base64 twice": func(v string) string {
			return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(v))))
		},
		"base64 in url":     func(v string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(v))) },
		"wrapped":           func(v string) string { return wrapped(v, "\n") },
		"wrapped, indented": func(v string) string { return wrapped(v, "\n    ") },
		"wrapped in json":   func(v string) string { return inJSON(wrapped(v, "\n")) },
		"continued":         func(v string) string { return wrapped(v, "\\\n") },
		"lines of a log":    func(v string) string { return "web-1  | " + strings.ReplaceAll(v, "\n", "\nweb-1  | ") },
		"indented":          func(v string) string { return "|\n    " + strings.ReplaceAll(v, "\n", "\n    ") },
		"folded":            func(v string) string { return ">-\n    " + strings.ReplaceAll(v, " ", "\n    ") },
		"sql":               func(v string) string { return strings.ReplaceAll(v, "'", "''") },
		"csv":               func(v string) string { return strings.ReplaceAll(v, `"`, `""`) },
		"compose":           func(v string) string { return strings.ReplaceAll(v, "$", "$$") },
	}
	masked := 0
	for name, spell := range spellings {
		whole := true
		for variable, value := range values {
			spelled := "before: " + spell(value) + " :after"
			got := r.Text(spelled)
			rest := got
			for other := range values {
				rest = strings.ReplaceAll(rest, maskOf(other), "")
			}
			if !strings.Contains(got, maskStart) || shown(rest, value) != "" || len(rest) > len("before:  :after")+len(spelled)/4+28 {
				whole = false
				t.Errorf("%s of %s: %q", name, variable, got)
			}
			require.Equal(t, got, r.Text(got), "%s: a second time changes nothing", name)
		}
		if whole {
			masked++
		}
	}
	t.Logf("%d of %d are masked", masked, len(spellings))
}

// TestInnocent leaves texts without a secret as they are, also in JSON.
func TestInnocent(t *testing.T) {
	t.Parallel()
	r := New([]string{"DB_PASSWORD=Tr0ub4dor&3", "API_TOKEN=a1b2c3d4e5f60718293a4b5c6d7e8f90"})
	names, texts := rowsIn(t, "testdata/innocent.txt")
	for i, text := range texts {
		for _, written := range []string{text, inJSON(text), inJSON(inJSON(text)), "web-1  | " + strings.ReplaceAll(text, "\n", "\nweb-1  | ")} {
			if got := r.Text(written); got != written {
				t.Errorf("%s:\n%s\n%s", names[i], written, got)
				break
			}
		}
	}
	t.Logf("%d texts", len(texts))
}
