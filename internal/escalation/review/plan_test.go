package review_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation/review"
)

const plan = `# Ports

- [ ] belongs to no phase

## Phase 1: The port

Some text.

- [x] find it
- [ ] change it

### Details

* [ ] and document it

` + "```" + `
## Phase 9: in a code block
- [ ] not an item
` + "```" + `

## Phase 2 — Follow up
1. no item
- [ ] tell people

## Notes

- [ ] belongs to no phase
`

func parsed(t *testing.T, text string) review.Plan {
	t.Helper()
	got, err := review.ParsePlan(text)
	require.NoError(t, err)
	return got
}

func TestParsePlan(t *testing.T) {
	t.Parallel()
	got := parsed(t, plan)
	require.Len(t, got.Digest, 64)
	require.Equal(t, review.Plan{Title: "Ports", Digest: got.Digest, Phases: []review.Phase{
		{Number: "1", Title: "The port", Items: []review.Item{{Text: "find it", Done: true}, {Text: "change it"}, {Text: "and document it"}}},
		{Number: "2", Title: "Follow up", Items: []review.Item{{Text: "tell people"}}},
	}}, got)
	require.False(t, got.Phases[0].Done())
	require.True(t, review.Phase{Items: []review.Item{{Text: "a", Done: true}}}.Done())
	require.False(t, review.Phase{}.Done(), "without a checklist nothing says that it is done")
	require.Equal(t, "Follow up", got.Phase("2").Title)
	require.Nil(t, got.Phase("3"))
	for text, problem := range map[string]string{
		"# Ports\n":                      "no phases",
		"## Phase 1\n## phase 1: again":  "phase 1 twice",
		"## Phased out\n# 1 Phase\n":     "no phases",
		"```\n## Phase 1: never closed":  "no phases",
		"    ## Phase 1: a code block\n": "no phases",
	} {
		_, err := review.ParsePlan(text)
		require.ErrorContains(t, err, problem, text)
	}
}

// TestPlanAsGitHubShowsIt checks that headings, comments, code and lists are what GitHub takes for them. What looks
// like a phase and is none stops the start, with its line.
func TestPlanAsGitHubShowsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		phases string // numbers, titles and entries
	}{
		"inline code that begins with three backticks": {
			"## Phase 1: a\n```x``` is a word\n- [ ] one\n\n## Phase 2: b\n- [x] two\n", "1 a [one] 2 b [two]",
		},
		"a comment":                    {"## Phase 1: a\n<!--\n## Phase 2: b\n- [ ] no\n-->\n- [ ] one\n<!-- ## Phase 3 -->\n", "1 a [one]"},
		"a comment in a heading":       {"## Phase 1: a <!-- ## Phase 2 -->\n", "1 a []"},
		"headings that are underlined": {"Plan\n====\n\nPhase 1: a\n---\n- [ ] one\n\nPhase 2: b\n--\n", "1 a [one] 2 b []"},
		"lists with numbers":           {"## Phase 1: a\n1. [ ] one\n2) [x] two\n   - [ ] three\n", "1 a [one two three]"},
		"a list in a quote":            {"## Phase 1: a\n> - [ ] one\n> 1. [x] two\n", "1 a [one two]"},
		"an entry of two lines":        {"## Phase 1: a\n- [ ] one\n  and more\n\n- [x] `two`\n", "1 a [one and more `two`]"},
		"no boxes":                     {"## Phase 1: a\n- [ ]\n- [x]two\n- \\[ ] three\n\n[ ] four\n\n    - [ ] five\n\n* one\n  [ ] six\n", "1 a []"},
		"code":                         {"## Phase 1: a\n~~~~\n## Phase 9\n~~~\n- [ ] no\n~~~~\n\t- [ ] no\n\n- x\n\n  ```\n  # Phase 7\n  ```\n", "1 a []"},
		"markup in headings":           {"## **Phase 1**: `a` &amp; [b](c)\n## Phase&nbsp;2\\: d\n##  phase\t3 — e ##\n", "1 a & b [] 2 d [] 3 e []"},
		"characters without a shape":   {"## \u200bPha\u00adse\u00a01\ufeff: a\n", "1 a []"},
		"phases of phases":             {"## Phase 2: a\n### Phase 2.1: b\n- [ ] one\n### Notes\n- [ ] two\n## Phase 3\n", "2 a [two] 2.1 b [one] 3  []"},
		"what is mentioned": {
			"## Phase 1: a\n- Phase 1: see there\n- **Phase 2**\n\nPhase 2: is next. Phase 7 is none.\nphase 8 follows.\n\n| Phase 1 | x |\n" +
				"\n## Phase 2: b\n### After phase 7\n### Phases\n`## Phase 4` is how to write one\n", "1 a [] 2 b []",
		},
		"line ends of old":       {"# x\r## Phase 1: a\r\n- [ ] one\r## Phase 2\r", "1 a [one] 2  []"},
		"what begins the file":   {"---\ntitle: x\n# a comment\n---\n## Phase 1: a\n", "1 a []"},
		"details":                {"<details>\n<summary>more</summary>\n\n## Phase 1: a\n\n- [ ] one\n\n</details>\n", "1 a [one]"},
		"titles without a colon": {"## Phase 1 - a\n## Phase 2. b\n## Phase 3\u2014c\n## Phase 4 d\n## Phase 5:e\n", "1 a [] 2 b [] 3 c [] 4 d [] 5 e []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := review.ParsePlan(c.text)
			require.NoError(t, err)
			var parts []string
			for _, phase := range got.Phases {
				var items []string
				for _, item := range phase.Items {
					items = append(items, item.Text)
				}
				parts = append(parts, fmt.Sprintf("%s %s %v", phase.Number, phase.Title, items))
			}
			require.Equal(t, c.phases, strings.Join(parts, " "))
		})
	}
}

// TestPlanStops checks that each text stops the start of the work: something in it looks like a phase and is none.
func TestPlanStops(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"## Phase 2b: x\n":                            `line 3: "## Phase 2b: x" has no number`,
		"## Phase II\n":                               `line 3: "## Phase II" has no number`,
		"## Phase two: x\n":                           "has no number",
		"## Phase: x\n":                               "has no number",
		"## Phase2\n":                                 "has no number",
		"## Phase-2\n":                                "has no number",
		"## Phase (2)\n":                              "has no number",
		"## Phase 2-3: both\n":                        "has no number",
		"## Phase 2\u20133: both\n":                   "has no number",
		"## Phase 2/3\n":                              "has no number",
		"## Phase 2.b\n":                              "has no number",
		"## Phase \uff12\n":                           "has no number",
		"## \U0001f6a7 Phase 2\n":                     "has no number",
		"## :construction: Phase 2\n":                 "has no number",
		"## 2. Phase 2\n":                             "has no number",
		"## ~~Phase 2~~\n":                            "has no number",
		"**Phase 2**\n- [ ] x\n":                      `line 3: "**Phase 2**" is no heading`,
		"**Phase 2: x**\n":                            "is no heading",
		"__Phase 2__: x\n":                            "is no heading",
		"Text.\n**Phase 2 x** y\n":                    `line 4: "**Phase 2 x** y" is no heading`,
		"Phase 2: x\n":                                "is no heading",
		"Phase 2\n":                                   "is no heading",
		"##Phase 2\n":                                 "is no heading",
		"####### Phase 2: x\n":                        "is no heading",
		"\\## Phase 2: x\n":                           "is no heading",
		"text\n    ## Phase 2\n":                      `line 4: "## Phase 2" is no heading`,
		"- **Phase 2**\n  - [ ] x\n":                  "is no heading",
		"1. Phase 2: x\n":                             "is no heading",
		"- [x] Phase 2: x\n":                          "is no heading",
		"> Phase 2: x\n":                              "is no heading",
		"| a | Phase 2 |\n|---|---|\n| b | c |\n":     `line 3: "| a | Phase 2 |" is no heading`,
		"a\n|-|\n| Phase 2: x |\n":                    `line 5: "| Phase 2: x |" is no heading`,
		"| Phase 2 | x |\n":                           "is no heading",
		"<b>Phase 2</b>\n":                            "is no heading",
		"**Phase two**\n":                             "is no heading",
		"> ## Phase 2: x\n":                           "is a heading within a quote or a list",
		"> ## Phase 1: a\n":                           "is a heading within a quote or a list",
		"- ## Phase 2: x\n":                           "is a heading within a quote or a list",
		"    ## Phase 2: x\n":                         "is indented so far that it is code",
		"### Phase 2: x\n":                            `line 3: "### Phase 2: x" is a heading of level 3, and the phases before it have level 2`,
		"# Phase 2: x\n":                              "is a heading of level 1",
		"### Phase 1.1\n## Phase 1.2\n":               "line 4",
		"# Phase 1.1\n":                               "is a heading of level 1",
		"```\n## Phase 2: x\n":                        "line 3: the block of code that begins here is never closed",
		"``\u200b`\n~~~ x\n\n## Phase 2\n```\n":       "line 4: the block of code that begins here is never closed",
		"```\nx\n```bash\n## Phase 2: x\n```\n":       `line 6: "## Phase 2: x" stands in a block of code`,
		"```\nx\n``` \u200b\n##Phase 2b\n```\n":       `line 6: "##Phase 2b" stands in a block of code`,
		"- x\n\n  ```\n  ```a\n  # Phase 7\n  ```\n":  `line 7: "# Phase 7" stands in a block of code`,
		"> ~~~~\n> ~~~~ x\n> ### phase 2 x\n> ~~~~\n": `line 5: "> ### phase 2 x" stands in a block of code`,
		"```\n``` x\nPhase 2: x\n---\n```\n":          `line 5: "Phase 2: x" stands in a block of code`,
		"<!--\n## Phase 2: x\n":                       "line 3: the comment that begins here is never closed",
		"- <!-- x\n\n## Phase 2: x\n":                 "the comment that begins here is never closed",
		"<div><!--\n\n## Phase 2: x\n\n-->\n":         "the comment that begins here is never closed",
		"<!--><?\n## Phase 2\n":                       "line 3: the tag that begins here is never closed",
		"<div\n\n## Phase 2: x\n":                     "the tag that begins here is never closed",
		"<div a=\"x>\n\n## Phase 2: x\n\n\">\n":       "the tag that begins here is never closed",
		"<script>\n## Phase 2: x\n":                   "the HTML that begins here is never closed",
		"<div>\n## Phase 2: x\n</div>\n":              "line 4: \"## Phase 2: x\" stands in HTML",
		"## </h2>Phase 2\n":                           "has HTML in it",
		"<h2>Phase 2</h2>\n":                          "is a heading in HTML",
		"text <h2>Phase 2</h2>\n":                     "is a heading in HTML",
		"<h2>\n\nPhase 2 x\n\n</h2>\n":                "is a heading in HTML",
		"text\n\n[^1]: # Phase 2\n":                   "is no heading",
		"## Phase 2\n## Phase 2.0\n## Phase 2\n":      "phase 2 twice, the second time in line 5",
	} {
		_, err := review.ParsePlan("## Phase 1: a\n\n" + text)
		require.ErrorContains(t, err, want, text)
		require.Len(t, strings.Split(err.Error(), "\n"), 1, text)
	}
	for text, want := range map[string]string{
		"---\n# Phase 2: x\n---\n\n## Phase 1: a\n": `line 2: "# Phase 2: x" stands in the lines between --- at the beginning`,
		"**Phase 1**\n- [ ] x\n":                    `no phases: write headings such as "## Phase 1: what to do"; line 1: "**Phase 1**" is no heading`,
	} {
		_, err := review.ParsePlan(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestNoPhaseIsSkipped draws plans of all that Markdown can do to a heading. Each heading that a browser shows as one
// of a phase is found, or the start stops; and what is found is shown. The browser's view is that of another parser:
// the HTML of the plan, read as HTML.
func TestNoPhaseIsSkipped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		requireShownPhases(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(planParts), 1, 12).Draw(t, "parts"), ""))
	})
}

// planParts are pieces of plans that change each other's meaning.
var planParts = []string{
	"\n", "\n\n", "    ", "\t", "> ", "- ", "1. ", "10) ", "* ", "- [ ] ", "[x] ", "# ", "## ", "### ", "##", " #\n", "Phase 1", "Phase 2: x", "phase 2.1 - y",
	"Phase 3b", "PHASE 4\n", "**Phase 5**", "Phase", " 6", "text", "\n---\n", "\n===\n", "---\n", "```", "~~~\n", "``", "`", "\n```\n", "<!--", "-->", "<!-->",
	"<div>\n", "</div>\n", "<h2>", "</h2>", "<pre>", "</pre>\n", "<details>\n", "<script>", "<b>", "</b>", "&nbsp;", "\\", "\u200b", "\u00a0", "\r", "\r\n",
	"[Phase 7](x)", "[a]: b\n", "|", "\n|-|\n", "![Phase 8](x)", "<?", "?>", "<![CDATA[", "]]>", "<!X", "  \n", "*", "_", "~~", "&#80;hase 9", "[^1]: ", ":x: ",
}

func FuzzPlan(f *testing.F) {
	f.Add(plan)
	for _, part := range planParts {
		f.Add("## Phase 1: a\n\n" + part + "## Phase 2\n")
	}
	f.Fuzz(func(t *testing.T, text string) { requireShownPhases(t, text) })
}

// frontMatter matches what GitHub shows as a table.
var frontMatter = regexp.MustCompile(`\A---[ \t]*\n(?s:.*?)\n---[ \t]*(?:\n|\z)`)

// filteredTags matches the tags that GitHub shows as text.
var filteredTags = regexp.MustCompile(`(?i)<(/?(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)\b)`)

var shownPhase = regexp.MustCompile(`(?i)^phase (\d+(?:\.\d+)*)`)

// requireShownPhases compares a plan with what a browser shows.
func requireShownPhases(t require.TestingT, text string) {
	got, err := review.ParsePlan(text)
	if err != nil {
		return
	}
	var page bytes.Buffer
	require.NoError(t, goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(renderer.WithUnsafe())).
		Convert([]byte(frontMatter.ReplaceAllString(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "")), &page))
	root, err := html.Parse(strings.NewReader(filteredTags.ReplaceAllString(page.String(), "&lt;$1")))
	require.NoError(t, err)
	var found, shown []string
	for _, phase := range got.Phases {
		found = append(found, phase.Number)
	}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode || !slices.Contains([]string{"h1", "h2", "h3", "h4", "h5", "h6"}, node.Data) {
			continue
		}
		var words strings.Builder
		for part := range node.Descendants() {
			if part.Type == html.TextNode {
				words.WriteString(part.Data)
			}
		}
		visible := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, words.String())
		if match := shownPhase.FindStringSubmatch(strings.Join(strings.Fields(visible), " ")); match != nil {
			shown = append(shown, match[1])
		}
	}
	require.Equal(t, shown, found, "%q is shown as %q", text, page.String())
}

func TestLost(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 2: b\n## Phase 3: c\n")
	for after, want := range map[string][]string{
		"## Phase 1: a\n- [x] one\n- [x] two\n- [ ] more\n## Phase 2: b\n## Phase 3: c\n## Phase 4: d\n": nil,
		"## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 3: c\n":                                           {"phase 2 (b) was removed"},
		"## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 3: c\n## Phase 2: b\n":                            {"phase 3 was moved"},
		"## Phase 1: a\n- [ ] one\n## Phase 2: other\n## Phase 3: c\n": {
			`"one" of phase 1 was done, and is open again`, `"two" of phase 1 was removed`, `phase 2 is now called "other"`,
		},
	} {
		require.Equal(t, want, before.Lost(parsed(t, after)), after)
	}
	twice := parsed(t, "## Phase 1: a\n- [x] run the tests\n- [x] run the tests\n")
	require.Equal(t, []string{`"run the tests" of phase 1 was removed`}, twice.Lost(parsed(t, "## Phase 1: a\n- [x] run the tests\n")))
	require.Equal(t, []string{`"run the tests" of phase 1 was done, and is open again`},
		twice.Lost(parsed(t, "## Phase 1: a\n- [x] run the tests\n- [ ] run the tests\n")))
}

// TestDigestOfAPlan checks that ticking off an entry does not count as a change of the text, and that everything else
// does.
func TestDigestOfAPlan(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\nCarefully.\n- [ ] one\n").Digest
	for text, same := range map[string]bool{
		"## Phase 1: a\r\nCarefully.\r\n- [x] one\r\n": true, "## Phase 1: a\nQuickly.\n- [x] one\n": false,
		"## Phase 1: a\nCarefully.\n- [ ] one\n- [ ] two\n": false, "## Phase 1: a\nCarefully.\n- [x] one \n": false,
	} {
		require.Equal(t, same, parsed(t, text).Digest == before, text)
	}
}

func TestAhead(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\n- [ ] one\n## Phase 2: b\n- [x] old\n- [ ] two\n")
	require.Empty(t, before.Ahead(parsed(t, "## Phase 1: a\n- [x] one\n## Phase 2: b\n- [x] old\n- [ ] two\n"), "1"))
	require.Equal(t, []string{`"two" of phase 2 was ticked off in phase 1`},
		before.Ahead(parsed(t, "## Phase 1: a\n- [x] one\n## Phase 2: b\n- [x] old\n- [x] two\n"), "1"))
	require.Empty(t, before.Ahead(parsed(t, "## Phase 1: a\n- [ ] one\n"), "1"), "Lost says that")
}
