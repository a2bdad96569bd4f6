package plaintext_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plaintext"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"plain text":                     "plain text",
		"two\nlines\r\nand\ta tab":       "two lines  and a tab",
		"  blanks   stay  ":              "  blanks   stay  ",
		"red\x1b[31m and bell\a":         "red[31m and bell",
		"\u202eturned\u202c\u2066\u2069": "turned",
		"zero\u200bwidth\ufeff":          "zerowidth",
		"\u2028line\u2029paragraph":      " line paragraph",
		"hidden \U000e0041\U000e0042tag": "hidden tag",
		"no\u00a0break\u3000wide":        "no break wide",
		"Ärger, 東京 and 🚀":                "Ärger, 東京 and 🚀",
		"broken\xff\xfeUTF-8":            "broken\ufffdUTF-8",
	} {
		require.Equal(t, want, plaintext.Line(text), "%q", text)
		require.Equal(t, want == text, plaintext.IsLine(text), "%q", text)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		" \t\n":                     "",
		"  two\n\n lines  ":         "two lines",
		"a \x00 b\u202e":            "a b",
		"jelly\u200bfin is\u2028up": "jellyfin is up",
	} {
		require.Equal(t, want, plaintext.Compact(text), "%q", text)
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"one\r\ntwo\rthree\n":          "one\ntwo\nthree\n",
		"a\vb\fc\u0085d\u2028e\u2029f": "a\nb\nc\nd\ne\nf",
		"\tindented  text":             "\tindented  text",
		"\x1b[2J\x00\u202e\u200b":      "[2J",
		"broken\xff":                   "broken\ufffd",
		"東京 🚀":                         "東京 🚀",
	} {
		require.Equal(t, want, plaintext.Block(text), "%q", text)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 1, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abcd", 1, "…"},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äö…"},
	} {
		require.Equal(t, test.want, plaintext.Cut(test.text, test.limit))
	}
}

func TestForChat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jellyfin is\n down":              "jellyfin is down",
		"see https://evil.example/x":      "see https: //evil.example/x",
		`see https:\\evil.example`:        "see https: //evil.example",
		"see https:||evil.example":        "see https: //evil.example",
		"[click](https://evil.example)":   "(click)(https: //evil.example)",
		"<!channel> @everyone <@U123>":    "(!channel) (at)everyone ((at)U123)",
		"**bold** `code` #1":              "··bold·· 'code' No. 1",
		"https:\u200b//evil.example \x1b": "https: //evil.example",
	} {
		require.Equal(t, want, plaintext.ForChat(text), "%q", text)
	}
}

func TestForMarkdown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jellyfin is\n down":             "jellyfin is down",
		"![image](https://evil.example)": `\!\[image\](https://evil.example)`,
		"<img src=x> | `code` # *":       "&lt;img src=x&gt; \\| \\`code\\` \\# \\*",
		`\`:                              `\\`,
		"\u202eturned\x1b[31m":           `turned\[31m`,
	} {
		require.Equal(t, want, plaintext.ForMarkdown(text), "%q", text)
	}
}

// FuzzClean checks the promises of each function for arbitrary text.
func TestCount(t *testing.T) {
	t.Parallel()
	for number, want := range map[int]string{0: "0 turns", 1: "1 turn", 2: "2 turns"} {
		require.Equal(t, want, plaintext.Count(number, "turn"))
	}
}

func TestOr(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1", plaintext.Or([]string{"1"}))
	require.Equal(t, "1, 2 or 3", plaintext.Or([]string{"1", "2", "3"}))
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{
		"", "a b", "\r\n\v\f\u0085\u2028\u2029", "\x1b[31mred\x07", "\u202e\u2066\u200b\u061c\ufeff", "\xff\xfe", `:\\|/`, ":||", "@[]<>`*#|",
		"\U000e0041", "\ue000\U0010ffff", ":\u200b//", "::////",
	} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		for _, line := range []string{plaintext.Line(text), plaintext.Compact(text), plaintext.ForChat(text), plaintext.ForMarkdown(text)} {
			require.True(t, plaintext.IsLine(line), "%q", line)
			require.False(t, strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
		}
		block := plaintext.Block(text)
		require.False(t, strings.ContainsFunc(block, func(r rune) bool {
			return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}), "%q", block)
		require.Equal(t, block, plaintext.Block(block), "a second time changes nothing")

		compact := plaintext.Compact(text)
		require.Equal(t, compact, plaintext.Compact(compact), "a second time changes nothing")
		require.NotContains(t, compact, "  ")
		require.NotContains(t, plaintext.ForChat(text), "://")
		require.False(t, strings.ContainsAny(plaintext.ForChat(text), "[]<>@`*|#\\"))

		most := max(limit, 1)
		short := plaintext.Cut(compact, most)
		require.LessOrEqual(t, utf8.RuneCountInString(short), most)
		require.True(t, short == compact || strings.HasPrefix(compact, strings.TrimSuffix(short, "…")))
	})
}

// TestName checks that a file's name cannot end the line, the quotation or the code span in which it is shown.
func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web/compose.yaml": "web/compose.yaml", "ü.md": "ü.md", "a b": `"a b"`, "a\nb": `"a\nb"`, `a"b`: `"a\"b"`, "a`b": `"a\x60b"`, "": `""`,
		"a\u202eb": `"a\u202eb"`, "a\x1b[31m": `"a\x1b[31m"`, "a, b": `"a, b"`,
	} {
		require.Equal(t, want, plaintext.Name(name))
	}
}
