// Package incidents holds the commands that list, show and close incidents. These commands read the records. Only the
// command that closes an incident connects to Temporal, to inform chains.
package incidents

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// View is an incident for the output, with its secrets masked.
type View struct {
	escalation.Incident

	// Handler is the ID of the chain that handles the incident; empty if no chain does.
	Handler string `json:"handler,omitempty"`
}

// app implements the commands of this package.
type app struct{ *console.Console }

// Command returns `incidents`.
func Command(c *console.Console) *cobra.Command {
	a := &app{c}
	cmd := a.listCommand("incidents")
	cmd.Short = "List, show or close incidents"
	cmd.Long = "An incident is one fault, over all the chains that meet it. Without a subcommand, incidents lists the open ones.\n" +
		"The kind " + escalation.KindLookFailed + " means that looks with Tier 1 have no result, so nobody knows how the services are.\n" +
		"The records answer: run it on the host that has them. Only close uses Temporal, to inform chains.\n\n" + listHelp
	cmd.Example = "  starter incidents\n  starter incidents --all --service jellyfin\n  starter incidents show 7\n" +
		"  starter incidents close 7 --actor ada --reason \"the disk is replaced\""
	cmd.AddCommand(a.listCommand("list"), a.showCommand(), a.closeCommand())
	return cmd
}

// view converts an incident for output.
func (a *app) view(incident escalation.Incident, now time.Time) View {
	view := View{Incident: a.masked(incident)}
	handler, found := incident.Handler(escalation.ChainRun{}, now)
	if found && (handler.Status != escalation.ChainEnded || incident.State != escalation.IncidentResolved) {
		view.Handler = handler.ChainID
	}
	return view
}

// masked returns the incident with the secrets in its texts masked.
func (a *app) masked(incident escalation.Incident) escalation.Incident {
	services := make([]string, len(incident.Services)) // an empty list is [] in JSON
	for i, service := range incident.Services {
		services[i] = a.Masked(service)
	}
	chains := make([]escalation.IncidentChain, len(incident.Chains))
	for i, chain := range incident.Chains {
		chain.Reason, chain.Did = a.Masked(chain.Reason), a.Masked(chain.Did)
		chains[i] = chain
	}
	incident.Services, incident.Chains = services, chains
	incident.Kind, incident.Summary = a.Masked(incident.Kind), a.Masked(incident.Summary)
	incident.ResolvedBy, incident.ResolvedReason = a.Masked(incident.ResolvedBy), a.Masked(incident.ResolvedReason)
	return incident
}

// incidentID returns the ID of an incident. A person has typed this ID or only its number.
func incidentID(given string) (string, error) {
	id := given
	if _, err := strconv.ParseUint(given, 10, 64); err == nil {
		id = "incident-" + given
	}
	if escalation.CheckIncidentID(id) != nil {
		return "", fmt.Errorf("%q is no incident: write its ID, such as incident-7, or its number", console.Printable(given, 60))
	}
	return id, nil
}

// explained converts an error of the store about an incident to an error for people.
func explained(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s; `starter incidents --all` lists those that are", id)
	}
	return err
}
