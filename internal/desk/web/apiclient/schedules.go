package apiclient

import (
	"context"
	"net/url"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Schedules does through the API what operations.Schedules does.
type Schedules struct{ client *Client }

// List returns the schedules.
func (s Schedules) List(ctx context.Context) ([]operations.Schedule, error) {
	all := []operations.Schedule{}
	err := readPages(nil, func(query url.Values) (string, error) {
		var page struct {
			Schedules []operations.Schedule `json:"schedules"`
			Next      string                `json:"next"`
		}
		err := s.client.get(ctx, place{[]string{"schedules"}, query}, &page)
		all = append(all, page.Schedules...)
		return page.Next, err
	})
	return all, err
}

// Get returns a schedule, what it has started and what comes next.
func (s Schedules) Get(ctx context.Context, id string) (detail operations.ScheduleDetail, err error) {
	err = s.client.get(ctx, at("schedules", id), &detail)
	return detail, err
}

// Pause lets a schedule start nothing until it is resumed.
func (s Schedules) Pause(ctx context.Context, id, note string) error {
	return s.client.post(ctx, at("schedules", id, "pause"), map[string]string{"note": note}, nil)
}

// Resume lets a paused schedule start cycles again.
func (s Schedules) Resume(ctx context.Context, id, note string) error {
	return s.client.post(ctx, at("schedules", id, "resume"), map[string]string{"note": note}, nil)
}

// Trigger starts a cycle now.
func (s Schedules) Trigger(ctx context.Context, id, overlap string) error {
	return s.client.post(ctx, at("schedules", id, "trigger"), map[string]string{"overlap": overlap}, nil)
}
