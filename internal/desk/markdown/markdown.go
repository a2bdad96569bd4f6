// Package markdown shows texts that agents have written in Markdown: on pages, on terminals, and to clients that render
// Markdown themselves. Such a text can repeat what a log says, so nothing in it loads anything, and every link shows
// its address.
package markdown

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxDepth limits how deep lists and quotes are nested. The marks of deeper ones are text.
const maxDepth = 20

var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(shallow(parser.DefaultBlockParsers())...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
).Parser()

// shallow returns the parsers of blocks such that lists and quotes are not nested too deep. Each line of a text costs
// time for each block that is open, so a text of nothing but marks would take long.
func shallow(all []util.PrioritizedValue) []util.PrioritizedValue {
	for i, one := range all {
		if one.Value == parser.NewListParser() || one.Value == parser.NewBlockquoteParser() {
			all[i].Value = bounded{one.Value.(parser.BlockParser)} //nolint:forcetypeassert // it is one of the two above
		}
	}
	return all
}

// bounded is a parser that opens no block within maxDepth lists and quotes.
type bounded struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (b bounded) Open(parent ast.Node, reader text.Reader, context parser.Context) (ast.Node, parser.State) {
	depth := 0
	for node := parent; node != nil; node = node.Parent() {
		if node.Kind() == ast.KindList || node.Kind() == ast.KindBlockquote {
			depth++
		}
	}
	if depth >= maxDepth {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, context)
}

// parse returns the tree of a text, and the text without what could harm a screen.
func parse(given string) (ast.Node, []byte) {
	source := []byte(plaintext.Block(given))
	return markdown.Parse(text.NewReader(source)), source
}

// children returns the children of a node.
func children(node ast.Node) (all []ast.Node) {
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		all = append(all, child)
	}
	return all
}

// linesOf returns the lines of a block of code or of HTML.
func linesOf(node ast.Node, source []byte) string {
	var b strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		b.Write(line.Value(source))
	}
	if html, is := node.(*ast.HTMLBlock); is && html.HasClosure() {
		b.Write(html.ClosureLine.Value(source))
	}
	return strings.TrimRight(b.String(), "\n")
}

// link returns the address of a link or an image, and whether it is one of the web or of mail.
func link(address string) (shown string, safe bool) {
	parsed, err := url.Parse(address)
	if err != nil {
		return address, false
	}
	switch strings.ToLower(parsed.Scheme) {
	case "https", "http":
		return address, parsed.Host != ""
	case "mailto":
		return address, parsed.Opaque != ""
	default:
		return address, false
	}
}

// fence matches a line that any program could take for the beginning of a block of code, up to the language.
var fence = regexp.MustCompile("(?m)^([ \t>]*(?:(?:[-*+]|\\d{1,9}[.)])[ \t]+[ " +
	"\t>]*)*)(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)$")

// WithoutLanguages returns a text in Markdown whose blocks of code name no language. Programs show blocks of some
// languages as pages. They differ in what they take for a block, so a line that looks like the beginning of one names
// none either.
func WithoutLanguages(given string) string {
	source := fence.ReplaceAll([]byte(given), []byte("$1$2$3"))
	var infos []text.Segment
	_ = ast.Walk(markdown.Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, is := node.(*ast.FencedCodeBlock); is && entering && block.Info != nil {
			infos = append(infos, block.Info.Segment)
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(infos, func(a, b text.Segment) int { return b.Start - a.Start })
	for _, info := range infos {
		source = slices.Delete(source, info.Start, info.Stop)
	}
	return string(source)
}

// Close returns a text in Markdown after which another one can follow: an open block of code at its end is closed.
func Close(given string) string {
	const mark = "\n\nx"
	last := markdown.Parse(text.NewReader([]byte(given + mark))).LastChild()
	block, open := last.(*ast.FencedCodeBlock)
	if !open {
		return given
	}
	// the block contains the mark
	before := strings.TrimSuffix(given[:min(block.Lines().At(0).Start, len(given))], "\n")
	opening := strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:])
	return given + "\n" + opening[:len(opening)-len(strings.TrimLeft(opening, opening[:1]))]
}
