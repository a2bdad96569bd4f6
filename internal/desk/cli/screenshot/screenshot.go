// Package screenshot draws the screen of a terminal as an SVG for the documentation.
//
// The SVG is one file without scripts, fonts or links, because GitHub shows it as an image. It has its own dark
// background, so it looks the same on light and dark pages. Each piece of text has the width that it has on the
// terminal, so columns are aligned in every font.
package screenshot

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"image/color"
	"math"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

const (
	// fontSize, cellWidth and cellHeight are in pixels. cellWidth is the advance of most monospaced fonts.
	fontSize   = 14
	cellWidth  = 8.4
	cellHeight = 18
	// baseline is the distance from the top of a cell to the baseline of its text.
	baseline = 14
	// margin is the space between the border and the text.
	margin = 14

	background = "#161b22"
	border     = "#484f58"
	foreground = "#e6edf3"
	prompt     = "#7ee787"
	fonts      = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
)

// darkest is the lowest brightness, of 65,535, of a text that is readable on the background. Darker texts become gray.
const darkest = 28_000

// palette holds the 16 colors of a terminal that are readable on the background.
var palette = [...]string{
	"#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#e6edf3",
	"#8b949e", "#ffa198", "#a5f0ad", "#f2cc60", "#a5d6ff", "#e2c5ff", "#8ee4ea", "#ffffff",
}

// Screen is a terminal: a grid of cells.
type Screen interface {
	Width() int
	Height() int
	// CellAt returns the cell in a column and a row, or nil. Both begin with 0.
	CellAt(column, row int) *uv.Cell
}

// Caption describes a picture.
type Caption struct {
	Title string
	// Description says in a sentence what can be seen.
	Description string
	// Command is the command line that the person typed. The picture begins with it, after a prompt. Empty means that
	// it has scrolled away.
	Command string
}

// SVG draws the screen from its first to its last line with text.
func SVG(screen Screen, caption Caption) []byte {
	first, rows := 0, screen.Height()
	for rows > 0 && blank(screen, rows-1) {
		rows--
	}
	for first < rows && blank(screen, first) {
		first++
	}
	shift := -first // what to add to a row of the screen for its row in the picture
	if caption.Command != "" {
		shift++
	}
	width := 2*margin + int(math.Ceil(float64(screen.Width())*cellWidth))
	height := 2*margin + (rows+shift)*cellHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d"`, width, height)
	b.WriteString(` role="img" aria-labelledby="t d">` + "\n")
	fmt.Fprintf(&b, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", escape(caption.Title),
		escape(caption.Description))
	fmt.Fprintf(&b, `<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n",
		width-1, height-1, background, border)
	fmt.Fprintf(&b, `<g font-family="%s" font-size="%d" fill="%s">`+"\n", fonts, fontSize, foreground)
	if caption.Command != "" {
		write(&b, piece{text: "$", columns: 1, look: ` fill="` + prompt + `"`}, 0)
		write(&b, piece{text: caption.Command, column: 2, columns: ansi.StringWidth(caption.Command), look: ` font-weight="bold"`}, 0)
	}
	for row := first; row < rows; row++ {
		for _, piece := range pieces(screen, row) {
			write(&b, piece, row+shift)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return []byte(b.String())
}

func blank(screen Screen, row int) bool {
	return len(pieces(screen, row)) == 0
}

// piece is text of one look within a row.
type piece struct {
	text            string
	column, columns int
	look            string // attributes of the SVG's element
	ascii           bool
}

// pieces splits a row. Two spaces separate pieces. So do a change of the look and a change between ASCII and other
// characters, because other characters can come from another font.
func pieces(screen Screen, row int) (all []piece) {
	var current piece
	finish := func() {
		current.text = strings.TrimRight(current.text, " ")
		if current.text != "" {
			current.columns = ansi.StringWidth(current.text)
			all = append(all, current)
		}
		current = piece{}
	}
	for column := range screen.Width() {
		cell := screen.CellAt(column, row)
		if cell == nil || cell.Content == " " || cell.Content == "" {
			if strings.HasSuffix(current.text, " ") {
				finish()
			} else if current.text != "" && (cell == nil || cell.Width > 0) {
				current.text += " "
			}
			continue
		}
		look, ascii := lookOf(&cell.Style), cell.Content[0] < 0x80
		if current.text != "" && (look != current.look || ascii != current.ascii) {
			finish()
		}
		if current.text == "" {
			current = piece{column: column, look: look, ascii: ascii}
		}
		current.text += cell.Content
	}
	finish()
	return all
}

// lookOf returns the attributes of SVG for a style. Backgrounds are not drawn.
func lookOf(style *uv.Style) string {
	look := ""
	if fill := hex(style.Fg); fill != "" {
		look += ` fill="` + fill + `"`
	}
	if style.Attrs&uv.AttrBold != 0 {
		look += ` font-weight="bold"`
	}
	if style.Attrs&uv.AttrFaint != 0 {
		look += ` fill-opacity=".7"`
	}
	return look
}

// hex returns a color as SVG writes it, or "" for the default color. It replaces colors that are too dark.
func hex(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return ""
	case ansi.BasicColor:
		return palette[int(c)%len(palette)]
	case ansi.IndexedColor:
		if int(c) < len(palette) {
			return palette[c]
		}
	}
	red, green, blue, _ := c.RGBA()
	if 30*red+59*green+11*blue < 100*darkest {
		return palette[8]
	}
	return fmt.Sprintf("#%02x%02x%02x", red>>8, green>>8, blue>>8)
}

// write writes a piece with the width that it has on the terminal.
func write(b *strings.Builder, p piece, row int) {
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		margin+float64(p.column)*cellWidth, margin+row*cellHeight+baseline, float64(p.columns)*cellWidth, p.look,
		escape(p.text))
}

// escape returns text as the content of an XML element.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder returns no error
	return cmp.Or(b.String(), " ")
}
