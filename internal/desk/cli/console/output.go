package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Format is the format of a command's result.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
)

var _ pflag.Value = (*Format)(nil)

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "text|json" }

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	switch format := Format(value); format {
	case Text, JSON:
		*f = format
		return nil
	}
	return errors.New("be text or json")
}

// Print writes value as JSON if the format is JSON. If not, Print calls text, which writes the result for people.
func (c *Console) Print(value any, text func(w io.Writer)) error {
	switch c.Output {
	case JSON:
		encoder := json.NewEncoder(c.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case Text:
		text(c.Stdout)
	}
	return nil
}

// PrintResult prints the result of an operation as Print does. If the operation has failed, PrintResult returns its
// error.
func PrintResult[T any](c *Console, result T, err error, text func(w io.Writer, result T)) error {
	if err != nil {
		return err
	}
	return c.Print(result, func(w io.Writer) { text(w, result) })
}

// PrintFirst prints the first rows of a list, and says how many more there are.
func PrintFirst[T any](c *Console, rows []T, limit int, text func(w io.Writer, shown []T)) error {
	shown := rows[:min(limit, len(rows))]
	return c.Print(shown, func(w io.Writer) {
		text(w, shown)
		WriteMore(w, len(rows)-len(shown))
	})
}

// WriteMore says how many more rows a list has than are shown.
func WriteMore(w io.Writer, more int) {
	if more > 0 {
		_, _ = fmt.Fprintf(w, "%d more; see them with --limit\n", more)
	}
}

// Say prints a line for people to stdout. If stdout holds JSON, Say prints to stderr.
func (c *Console) Say(format string, args ...any) {
	w := c.Stdout
	if c.Output == JSON {
		w = c.Stderr
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// Table writes rows in aligned columns.
func Table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// CutTable writes rows in aligned columns, each as a line of at most width columns.
func CutTable(w io.Writer, rows [][]string, width int) {
	var b strings.Builder
	Table(&b, rows)
	for line := range strings.Lines(b.String()) {
		_, _ = fmt.Fprintln(w, Cut(strings.TrimRight(line, " \n"), width))
	}
}

// Printable makes text from an agent safe for a terminal. The result is one line without control characters, and has no
// more characters than limit.
func Printable(text string, limit int) string { return plaintext.Cut(plaintext.Line(text), limit) }

// PrintableError makes an error safe for a terminal, because the error can contain agents' words.
func PrintableError(err error) error { return errors.New(Printable(err.Error(), 1_000)) }
