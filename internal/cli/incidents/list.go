package incidents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
)

const listHelp = "The list begins with the most severe open incidents, and of those with the one seen last. Resolved ones follow, the\n" +
	"one resolved last first. The states are:\n\n" +
	"  open       no chain works on it\n" +
	"  repairing  a chain repairs it\n" +
	"  waiting    a chain waits for a person or a limit (`starter gate` lists the gates), or has ended because a person must act\n" +
	"  resolved   the fault is gone, or a person has closed the incident\n\n" +
	"In JSON each incident has the fields of `starter incidents show`."

// listFilter selects incidents. If all fields are empty, listFilter selects all open incidents.
type listFilter struct {
	all     bool
	service string
	state   string
	limit   int
}

func (a *app) listCommand(name string) *cobra.Command {
	var f listFilter
	cmd := &cobra.Command{
		Use:   name,
		Short: "List incidents",
		Long:  listHelp,
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "also incidents that are resolved")
	flags.StringVarP(&f.service, "service", "s", "", "only incidents of this service")
	flags.StringVar(&f.state, "state", "", "only incidents in this state, such as waiting; resolved needs no --all")
	flags.IntVar(&f.limit, "limit", 100, "at most this many")
	return cmd
}

func (a *app) list(ctx context.Context, f listFilter) (err error) {
	if err := f.check(); err != nil {
		return program.Misuse(err)
	}
	records, cfg, err := a.OpenRecords(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	found, err := records.Incidents(ctx, f.query(cfg.Services.Catalog))
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(incident escalation.Incident) bool {
		return f.state != "" && string(incident.State) != f.state
	})
	slices.SortStableFunc(found, byUrgency)
	shown := []View{} // an empty list is [] in JSON
	now := a.Clock()
	for _, incident := range found[:min(f.limit, len(found))] {
		shown = append(shown, a.view(incident, now))
	}
	return a.Print(shown, func(w io.Writer) {
		writeList(w, a.Clock, a.Width(), shown, f)
		if more := len(found) - len(shown); more > 0 {
			_, _ = fmt.Fprintf(w, "%d more; see them with --limit\n", more)
		}
	})
}

// check returns an error if no incident can match the filter.
func (f listFilter) check() error {
	if f.limit < 1 {
		return fmt.Errorf("--limit %d is less than one incident", f.limit)
	}
	var states []string
	for _, state := range escalation.IncidentStates() {
		states = append(states, string(state))
	}
	if f.state != "" && !slices.Contains(states, f.state) {
		return fmt.Errorf("--state is %q; it must be %s", f.state, console.OrList(states))
	}
	return nil
}

// query returns the store's form of the filter, without the states. The store does not filter by state.
func (f listFilter) query(catalog *escalation.Catalog) store.IncidentFilter {
	var query store.IncidentFilter
	if service := catalog.Canonical(f.service); service != "" {
		query.Services = []string{service}
	}
	if f.all || f.state == string(escalation.IncidentResolved) {
		query.Since = time.Unix(0, 0)
	}
	return query
}

// byUrgency compares two incidents for sorting. Open incidents come before resolved ones. Among the open ones, the more
// severe come first; among the resolved ones, those that were resolved last.
func byUrgency(a, b escalation.Incident) int {
	switch {
	case a.ResolvedAt.IsZero() != b.ResolvedAt.IsZero():
		if a.ResolvedAt.IsZero() {
			return -1
		}
		return 1
	case !a.ResolvedAt.IsZero():
		return b.ResolvedAt.Compare(a.ResolvedAt)
	case escalation.MoreSevere(a.Severity, b.Severity):
		return -1
	case escalation.MoreSevere(b.Severity, a.Severity):
		return 1
	}
	return cmp.Or(b.LastSeenAt.Compare(a.LastSeenAt), a.OpenedAt.Compare(b.OpenedAt))
}
