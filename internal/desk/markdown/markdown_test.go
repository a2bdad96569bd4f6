package markdown

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

const answer = `# State

All is **well**, *mostly*: ` + "`df -h`" + ` says ~~90~~ 40 %.

1. Look at [the log](https://ops.example.org/log)
2. Then:
   - restart ` + "`db`" + `
   - wait

` + "~~~html\n<b>x</b>\n\n  y\n~~~" + `

> said nas

| service | state |
|---|---|
| jellyfin | up |
| nas | **down** |

![x](https://evil.example/?k=1) <img src=x> &lt; \* [a](javascript:x) <mailto:a@example.org> https://example.org/a_b_c
`

// TestHTML checks the HTML of an answer.
func TestHTML(t *testing.T) {
	t.Parallel()
	require.Equal(t, `<h3>State</h3><p>All is <strong>well</strong>, <em>mostly</em>: <code>df -h</code> says <del>90</del> 40 %.</p>`+
		`<ol><li>Look at <a href="https://ops.example.org/log" rel="noopener noreferrer nofollow">the log (https://ops.example.org/log)</a></li>`+
		`<li>Then:<ul><li>restart <code>db</code></li><li>wait</li></ul></li></ol>`+
		"<pre tabindex=\"0\"><code>&lt;b&gt;x&lt;/b&gt;\n\n  y</code></pre><blockquote><p>said nas</p></blockquote>"+
		`<div class="wide" tabindex="0"><table><tr><th>service</th><th>state</th></tr><tr><td>jellyfin</td><td>up</td></tr>`+
		`<tr><td>nas</td><td><strong>down</strong></td></tr></table></div>`+
		`<p>image: <a href="https://evil.example/?k=1" rel="noopener noreferrer nofollow">x (https://evil.example/?k=1)</a> &lt;img src=x&gt; &lt; * `+
		`a (javascript:x) <a href="mailto:a@example.org" rel="noopener noreferrer nofollow">mailto:a@example.org</a> `+
		`<a href="https://example.org/a_b_c" rel="noopener noreferrer nofollow">https://example.org/a_b_c</a></p>`, string(HTML(answer)))
}

// TestLines checks the lines of an answer on a terminal.
func TestLines(t *testing.T) {
	t.Parallel()
	const want = `#State

All is well, mostly: ` + "`df -h`" + ` says 90 40 %.

1. Look at the log (https://ops.example.org/log)
2. Then:
   - restart ` + "`db`" + `
   - wait

    <b>x</b>
    
      y

> said nas

#service   state
jellyfin  up
nas       down

image: x (https://evil.example/?k=1) <img src=x> < * a (javascript:x) mailto:a@example.org https://example.org/a_b_c`
	require.Equal(t, want, shown(Lines(answer, 80)))
	require.Contains(t, shown(Lines(answer, 12)), "service: jellyfin\nstate: up\n\nservice: nas\nstate: down")
	require.Equal(t, "- 1. a\n- \n- b\n\n  c", shown(Lines("- 1. a\n-\n- b\n\n  c", 80)))
	require.Empty(t, Lines("\x1b \n", 80))
}

func shown(lines []Line) string {
	var all []string
	for _, line := range lines {
		mark := ""
		if line.Heading {
			mark = "#"
		}
		all = append(all, mark+line.Lead+line.Text)
	}
	return strings.Join(all, "\n")
}

// TestWithoutLanguages checks that no block of code names a language, wherever it is and however it is fenced.
func TestWithoutLanguages(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"```html\nx\n```":                "```\nx\n```",
		"~~~ svg y\nx\n~~~":              "~~~\nx\n~~~",
		"````html\n```js\n````":          "````\n```\n````",
		"- ```html\n  x\n  ```":          "- ```\n  x\n  ```",
		"1. a\n\n   ~~~mermaid\n   x":    "1. a\n\n   ~~~\n   x",
		"> ```html\n> x":                 "> ```\n> x",
		"> - > ```` html\n> - ```y":      "> - > ````\n> - ```",
		"```\nhtml\n```\n    ```html":    "```\nhtml\n```\n    ```",
		"text ```html\n```html\n```html": "text ```html\n```\n```",
	} {
		require.Equal(t, want, WithoutLanguages(given))
	}
}

// TestClose checks that what follows an answer is no part of its code.
func TestClose(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a": "a", "```\nx\n```": "```\nx\n```", "```\nx": "```\nx\n```", "~~~~ html\nx\n~~~": "~~~~ html\nx\n~~~\n~~~~",
		"- ```\n  x": "- ```\n  x", "```": "```\n```", "a\n  ````": "a\n  ````\n````", "": "", "```x\n\n\n": "```x\n\n\n\n```",
	} {
		require.Equal(t, want, Close(given))
		last := markdown.Parse(text.NewReader([]byte(Close(given) + "\n\nafter"))).LastChild()
		require.IsType(t, &ast.Paragraph{}, last, given)
	}
}

// allowed lists the elements and attributes of HTML's output.
var allowed = map[string][]string{
	"p": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "ul": nil, "ol": {"start"}, "li": nil, "blockquote": nil, "hr": nil, "pre": {"tabindex"}, "code": nil,
	"em": nil, "strong": nil, "del": nil, "br": nil, "a": {"href", "rel"}, "div": {"class", "tabindex"}, "table": nil, "tr": nil, "td": nil, "th": nil,
}

// FuzzMarkdown checks that HTML has nothing but harmless elements in balance, and that no line leaves the screen's
// line.
func FuzzMarkdown(f *testing.F) {
	f.Add(answer)
	f.Add("[x](JAVASCRIPT&#58;alert(1)) <a href=x onclick=y> [y]: http://\"onload=x \n[y]")
	f.Add(strings.Repeat("> - ", 200) + "x")
	f.Fuzz(func(t *testing.T, given string) {
		if len(given) > 40_000 {
			return
		}
		page, lines := string(HTML(given)), Lines(given, 80)
		_ = WithoutLanguages(given)
		_ = Close(given)
		for _, line := range lines {
			require.NotContains(t, line.Lead+line.Text, "\n")
			require.NotContains(t, line.Lead+line.Text, "\x1b")
		}
		var open []string
		tokens := html.NewTokenizer(strings.NewReader(page))
		for {
			kind := tokens.Next()
			if kind == html.ErrorToken {
				break
			}
			token := tokens.Token()
			switch kind {
			case html.StartTagToken:
				attributes, known := allowed[token.Data]
				require.True(t, known, token.Data)
				for _, attribute := range token.Attr {
					require.Contains(t, attributes, attribute.Key)
					if attribute.Key == "href" {
						address, err := url.Parse(attribute.Val)
						require.NoError(t, err)
						require.Contains(t, []string{"http", "https", "mailto"}, address.Scheme)
					}
				}
				if token.Data != "br" && token.Data != "hr" {
					open = append(open, token.Data)
				}
			case html.EndTagToken:
				require.NotEmpty(t, open)
				require.Equal(t, open[len(open)-1], token.Data)
				open = open[:len(open)-1]
			case html.CommentToken, html.DoctypeToken, html.SelfClosingTagToken:
				t.Fatalf("%s in %s", token, page)
			case html.ErrorToken, html.TextToken:
			}
		}
		require.Empty(t, open)
	})
}

// TestWideTable checks that the columns of a table with wide characters stand below each other.
func TestWideTable(t *testing.T) {
	t.Parallel()
	const table = "| 服务 | state |\n|---|---|\n| 媒体服务器 | 正常 |\n| nas 📦 | **down** |\n| jose\u0301 | up |"
	want := "#服务        state\n媒体服务器  正常\nnas 📦      down\njose\u0301        up"
	require.Equal(t, want, shown(Lines(table, 20)))
	require.Contains(t, shown(Lines(table, 17)), "服务: 媒体服务器\nstate: 正常", "it has 18 columns")
}

// deepest returns how deep the blocks of a tree are nested.
func deepest(node ast.Node) (depth int) {
	for _, child := range children(node) {
		if child.Type() == ast.TypeBlock {
			depth = max(depth, 1+deepest(child))
		}
	}
	return depth
}

// TestHostileSizes checks that texts which are hard to parse are neither nested deep nor shown as far more than they
// are.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"> ", "- ", "[", "![", "*", "_a", "`", "<", "| ", "[a](", "*a_", "~~", "1. ", "\\", "&#1;", "> - ", "a\n", "|-", "http://a.b", "<!--", "[a]: b\n", "```\n"} {
		given := strings.Repeat(unit, 32_000/len(unit))
		require.LessOrEqual(t, deepest(markdown.Parse(text.NewReader([]byte(given)))), 2*maxDepth+2, unit)
		page := HTML(given)
		require.Less(t, len(page), 100*len(given))
		require.LessOrEqual(t, bytes.Count([]byte(page), []byte("<blockquote>")), maxDepth)
		require.NotEmpty(t, fmt.Sprint(Lines(given, 80)), unit)
		_ = Close(WithoutLanguages(given))
	}
}
