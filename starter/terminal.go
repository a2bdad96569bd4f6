package main

import (
	"context"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// terminal is where a person sits: what they type and what they see.
type terminal struct {
	in, out *os.File
}

// terminal returns the terminal that the program was started at. It is none if what is typed or
// what is printed comes from or goes elsewhere, or if it can do no more than lines.
func (a *app) terminal() (terminal, bool) {
	in, typed := a.stdin.(*os.File)
	out, seen := a.stdout.(*os.File)
	able := typed && seen && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) &&
		variable(a.environ, "TERM") != "dumb" && a.output == outputText
	return terminal{in, out}, able
}

// seen reports whether what is printed goes to a terminal, and so is kept nowhere.
func (a *app) seen() bool {
	out, ok := a.stdout.(*os.File)
	return ok && term.IsTerminal(int(out.Fd()))
}

// options are those of a program on the terminal. The signals are main's.
func (t terminal) options(ctx context.Context, environ []string) []tea.ProgramOption {
	return []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(t.in), tea.WithOutput(t.out),
		tea.WithEnvironment(environ), tea.WithoutSignalHandler(),
	}
}

// The few styles of screens. What they say is said in words, too.
var (
	headStyle  = lipgloss.NewStyle().Bold(true)
	faintStyle = lipgloss.NewStyle().Faint(true)
	gateStyle  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// fullScreen shows lines on the whole of a screen that has height rows. Where that is too few, the
// beginning is left out: what is asked is at the end. The terminal shows what it did before when the
// program has ended.
func fullScreen(lines []string, height int) tea.View {
	view := tea.NewView(strings.Join(lines[max(len(lines)-height, 0):], "\n"))
	view.AltScreen = true
	return view
}

// anyWidth is the width of what is no terminal: lines are as long as they are.
const anyWidth = 0

// width is how many columns what is printed may have.
func (a *app) width() int {
	out, ok := a.stdout.(*os.File)
	if !ok {
		return anyWidth
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return anyWidth
	}
	return width
}

// cut shortens a line to width columns.
func cut(line string, width int) string {
	if width == anyWidth {
		return line
	}
	return ansi.Truncate(line, width, "…")
}

// minText is how many columns text gets beside its label, however narrow the terminal is.
const minText = 16

// labelled returns text as lines of at most width columns, the first of them behind label.
func labelled(label, text string, width int) []string {
	lines := []string{text}
	if width != anyWidth {
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
