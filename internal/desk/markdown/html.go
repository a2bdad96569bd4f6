package markdown

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// HTML returns a text in Markdown as HTML. Tags of the text are shown as they are written, images as links, and links
// that are not of the web or of mail as their address.
func HTML(given string) template.HTML {
	tree, source := parse(given)
	p := page{source: source}
	p.blocks(tree)
	return template.HTML(p.out.String()) //nolint:gosec // all texts and addresses are escaped
}

// page writes HTML.
type page struct {
	source []byte
	out    strings.Builder
}

func (p *page) tag(format string, args ...any) { _, _ = fmt.Fprintf(&p.out, format, args...) }

func (p *page) text(text string) { p.out.WriteString(html.EscapeString(text)) }

func (p *page) blocks(parent ast.Node) {
	for _, node := range children(parent) {
		p.block(node)
	}
}

// enclosed writes the blocks of a node within a tag.
func (p *page) enclosed(node ast.Node, opening, closing string) {
	p.tag("%s", opening)
	p.blocks(node)
	p.tag("%s", closing)
}

func (p *page) block(node ast.Node) {
	switch node := node.(type) {
	case *ast.Heading:
		level := min(node.Level+2, 6) // the page has the first two levels
		p.tag("<h%d>", level)
		p.inlines(node)
		p.tag("</h%d>", level)
	case *ast.Paragraph:
		p.tag("<p>")
		p.inlines(node)
		p.tag("</p>")
	case *ast.TextBlock:
		p.inlines(node)
	case *ast.List:
		switch {
		case !node.IsOrdered():
			p.enclosed(node, "<ul>", "</ul>")
		case node.Start != 1:
			p.enclosed(node, fmt.Sprintf(`<ol start="%d">`, node.Start), "</ol>")
		default:
			p.enclosed(node, "<ol>", "</ol>")
		}
	case *ast.ListItem:
		p.enclosed(node, "<li>", "</li>")
	case *ast.Blockquote:
		p.enclosed(node, "<blockquote>", "</blockquote>")
	case *ast.ThematicBreak:
		p.tag("<hr>")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		p.tag(`<pre tabindex="0"><code>`)
		p.text(linesOf(node, p.source))
		p.tag("</code></pre>")
	case *ast.HTMLBlock:
		p.tag("<p>")
		p.text(linesOf(node, p.source))
		p.tag("</p>")
	case *extast.Table:
		p.tag(`<div class="wide" tabindex="0"><table>`)
		p.blocks(node)
		p.tag("</table></div>")
	case *extast.TableHeader:
		p.row(node, "th")
	case *extast.TableRow:
		p.row(node, "td")
	default:
		p.blocks(node)
	}
}

func (p *page) row(node ast.Node, cell string) {
	p.tag("<tr>")
	for _, child := range children(node) {
		p.tag("<%s>", cell)
		p.inlines(child)
		p.tag("</%s>", cell)
	}
	p.tag("</tr>")
}

func (p *page) inlines(parent ast.Node) {
	for _, node := range children(parent) {
		p.inline(node)
	}
}

func (p *page) inline(node ast.Node) {
	switch node := node.(type) {
	case *ast.Text:
		p.text(words(node, p.source))
		if node.HardLineBreak() {
			p.tag("<br>")
		} else if node.SoftLineBreak() {
			p.text("\n")
		}
	case *ast.CodeSpan:
		p.tag("<code>")
		p.text(plain(node, p.source))
		p.tag("</code>")
	case *ast.Emphasis:
		name := [...]string{"em", "strong"}[min(node.Level, 2)-1]
		p.tag("<%s>", name)
		p.inlines(node)
		p.tag("</%s>", name)
	case *extast.Strikethrough:
		p.tag("<del>")
		p.inlines(node)
		p.tag("</del>")
	case *ast.Link:
		p.link(node, string(node.Destination))
	case *ast.Image:
		p.text("image: ")
		p.link(node, string(node.Destination))
	case *ast.AutoLink:
		p.link(node, autoAddress(node, p.source))
	case *ast.RawHTML, *ast.String:
		p.text(words(node, p.source))
	default:
		p.inlines(node)
	}
}

// link writes a link with its address. A person sees where it leads before they follow it.
func (p *page) link(node ast.Node, address string) {
	label := plain(node, p.source)
	shown, safe := link(address)
	if safe {
		p.tag(`<a href="%s" rel="noopener noreferrer nofollow">`, html.EscapeString(address))
	}
	if label == shown || label == "" || "mailto:"+label == shown {
		p.text(shown)
	} else {
		p.text(label + " (" + shown + ")")
	}
	if safe {
		p.tag("</a>")
	}
}
