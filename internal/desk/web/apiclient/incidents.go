package apiclient

import (
	"context"
	"net/url"
	"strconv"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Incidents does through the API what operations.Incidents does.
type Incidents struct{ client *Client }

// List returns the incidents that the filter selects, the most urgent first.
func (i Incidents) List(ctx context.Context, f operations.IncidentFilter) ([]operations.Incident, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"service": f.Service, "state": f.State} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.All {
		query.Set("all", "true")
	}
	all := []operations.Incident{}
	err := readPages(query, func(query url.Values) (string, error) {
		if f.Limit > 0 {
			query.Set("limit", strconv.Itoa(min(f.Limit-len(all), maxList)))
		}
		var page operations.IncidentPage
		err := i.client.get(ctx, place{[]string{"incidents"}, query}, &page)
		all = append(all, page.Incidents...)
		if f.Limit > 0 && len(all) >= f.Limit {
			page.Next = ""
		}
		return page.Next, err
	})
	return all, err
}

// Get returns one incident, named by its ID or its number.
func (i Incidents) Get(ctx context.Context, given string) (incident operations.Incident, err error) {
	err = i.client.get(ctx, at("incidents", given), &incident)
	return incident, err
}

// Close resolves an open incident. The actor is the person to whom the token belongs. If the incident is resolved already, Close
// returns it with an error of KindConflict.
func (i Incidents) Close(
	ctx context.Context, given string, closing operations.IncidentClosing,
) (closed operations.ClosedIncident, err error) {
	err = i.client.post(ctx, at("incidents", given, "close"), map[string]string{"reason": closing.Reason}, &closed)
	if operations.KindOf(err) == operations.KindConflict {
		if current, problem := i.Get(ctx, given); problem == nil {
			closed.Incident = current
		}
	}
	return closed, err
}
