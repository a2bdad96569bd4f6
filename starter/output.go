package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/pflag"
)

// outputFormat is how a command prints its result.
type outputFormat string

// The formats.
const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

var _ pflag.Value = (*outputFormat)(nil)

// String implements pflag.Value.
func (f *outputFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *outputFormat) Type() string { return "text|json" }

// Set implements pflag.Value.
func (f *outputFormat) Set(value string) error {
	switch format := outputFormat(value); format {
	case outputText, outputJSON:
		*f = format
		return nil
	}
	return errors.New("be text or json")
}

// print writes value as JSON, or has text write it for people.
func (a *app) print(value any, text func(w io.Writer)) error {
	switch a.output {
	case outputJSON:
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case outputText:
		text(a.stdout)
	}
	return nil
}

// say tells a person what goes on. It goes to stderr when stdout is for a machine.
func (a *app) say(format string, args ...any) {
	w := a.stdout
	if a.output == outputJSON {
		w = a.stderr
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// table writes rows in aligned columns.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// printable makes text from an agent safe for a terminal: one line, no control
// characters, at most limit characters.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
