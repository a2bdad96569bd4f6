package console

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Terminal is the terminal of the person who runs the command.
type Terminal struct {
	in, out *os.File
}

// Terminal returns the terminal of the program. It returns false in three cases: stdin or stdout is not a terminal, the
// terminal cannot show screens (TERM=dumb), or the output is JSON.
func (c *Console) Terminal() (Terminal, bool) {
	in, typed := c.Stdin.(*os.File)
	out, seen := c.Stdout.(*os.File)
	able := typed && seen && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) &&
		Variable(c.Environ, "TERM") != "dumb" && c.Output == Text
	return Terminal{in, out}, able
}

// OnTerminal reports whether stdout is a terminal. Output to a terminal is not stored.
func (c *Console) OnTerminal() bool { return IsTerminal(c.Stdout) }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Options returns the options for a screen on the terminal. The screen installs no signal handler, because main
// handles signals.
func (t Terminal) Options(ctx context.Context, environ []string) []tea.ProgramOption {
	return []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(t.in), tea.WithOutput(t.out),
		tea.WithEnvironment(environ), tea.WithoutSignalHandler(),
	}
}

// The styles of screens. They only add emphasis. The text has the same meaning without them.
var (
	HeadStyle  = lipgloss.NewStyle().Bold(true)
	FaintStyle = lipgloss.NewStyle().Faint(true)
	GateStyle  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// FullScreen shows lines on a screen with the given height in rows. If there are too many lines, FullScreen omits lines
// at the beginning, because the question to the person is at the end. When the program ends, the terminal shows its
// earlier content again.
func FullScreen(lines []string, height int) tea.View {
	view := tea.NewView(strings.Join(lines[max(len(lines)-height, 0):], "\n"))
	view.AltScreen = true
	return view
}

// AnyWidth is the width of output that does not go to a terminal. Such output can have lines of any length.
const AnyWidth = 0

// Width returns the width of the terminal in columns; AnyWidth if stdout is not a terminal.
func (c *Console) Width() int {
	out, ok := c.Stdout.(*os.File)
	if !ok {
		return AnyWidth
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return AnyWidth
	}
	return width
}

// Cut shortens a line to width columns.
func Cut(line string, width int) string {
	if width == AnyWidth {
		return line
	}
	return ansi.Truncate(line, width, "…")
}

// minText is the minimum width in columns of a text beside its label. It applies even if the terminal is narrower.
const minText = 16

// WriteLabelled writes the lines of Labelled.
func WriteLabelled(w io.Writer, label, text string, width int) {
	for _, line := range Labelled(label, text, width) {
		_, _ = fmt.Fprintln(w, line)
	}
}

// Labelled returns text as lines of at most width columns, with label before the text of the first line.
func Labelled(label, text string, width int) []string {
	lines := []string{text}
	if width != AnyWidth {
		lines = strings.Split(ansi.Wrap(text, max(width-ansi.StringWidth(label), minText), ""), "\n")
	}
	indent := strings.Repeat(" ", ansi.StringWidth(label))
	for i := range lines {
		if i == 0 {
			lines[i] = label + lines[i]
		} else {
			lines[i] = indent + lines[i]
		}
	}
	return lines
}
