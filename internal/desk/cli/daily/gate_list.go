package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// listGates lists the open gates, the most severe first.
func (a *app) listGates(ctx context.Context, limit int) error {
	open, err := a.Operations.Gates.List(ctx)
	if err != nil {
		return err
	}
	shown := open.Gates[:min(limit, len(open.Gates))]
	return a.Print(shown, func(w io.Writer) {
		a.writeGates(w, shown)
		writeLeftOut(w, len(open.Gates)-len(shown), open)
	})
}

// writeLeftOut says how many more gates are open than the list shows. It also warns if more chains wait at gates than
// were asked. Without a query, the age of a chain's gate is unknown.
func writeLeftOut(w io.Writer, more int, open operations.GateList) {
	console.WriteMore(w, more)
	if open.Waiting > open.Asked {
		_, _ = fmt.Fprintf(w, "%d chains wait, and only %d of them were asked: there may be older gates\n",
			open.Waiting, open.Asked)
	}
}

// gateTableWidth is the minimum width of the table in columns. On a narrower terminal, each field has a line of its
// own.
const gateTableWidth = 80

func (a *app) writeGates(w io.Writer, rows []operations.GateRow) {
	width := a.Width()
	switch {
	case len(rows) == 0:
		_, _ = fmt.Fprintln(w, "No chain waits for a person.")
		return
	case width == console.AnyWidth || width >= gateTableWidth:
		a.writeGateTable(w, rows, width)
	default:
		a.writeGateBlocks(w, rows, width)
	}
	_, _ = fmt.Fprintln(w, "\nAnswer one with: claudeops gate CHAIN")
}

func (a *app) writeGateTable(w io.Writer, rows []operations.GateRow, width int) {
	lines := [][]string{{"CHAIN", "SEVERITY", "TIER", "AGE", "COST", "WRONG"}}
	for _, row := range rows {
		lines = append(lines, []string{
			console.Printable(row.ChainID, 60), severityOf(row), tierOf(row), a.ageOf(row), row.CostText(), why(row),
		})
	}
	console.CutTable(w, lines, width)
}

func (a *app) writeGateBlocks(w io.Writer, rows []operations.GateRow, width int) {
	for i, row := range rows {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w, console.Printable(row.ChainID, 200))
		place := tierOf(row)
		if row.Gate == nil || row.Gate.Phase == "" {
			place = "tier " + place
		}
		line := fmt.Sprintf("  %s, %s, %s old, %s", severityOf(row), place, a.ageOf(row), row.CostText())
		_, _ = fmt.Fprintln(w, console.Cut(line, width))
		console.WriteLabelled(w, "  ", why(row), width)
	}
}

func severityOf(row operations.GateRow) string {
	if row.Gate == nil {
		return "?"
	}
	return string(row.Gate.Severity())
}

// tierOf returns the tier of a gate, or the phase of a plan at which it is.
func tierOf(row operations.GateRow) string {
	if row.Gate == nil {
		return "?"
	}
	if row.Gate.Phase != "" {
		return console.Printable(operations.GateSubject(*row.Gate), 40)
	}
	return fmt.Sprint(int(row.Gate.Tier))
}

func (a *app) ageOf(row operations.GateRow) string {
	if row.Gate == nil {
		return "?"
	}
	return plaintext.Span(a.Clock().Sub(row.Gate.OpenedAt))
}

// why returns what is wrong.
func why(row operations.GateRow) string {
	if row.Gate == nil {
		return console.Printable(row.Problem, 200)
	}
	return console.Printable(row.Gate.Headline(), 300)
}
