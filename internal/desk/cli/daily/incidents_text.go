package daily

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// incidentTableWidth is the minimum width of the table in columns. On a narrower terminal, each incident has several
// lines.
const incidentTableWidth = 140

// maxSummary limits the summary of an incident in a list, in characters.
const maxSummary = 120

func writeIncidents(
	w io.Writer, clock console.Clock, width int, incidents []operations.Incident, f operations.IncidentFilter,
) {
	switch {
	case len(incidents) > 0 && (width == console.AnyWidth || width >= incidentTableWidth):
		writeIncidentTable(w, clock, width, incidents)
	case len(incidents) > 0:
		writeIncidentBlocks(w, clock, width, incidents)
	case f.All || f.State != "" || f.Service != "":
		_, _ = fmt.Fprintln(w, "No incidents.")
	default:
		_, _ = fmt.Fprintln(w, "No open incidents.")
	}
}

func writeIncidentTable(w io.Writer, clock console.Clock, width int, incidents []operations.Incident) {
	lines := [][]string{{
		"INCIDENT", "STATE", "SEVERITY", "SERVICES", "KIND", "OPENED", "SEEN", "RETURNED", "COST",
		"CHAIN", "WHAT",
	}}
	for i := range incidents {
		one := &incidents[i]
		lines = append(lines, []string{
			one.ID, incidentState(one), string(one.Severity), servicesOf(one, 60),
			cmp.Or(console.Printable(one.Kind, 30), "-"), ago(clock, one.OpenedAt), ago(clock, one.LastSeenAt),
			fmt.Sprint(one.Returned), one.CostText(), cmp.Or(console.Printable(one.Handler, 60), "-"),
			console.Printable(one.Summary, maxSummary),
		})
	}
	console.CutTable(w, lines, width)
}

// incidentState returns the state of an incident, and whether somebody knows of it.
func incidentState(incident *operations.Incident) string {
	switch {
	case incident.Acknowledged == nil || incident.State == escalation.IncidentResolved:
		return string(incident.State)
	case incident.Acknowledged.Until.IsZero():
		return string(incident.State) + ", acknowledged"
	default:
		return string(incident.State) + ", snoozed"
	}
}

func writeIncidentBlocks(w io.Writer, clock console.Clock, width int, incidents []operations.Incident) {
	for i := range incidents {
		one := &incidents[i]
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w, console.Cut(fmt.Sprintf("%s  %s, %s", one.ID, one.State, one.Severity), width))
		figures := fmt.Sprintf("opened %s, seen %s, returned %s, %s",
			ago(clock, one.OpenedAt), ago(clock, one.LastSeenAt), times(one.Returned), one.CostText())
		fault := servicesOf(one, 200)
		if one.Kind != "" {
			fault += ": " + console.Printable(one.Kind, 100)
		}
		texts := []string{fault, figures, console.Printable(one.Summary, maxSummary)}
		if one.Acknowledged != nil {
			texts = append(texts, knownBy(clock, one.Acknowledged))
		}
		if one.Handler != "" {
			texts = append(texts, "chain "+console.PrintableID(one.Handler))
		}
		for _, text := range texts {
			console.WriteLabelled(w, "  ", text, width)
		}
	}
}

func servicesOf(incident *operations.Incident, limit int) string {
	if len(incident.Services) == 0 {
		return "-"
	}
	return console.Printable(strings.Join(incident.Services, ", "), limit)
}

// ago returns how long ago t was.
func ago(clock console.Clock, t time.Time) string { return plaintext.Span(clock().Sub(t)) + " ago" }

// times returns in words how often something has happened.
func times(count int) string {
	switch count {
	case 0:
		return "never"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", count)
	}
}
