package main

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

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// gateRow is one chain that waits for a person.
type gateRow struct {
	ChainID   string    `json:"chain_id"`
	Services  []string  `json:"services,omitempty"`
	CostUSD   float64   `json:"cost_usd"`
	StartedAt time.Time `json:"started_at"`
	// Gate is missing if nobody answered for the chain; Problem says why.
	Gate       *escalation.Gate `json:"gate,omitempty"`
	AgeSeconds int64            `json:"age_seconds,omitempty"`
	Problem    string           `json:"problem,omitempty"`
}

// since is when the row's gate was opened, as far as that is known.
func (r gateRow) since() time.Time {
	if r.Gate != nil {
		return r.Gate.OpenedAt
	}
	return r.StartedAt
}

const (
	// maxAsked is how many chains are asked for their gates at most.
	maxAsked = 2_000
	// inboxTimeout bounds the time for all questions, so that chains whose workers are gone do not add up.
	inboxTimeout = time.Minute
)

// inbox lists the open gates. When a gate was opened only its chain knows, whose run may be of any age,
// so all are asked before the list is cut.
func (a *app) inbox(ctx context.Context, limit int) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := listChains(ctx, c, openGates(), math.MaxInt)
	if err != nil {
		return err
	}
	slices.SortStableFunc(waiting, func(x, y chainRow) int { return x.StartedAt.Compare(y.StartedAt) })
	open := a.askGates(ctx, c, waiting[:min(maxAsked, len(waiting))])
	shown := open[:min(limit, len(open))]
	return a.print(shown, func(w io.Writer) {
		a.writeInbox(w, shown)
		writeLeftOut(w, len(open)-len(shown), len(waiting))
	})
}

// writeLeftOut says what the list lacks: open gates beyond its limit, and chains beyond those that
// are asked.
func writeLeftOut(w io.Writer, more, waiting int) {
	if more > 0 {
		_, _ = fmt.Fprintf(w, "%d more; see them with --limit\n", more)
	}
	if waiting > maxAsked {
		_, _ = fmt.Fprintf(w, "%d chains wait, and only %d of them were asked: there may be older gates\n", waiting, maxAsked)
	}
}

// openGates is the list filter for chains that wait at a gate.
func openGates() string {
	return strings.Join([]string{
		"WorkflowType = " + quote(workflows.ChainWorkflow),
		workflows.GateAttribute.GetName() + " = " + quote(openGate),
		"ExecutionStatus = 'Running'",
	}, " AND ")
}

// askGates asks the chains for their gates, a few at a time, and returns them with the oldest gate
// first. A chain whose gate was closed since it was listed is left out.
func (a *app) askGates(ctx context.Context, c connection, chains []chainRow) []gateRow {
	ctx, cancel := context.WithTimeout(ctx, inboxTimeout)
	defer cancel()
	rows := make([]gateRow, len(chains))
	var asking errgroup.Group
	asking.SetLimit(maxQueries)
	for i, chain := range chains {
		asking.Go(func() error {
			rows[i] = a.askGate(ctx, c, chain)
			return nil
		})
	}
	_ = asking.Wait() // no question returns an error
	rows = slices.DeleteFunc(rows, func(row gateRow) bool { return row.Gate == nil && row.Problem == "" })
	slices.SortStableFunc(rows, func(x, y gateRow) int {
		return cmp.Or(x.since().Compare(y.since()), strings.Compare(x.ChainID, y.ChainID))
	})
	return rows
}

func (a *app) askGate(ctx context.Context, c connection, chain chainRow) gateRow {
	row := gateRow{ChainID: chain.ID, Services: chain.Services, CostUSD: chain.CostUSD, StartedAt: chain.StartedAt}
	gate, err := a.queryGate(ctx, c, chain.ID)
	switch {
	case err == nil:
		row.Gate, row.CostUSD, row.AgeSeconds = gate, gate.CostUSD, int64(a.now().Sub(gate.OpenedAt).Seconds())
	case isUnanswered(err):
		row.Problem = "no worker answered for it"
	case !errors.Is(err, errNoGate) && !errors.Is(err, errNoSuchChain):
		row.Problem = err.Error()
	}
	return row
}

// tableWidth is from how many columns on a table can be read; less are for one field below the other.
const tableWidth = 80

func (a *app) writeInbox(w io.Writer, rows []gateRow) {
	width := a.width()
	switch {
	case len(rows) == 0:
		_, _ = fmt.Fprintln(w, "No chain waits for a person.")
		return
	case width == anyWidth || width >= tableWidth:
		a.writeGateTable(w, rows, width)
	default:
		a.writeGateBlocks(w, rows, width)
	}
	_, _ = fmt.Fprintln(w, "\nAnswer one with: starter gate CHAIN")
}

func (a *app) writeGateTable(w io.Writer, rows []gateRow, width int) {
	lines := [][]string{{"CHAIN", "TIER", "AGE", "COST", "WHY"}}
	for _, row := range rows {
		lines = append(lines, []string{printable(row.ChainID, 60), tierOf(row), a.ageOf(row), dollars(row.CostUSD), why(row)})
	}
	var b strings.Builder
	table(&b, lines)
	for line := range strings.Lines(b.String()) {
		_, _ = fmt.Fprintln(w, cut(strings.TrimRight(line, " \n"), width))
	}
}

func (a *app) writeGateBlocks(w io.Writer, rows []gateRow, width int) {
	for i, row := range rows {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w, printable(row.ChainID, 200))
		_, _ = fmt.Fprintln(w, cut(fmt.Sprintf("  tier %s, %s old, %s", tierOf(row), a.ageOf(row), dollars(row.CostUSD)), width))
		for _, line := range labelled("  ", why(row), width) {
			_, _ = fmt.Fprintln(w, line)
		}
	}
}

func tierOf(row gateRow) string {
	if row.Gate == nil {
		return "?"
	}
	return fmt.Sprint(int(row.Gate.Tier))
}

func (a *app) ageOf(row gateRow) string {
	if row.Gate == nil {
		return "?"
	}
	return span(a.now().Sub(row.Gate.OpenedAt))
}

// why says what a gate was opened for.
func why(row gateRow) string {
	if row.Gate == nil {
		return printable(row.Problem, 200)
	}
	return reasonOf(*row.Gate)
}

// reasonOf is a gate's source and reason in a line.
func reasonOf(gate escalation.Gate) string {
	return fmt.Sprintf("%s: %s", gate.Source, printable(gate.Reason, 300))
}

// span is a time that matters by its two largest units only, such as 2h5m or 3d4h.
func span(d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours()), int(d.Minutes())
	switch {
	case days >= 2:
		return fmt.Sprintf("%dd%dh", days, hours%24)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	default:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
}
