package markdown

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// Line is a line of a text for a terminal. A program can break Text where it fills the width; then Lead stands before
// the first part.
type Line struct {
	Lead, Text string
	// Heading reports whether the line is a heading.
	Heading bool
}

// Lines returns a text in Markdown as lines for a terminal of width columns: without markup for emphasis, with the
// addresses of links, and with tables in columns, as far as they fit.
func Lines(given string, width int) []Line {
	tree, source := parse(given)
	t := terminal{source: source, width: width}
	t.blocks(tree, "", 0)
	for len(t.lines) > 0 && t.lines[len(t.lines)-1] == (Line{}) {
		t.lines = t.lines[:len(t.lines)-1]
	}
	return t.lines
}

// terminal collects lines.
type terminal struct {
	source []byte
	width  int
	lines  []Line
	// lead stands before the next line instead of its indent: the mark of a list's item.
	lead string
}

func (t *terminal) add(indent, text string) *Line {
	line := Line{Lead: indent, Text: text}
	if t.lead != "" {
		line.Lead, t.lead = t.lead, ""
	}
	t.lines = append(t.lines, line)
	return &t.lines[len(t.lines)-1]
}

// gap adds an empty line, unless there is one.
func (t *terminal) gap() {
	if len(t.lines) > 0 && t.lines[len(t.lines)-1] != (Line{}) && t.lead == "" {
		t.lines = append(t.lines, Line{})
	}
}

func (t *terminal) blocks(parent ast.Node, indent string, depth int) {
	for _, node := range children(parent) {
		t.block(node, indent, depth)
	}
}

func (t *terminal) block(node ast.Node, indent string, depth int) {
	switch node := node.(type) {
	case *ast.Heading:
		t.gap()
		t.add(indent, t.inlines(node)).Heading = true
	case *ast.Paragraph:
		t.gap()
		t.paragraph(node, indent)
	case *ast.TextBlock:
		t.paragraph(node, indent)
	case *ast.List:
		if depth == 0 {
			t.gap()
		}
		t.list(node, indent, depth)
		if depth == 0 {
			t.gap()
		}
	case *ast.Blockquote:
		t.gap()
		t.blocks(node, indent+"> ", depth+1)
	case *ast.ThematicBreak:
		t.gap()
		t.add(indent, "---")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		t.gap()
		t.raw(node, indent+"    ")
		t.gap()
	case *ast.HTMLBlock:
		t.gap()
		t.raw(node, indent)
	case *extast.Table:
		t.gap()
		t.table(node, indent)
		t.gap()
	default:
		t.blocks(node, indent, depth)
	}
}

func (t *terminal) list(list *ast.List, indent string, depth int) {
	number := list.Start
	for _, item := range children(list) {
		mark := "- "
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if t.lead == "" { // else the item is the first thing in another one
			t.lead = indent + mark
		} else {
			t.lead += mark
		}
		t.blocks(item, indent+strings.Repeat(" ", len(mark)), depth+1)
		if t.lead != "" { // an empty item
			t.add("", "")
		}
	}
}

func (t *terminal) paragraph(node ast.Node, indent string) {
	for line := range strings.SplitSeq(t.inlines(node), "\n") {
		t.add(indent, line)
	}
}

func (t *terminal) raw(node ast.Node, indent string) {
	for line := range strings.SplitSeq(linesOf(node, t.source), "\n") {
		t.add(indent, strings.ReplaceAll(line, "\t", "    "))
	}
}

// table adds a table in columns or, if it is too wide, each row as lines with the names of the columns.
func (t *terminal) table(table *extast.Table, indent string) {
	var rows [][]string
	var widths []int
	for _, row := range children(table) {
		var cells []string
		for i, cell := range children(row) {
			cells = append(cells, strings.ReplaceAll(t.inlines(cell), "\n", " "))
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cells[i]))
		}
		rows = append(rows, cells)
	}
	total := ansi.StringWidth(indent)
	for _, width := range widths {
		total += width + 2
	}
	if total > t.width {
		for _, row := range rows[1:] {
			for i, cell := range row {
				t.add(indent, rows[0][i]+": "+cell)
			}
			t.gap()
		}
		return
	}
	for i, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
		}
		t.add(indent, strings.TrimRight(line.String(), " ")).Heading = i == 0
	}
}

// inlines returns the text of a block. Its line breaks are those of the writer.
func (t *terminal) inlines(parent ast.Node) string {
	var b strings.Builder
	for _, node := range children(parent) {
		switch node := node.(type) {
		case *ast.Text:
			b.WriteString(words(node, t.source))
			if node.HardLineBreak() {
				b.WriteByte('\n')
			} else if node.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeSpan:
			b.WriteString("`" + plain(node, t.source) + "`")
		case *ast.Link:
			b.WriteString(t.link(node, string(node.Destination)))
		case *ast.Image:
			b.WriteString("image: " + t.link(node, string(node.Destination)))
		case *ast.AutoLink, *ast.RawHTML, *ast.String:
			b.WriteString(words(node, t.source))
		default:
			b.WriteString(t.inlines(node))
		}
	}
	return b.String()
}

func (t *terminal) link(node ast.Node, address string) string {
	label := strings.ReplaceAll(t.inlines(node), "\n", " ")
	if label == address || label == "" {
		return address
	}
	return label + " (" + address + ")"
}
