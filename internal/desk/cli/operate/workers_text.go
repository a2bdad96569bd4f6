package operate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxName limits the length of a printed name, in characters.
const maxName = 60

// writeFleet writes the workers and the versions as two tables. It warns if no worker can begin new chains.
func writeFleet(w io.Writer, clock console.Clock, queue string, fleet Fleet) {
	if len(fleet.Workers) == 0 {
		_, _ = fmt.Fprintf(w, "No workers on task queue %s.\n", console.Printable(queue, 200))
	} else {
		rows := [][]string{{"HOST", "PID", "VERSION", "STATE", "AGENTS", "LAST SEEN", "QUEUES"}}
		for i := range fleet.Workers {
			rows = append(rows, rowOf(clock, &fleet.Workers[i]))
		}
		console.Table(w, rows)
	}
	if len(fleet.Versions) == 0 {
		return
	}
	rows := [][]string{{"DEPLOYMENT", "BUILD ID", "STATE"}}
	for _, version := range fleet.Versions {
		state := string(version.State)
		if version.State == Ramping {
			state = fmt.Sprintf("%s (%g%% of new chains)", state, version.Percent)
		}
		rows = append(rows, []string{printable(version.Deployment), printable(version.BuildID), state})
	}
	_, _ = fmt.Fprintln(w)
	console.Table(w, rows)
	if !slices.ContainsFunc(fleet.Versions, func(v Version) bool { return v.State == Current }) {
		_, _ = fmt.Fprintln(w, "\nNo version is current, so only workers without versions begin chains: see "+
			"`claudeops workers promote`.")
	}
}

func rowOf(clock console.Clock, one *Worker) []string {
	agents, pid := "-", "-"
	if one.Agents != nil {
		agents = fmt.Sprintf("%d of %d", *one.Agents, *one.MaxAgents)
	}
	if one.PID != 0 {
		pid = fmt.Sprint(one.PID)
	}
	version := one.Version
	if one.BuildID != "" && one.BuildID != one.Version {
		version = strings.TrimSpace(version + " (" + one.BuildID + ")")
	}
	seen := plaintext.Span(clock().Sub(one.LastSeen)) + " ago"
	return []string{
		printable(one.Host), pid, printable(version), string(one.State), agents, seen,
		printable(strings.Join(one.Queues, ", ")),
	}
}

// printable returns a name for a cell of a table.
func printable(name string) string {
	if name == "" {
		return "-"
	}
	return console.Printable(name, maxName)
}
