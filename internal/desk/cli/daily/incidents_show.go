package daily

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) showIncidentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show an incident, what chains did about it, and who resolved it",
		Long: "Show shows one incident, named by its ID (incident-7) or its number (7), with the chains that met it: " +
			"the highest\ntier that may have changed something, the outcome, what was tried and the cost. Of the " +
			"chains that have ended,\n" +
			fmt.Sprintf("%d are listed, and those on which decisions depend; of those that wait the first %d.\n\n",
				escalation.MaxIncidentChains, escalation.MaxActiveChains) +
			"In JSON: id, services, kind, summary, severity, state, opened_at, last_seen_at, returned_at, worse_at,\n" +
			"resolved_at, resolved_by (a chain or a person), resolved_reason, resolution (repaired, healed or " +
			"closed),\nreturned (how often it came back), returns (the times at which it came back after a repair), " +
			"cost_usd, acknowledged\n(actor, at, until, note), handler (the chain that takes care of it) and chains, " +
			"each with chain_id,\nstatus (looking, repairing, waiting or ended), rule and reason, until (the end of " +
			"the wait), outcome, at (of the status), max_tier (the\nhighest tier that it was allowed), tier, did, " +
			"since and cost_usd. Empty fields are left out.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.showIncident(cmd.Context(), args[0]) },
	}
}

func (a *app) showIncident(ctx context.Context, given string) error {
	incident, err := a.Operations.Incidents.Get(ctx, given)
	return console.PrintResult(a.Console, incident, err, func(w io.Writer, incident operations.Incident) {
		writeIncident(w, a.Clock, a.Width(), &incident)
	})
}

func writeIncident(w io.Writer, clock console.Clock, width int, incident *operations.Incident) {
	write := func(label, text string) { console.WriteLabelled(w, fmt.Sprintf("%-10s", label), text, width) }
	write("Incident", incident.ID)
	write("State", escalation.InWords(incident.State))
	write("Severity", string(incident.Severity))
	write("Services", servicesOf(incident, 600))
	if incident.Kind != "" {
		write("Kind", console.Printable(incident.Kind, 100))
	}
	write("What", console.Printable(incident.Summary, 600))
	write("Opened", moment(clock, incident.OpenedAt))
	write("Seen", moment(clock, incident.LastSeenAt))
	if !incident.WorseAt.IsZero() {
		write("Worse", "since "+moment(clock, incident.WorseAt))
	}
	if incident.Returned > 0 {
		write("Returned", returnsOf(clock, incident))
	}
	if incident.Acknowledged != nil {
		write("Known", knownBy(clock, incident.Acknowledged))
	}
	if incident.Handler != "" {
		write("Chain", handlerOf(incident))
	}
	if !incident.ResolvedAt.IsZero() {
		write("Resolved", resolutionOf(clock, incident))
	}
	write("Cost", incident.CostText())
	if len(incident.Chains) > 0 {
		_, _ = fmt.Fprintln(w, "\nChains, oldest first:")
	}
	for i := range incident.Chains {
		writeIncidentChain(w, clock, width, &incident.Chains[i])
	}
}

// handlerOf names the chain that handles the incident, and the chain's tier or state.
func handlerOf(incident *operations.Incident) string {
	does := ""
	for _, chain := range slices.Backward(incident.Chains) {
		if chain.ChainID == incident.Handler {
			does = " " + console.Printable(chain.Describe(), 300)
			break
		}
	}
	return console.PrintableID(incident.Handler) + does + "; show it with: " + console.LookCommand(incident.Handler)
}

func writeIncidentChain(w io.Writer, clock console.Clock, width int, chain *escalation.IncidentChain) {
	tier := "changed nothing"
	if chain.Tier > 0 {
		tier = chain.Tier.String()
	}
	_, _ = fmt.Fprintf(w, "\n  %s\n", console.PrintableID(chain.ChainID))
	console.WriteLabelled(w, "    ", fmt.Sprintf("%s, %s, %s, met it at %s",
		chainStatus(clock, chain), tier, chain.CostText(), clock.Moment(chain.Since)), width)
	if chain.Did != "" {
		console.WriteLabelled(w, "    Tried  ", console.Printable(chain.Did, 600), width)
	}
	if chain.Reason != "" {
		console.WriteLabelled(w, "    Why    ", console.Printable(chain.Reason, 600), width)
	}
}

// chainStatus describes the work of a chain on the incident. If this work has ended, chainStatus describes how and when
// it ended.
func chainStatus(clock console.Clock, chain *escalation.IncidentChain) string {
	switch chain.Status {
	case escalation.ChainEnded:
		if chain.Outcome == "" {
			return "ended at " + clock.Moment(chain.At)
		}
		return fmt.Sprintf("ended (%s) at %s", escalation.InWords(chain.Outcome), clock.Moment(chain.At))
	case escalation.ChainWaiting:
		if chain.Until.IsZero() {
			return "waits"
		}
		return "waits until " + clock.Moment(chain.Until)
	case escalation.ChainRepairing:
		return "repairs it"
	case escalation.ChainLooking:
	}
	return "looks at it"
}

// returnsOf describes how often the incident appeared again after it was resolved, and when.
func returnsOf(clock console.Clock, incident *operations.Incident) string {
	text := fmt.Sprintf("%s, last at %s", times(incident.Returned), moment(clock, incident.ReturnedAt))
	if len(incident.Returns) == 0 {
		return text
	}
	var moments []string
	for _, at := range incident.Returns {
		moments = append(moments, clock.Moment(at))
	}
	return text + "; after a repair at " + strings.Join(moments, ", ")
}

// resolutionOf says when the incident was resolved, by whom and how.
func resolutionOf(clock console.Clock, incident *operations.Incident) string {
	at := moment(clock, incident.ResolvedAt)
	switch incident.Resolution {
	case escalation.IncidentRepaired:
		return fmt.Sprintf("at %s: chain %s repaired it", at, console.PrintableID(incident.ResolvedBy))
	case escalation.IncidentHealed:
		return fmt.Sprintf("at %s: chain %s found it gone", at, console.PrintableID(incident.ResolvedBy))
	case escalation.IncidentClosed:
	}
	text := fmt.Sprintf("at %s: %s closed it", at, console.Printable(incident.Closer(),
		escalation.MaxActor+len(" (verified)")))
	if incident.ResolvedReason != "" {
		text += ": " + console.Printable(incident.ResolvedReason, escalation.MaxClosingReason)
	}
	return text
}

// moment formats the time t. It adds how long ago that was, or how far ahead it is.
func moment(clock console.Clock, t time.Time) string {
	return fmt.Sprintf("%s (%s)", clock.Moment(t), ago(clock, t))
}
