package gates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/chainview"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// Row is one waiting chain in the list.
type Row struct {
	ChainID   string    `json:"chain_id"`
	Services  []string  `json:"services,omitempty"`
	CostUSD   float64   `json:"cost_usd"`
	StartedAt time.Time `json:"started_at"`
	// Gate is nil if the chain did not answer the query. Problem then gives the reason.
	Gate       *escalation.Gate `json:"gate,omitempty"`
	AgeSeconds int64            `json:"age_seconds,omitempty"`
	Problem    string           `json:"problem,omitempty"`
}

// since returns the time at which the row's gate was opened. If the chain did not answer, since returns the time at
// which the chain started.
func (r Row) since() time.Time {
	if r.Gate != nil {
		return r.Gate.OpenedAt
	}
	return r.StartedAt
}

const (
	// maxAsked limits how many chains are queried for their gates.
	maxAsked = 2_000
	// listTimeout limits the time for all queries together. Without a worker, each query would wait for the whole time
	// Patience.
	listTimeout = time.Minute
)

// list lists the open gates, oldest first. Only the workflow of a chain knows when its gate was opened. So list queries
// all waiting chains, sorts their gates, and then omits the gates beyond limit.
func (a *app) list(ctx context.Context, limit int) error {
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := chainclient.List(ctx, c, openGates(), math.MaxInt)
	if err != nil {
		return err
	}
	slices.SortStableFunc(waiting, func(x, y chainclient.Row) int { return x.StartedAt.Compare(y.StartedAt) })
	open := a.askGates(ctx, c, waiting[:min(maxAsked, len(waiting))])
	shown := open[:min(limit, len(open))]
	return a.Print(shown, func(w io.Writer) {
		a.writeList(w, shown)
		writeLeftOut(w, len(open)-len(shown), len(waiting))
	})
}

// writeLeftOut says how many more gates are open than the list shows. It also warns if more chains wait at gates than
// list has queried. Without a query, the age of a chain's gate is unknown.
func writeLeftOut(w io.Writer, more, waiting int) {
	if more > 0 {
		_, _ = fmt.Fprintf(w, "%d more; see them with --limit\n", more)
	}
	if waiting > maxAsked {
		_, _ = fmt.Fprintf(w, "%d chains wait, and only %d of them were asked: there may be older gates\n", waiting, maxAsked)
	}
}

// openGates returns Temporal's list filter for chains that wait at a gate.
func openGates() string {
	return strings.Join([]string{
		"WorkflowType = " + chainclient.Quote(workflows.ChainWorkflow),
		workflows.GateAttribute.GetName() + " = " + chainclient.Quote(chainclient.OpenGate),
		"ExecutionStatus = 'Running'",
	}, " AND ")
}

// askGates queries the chains for their gates, a few chains at a time. It returns the gates, oldest first. It omits
// chains whose gate was closed in the meantime.
func (a *app) askGates(ctx context.Context, c console.Connection, chains []chainclient.Row) []Row {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rows := make([]Row, len(chains))
	var asking errgroup.Group
	asking.SetLimit(chainclient.MaxQueries)
	for i, chain := range chains {
		asking.Go(func() error {
			rows[i] = a.askGate(ctx, c, chain)
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	rows = slices.DeleteFunc(rows, func(row Row) bool { return row.Gate == nil && row.Problem == "" })
	slices.SortStableFunc(rows, func(x, y Row) int {
		return cmp.Or(x.since().Compare(y.since()), strings.Compare(x.ChainID, y.ChainID))
	})
	return rows
}

func (a *app) askGate(ctx context.Context, c console.Connection, chain chainclient.Row) Row {
	row := Row{ChainID: chain.ID, Services: chain.Services, CostUSD: chain.CostUSD, StartedAt: chain.StartedAt}
	gate, err := chainclient.QueryGate(ctx, c, a.Patience, chain.ID)
	switch {
	case err == nil:
		row.Gate, row.CostUSD, row.AgeSeconds = gate, gate.CostUSD, int64(a.Clock().Sub(gate.OpenedAt).Seconds())
	case chainclient.IsUnanswered(err):
		row.Problem = "no worker answered for it"
	case !errors.Is(err, chainclient.ErrNoGate) && !errors.Is(err, chainclient.ErrNoSuchChain):
		row.Problem = err.Error()
	}
	return row
}

// tableWidth is the minimum width of the table in columns. On a narrower terminal, each field has a line of its own.
const tableWidth = 80

func (a *app) writeList(w io.Writer, rows []Row) {
	width := a.Width()
	switch {
	case len(rows) == 0:
		_, _ = fmt.Fprintln(w, "No chain waits for a person.")
		return
	case width == console.AnyWidth || width >= tableWidth:
		a.writeTable(w, rows, width)
	default:
		a.writeBlocks(w, rows, width)
	}
	_, _ = fmt.Fprintln(w, "\nAnswer one with: starter gate CHAIN")
}

func (a *app) writeTable(w io.Writer, rows []Row, width int) {
	lines := [][]string{{"CHAIN", "TIER", "AGE", "COST", "WHY"}}
	for _, row := range rows {
		lines = append(lines, []string{
			console.Printable(row.ChainID, 60), tierOf(row), a.ageOf(row), console.Dollars(row.CostUSD), why(row),
		})
	}
	var b strings.Builder
	console.Table(&b, lines)
	for line := range strings.Lines(b.String()) {
		_, _ = fmt.Fprintln(w, console.Cut(strings.TrimRight(line, " \n"), width))
	}
}

func (a *app) writeBlocks(w io.Writer, rows []Row, width int) {
	for i, row := range rows {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w, console.Printable(row.ChainID, 200))
		line := fmt.Sprintf("  tier %s, %s old, %s", tierOf(row), a.ageOf(row), console.Dollars(row.CostUSD))
		_, _ = fmt.Fprintln(w, console.Cut(line, width))
		for _, line := range console.Labelled("  ", why(row), width) {
			_, _ = fmt.Fprintln(w, line)
		}
	}
}

func tierOf(row Row) string {
	if row.Gate == nil {
		return "?"
	}
	return fmt.Sprint(int(row.Gate.Tier))
}

func (a *app) ageOf(row Row) string {
	if row.Gate == nil {
		return "?"
	}
	return console.Span(a.Clock().Sub(row.Gate.OpenedAt))
}

// why returns why a gate was opened.
func why(row Row) string {
	if row.Gate == nil {
		return console.Printable(row.Problem, 200)
	}
	return chainview.ReasonOf(*row.Gate)
}
