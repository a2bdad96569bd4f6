package markdown

import (
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// words returns the text of a node without children.
func words(node ast.Node, source []byte) string {
	switch node := node.(type) {
	case *ast.Text:
		if node.IsRaw() {
			return string(node.Value(source))
		}
		return html.UnescapeString(string(util.UnescapePunctuations(node.Value(source))))
	case *ast.String:
		return string(node.Value)
	case *ast.RawHTML:
		var b strings.Builder
		for i := range node.Segments.Len() {
			segment := node.Segments.At(i)
			b.Write(segment.Value(source))
		}
		return b.String()
	case *ast.AutoLink:
		return string(node.Label(source))
	}
	return ""
}

// plain returns the text within a node, without markup.
func plain(parent ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(parent, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			b.WriteString(words(node, source))
			if text, is := node.(*ast.Text); is && (text.SoftLineBreak() || text.HardLineBreak()) {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// autoAddress returns the address of a link that is only an address.
func autoAddress(node *ast.AutoLink, source []byte) string {
	address := string(node.URL(source))
	if node.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
		return "mailto:" + address
	}
	return address
}
