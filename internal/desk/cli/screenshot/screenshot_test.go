package screenshot

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"
)

// drawing holds the parts of an SVG that the tests look at.
type drawing struct {
	Height string `xml:"height,attr"`
	Title  string `xml:"title"`
	Desc   string `xml:"desc"`
	Texts  []struct {
		X       string `xml:"x,attr"`
		Y       string `xml:"y,attr"`
		Length  string `xml:"textLength,attr"`
		Fill    string `xml:"fill,attr"`
		Opacity string `xml:"fill-opacity,attr"`
		Weight  string `xml:"font-weight,attr"`
		Text    string `xml:",chardata"`
	} `xml:"g>text"`
}

func draw(t *testing.T, printed string) drawing {
	t.Helper()
	emulator := vt.NewEmulator(40, 10)
	_, err := emulator.WriteString(strings.ReplaceAll(printed, "\n", "\r\n"))
	require.NoError(t, err)
	var d drawing
	svg := SVG(emulator, Caption{Title: "A & B", Description: "<two>", Command: "claudeops chain"})
	require.NoError(t, xml.Unmarshal(svg, &d), string(svg))
	require.Contains(t, string(svg), `viewBox="0 0 364 `)
	return d
}

func TestTextKeepsItsPlace(t *testing.T) {
	t.Parallel()
	d := draw(t, "a <b> c   d\n\n└── é x\n\n")
	require.Equal(t, "A & B", d.Title)
	require.Equal(t, "<two>", d.Desc)
	var placed []string
	for _, text := range d.Texts {
		placed = append(placed, text.X+" "+text.Y+" "+text.Length+" "+text.Text)
	}
	require.Equal(t, []string{
		"14.0 28 8.4 $", "30.8 28 126.0 claudeops chain",
		"14.0 46 58.8 a <b> c", "98.0 46 8.4 d",
		"14.0 82 42.0 └── é", "64.4 82 8.4 x",
	}, placed)
}

// TestEmptyRows checks that empty rows at both ends are cut, and that no prompt is drawn if the command has scrolled
// away.
func TestEmptyRows(t *testing.T) {
	t.Parallel()
	emulator := vt.NewEmulator(10, 10)
	_, err := emulator.WriteString("\r\n\r\none\r\n\r\ntwo\r\n")
	require.NoError(t, err)
	var d drawing
	require.NoError(t, xml.Unmarshal(SVG(emulator, Caption{}), &d))
	require.Len(t, d.Texts, 2)
	require.Equal(t, "28", d.Texts[0].Y)
	require.Equal(t, "64", d.Texts[1].Y)
	require.Equal(t, "82", d.Height)
}

func TestLooks(t *testing.T) {
	t.Parallel()
	d := draw(t, "\x1b[33mgate\x1b[0m \x1b[1mhead\x1b[0m \x1b[2mfaint\x1b[0m \x1b[38;5;208mother\x1b[0m \x1b[38;2;201;202;203mtrue\x1b[0m \x1b[38;2;9;9;9mdark\x1b[0m plain")
	texts := d.Texts[2:]
	require.Len(t, texts, 7)
	require.Equal(t, "#e3b341", texts[0].Fill)
	require.Equal(t, "bold", texts[1].Weight)
	require.Equal(t, ".7", texts[2].Opacity)
	require.Equal(t, "#ff8700", texts[3].Fill)
	require.Equal(t, "#c9cacb", texts[4].Fill)
	require.Equal(t, "#8b949e", texts[5].Fill)
	require.Empty(t, texts[6].Fill+texts[6].Opacity+texts[6].Weight)
}
