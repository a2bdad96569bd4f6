package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// outlineQuery reads what open incidents are selected and sorted by.
var outlineQuery = "SELECT " + columns(outlineFields(new(incidentRow))) +
	" FROM incidents WHERE resolved_at IS NULL ORDER BY id"

// outlineFields lists the columns of the table incidents with the ID, the services, the kind, the severity and the
// times.
func outlineFields(i *incidentRow) []field {
	return append(identityFields(i),
		field{"severity", &i.Severity}, field{"opened_at", millis{&i.OpenedAt}},
		field{"last_seen_at", millis{&i.LastSeenAt}})
}

// OpenFilter selects a page of open incidents.
type OpenFilter struct {
	// Services limits the list to incidents of these services; empty for all.
	Services []string
	// State limits the list to incidents in this state; empty for all.
	State escalation.IncidentState
	// After is where the page begins.
	After ListPlace
	// Limit is the maximum number of incidents; 0 means all.
	Limit int
}

// ListPlace is the place after an item of a list, and the ID of that item. If the item has gone, a page begins at the
// place.
type ListPlace struct {
	Place int
	ID    string
}

// beginOf returns where a page begins in a list.
func beginOf[T any](list []T, after ListPlace, id func(T) string) int {
	if at := slices.IndexFunc(list, func(item T) bool { return id(item) == after.ID }); at >= 0 {
		return at + 1
	}
	return min(after.Place, len(list))
}

// OpenPage is a page of open incidents.
type OpenPage struct {
	Incidents []escalation.Incident
	// Last is the place after the last of Incidents. More reports whether others follow.
	Last ListPlace
	More bool
	// Total counts the open incidents of the services, in all states.
	Total int
}

// OpenIncidents returns a page of the open incidents, the most urgent first. Others are not completed with their chains
// and costs.
func (s *Store) OpenIncidents(ctx context.Context, filter OpenFilter) (page OpenPage, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		page, err = openPage(ctx, tx, filter)
		return err
	})
	if err != nil {
		return OpenPage{}, fmt.Errorf("read the open incidents: %w", err)
	}
	return page, nil
}

func openPage(ctx context.Context, q querier, filter OpenFilter) (page OpenPage, err error) {
	open, err := plainRows(ctx, q, outlineFields, outlineQuery)
	open = slices.DeleteFunc(open, func(row incidentRow) bool { return !(IncidentFilter{Services: filter.Services}).selects(row) })
	slices.SortStableFunc(open, func(a, b incidentRow) int {
		return escalation.CompareUrgency(&a.Incident,
			&b.Incident)
	})
	page.Total = len(open)
	atOnce := incidentBatch
	if filter.Limit > 0 {
		atOnce = min(atOnce, filter.Limit+1) // one more shows that another page follows
	}
	for at := beginOf(open, filter.After, func(row incidentRow) string { return row.ID }); at < len(open) &&
		!page.More && err == nil; {
		var batch []incidentRow
		if batch, err = incidentsNumbered(ctx, q, open[at:min(at+atOnce, len(open))]); err == nil {
			err = completeAll(ctx, q, batch)
		}
		page.add(batch, at, filter)
		at += atOnce
	}
	return page, err
}

// add adds the incidents of a batch, which begins at a place of the list.
func (p *OpenPage) add(batch []incidentRow, at int, filter OpenFilter) {
	for i := range batch {
		if filter.State != "" && batch[i].State != filter.State {
			continue
		}
		if p.More = filter.Limit > 0 && len(p.Incidents) == filter.Limit; p.More {
			return
		}
		batch[i].Shorten()
		p.Incidents = append(p.Incidents, batch[i].Incident)
		p.Last = ListPlace{at + i + 1, batch[i].ID}
	}
}

// OpenCount counts the open incidents that have the same list of services and the same severity.
type OpenCount struct {
	Services []string
	Severity escalation.Severity
	Count    int
}

func openCountFields(c *OpenCount) []field {
	return []field{{"services", jsonText[[]string]{&c.Services}}, {"severity", &c.Severity}, {"COUNT(*)", &c.Count}}
}

var openCountsQuery = "SELECT " + columns(openCountFields(new(OpenCount))) +
	" FROM incidents WHERE resolved_at IS NULL GROUP BY services, severity ORDER BY MIN(id)"

// OpenCounts counts the open incidents, in the order in which the first of each count was opened.
func (s *Store) OpenCounts(ctx context.Context) ([]OpenCount, error) {
	counts, err := collect(ctx, s.db, openCountFields, openCountsQuery)
	if err != nil {
		return nil, fmt.Errorf("count the open incidents: %w", err)
	}
	return counts, nil
}
