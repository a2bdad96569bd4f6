package apiclient

import (
	"context"
	"net/url"
	"strconv"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// Memories does through the API what operations.Memories does. The actor of each change is the person to whom the token belongs.
type Memories struct{ client *Client }

// List returns the memories that the filter selects.
func (m Memories) List(ctx context.Context, f operations.MemoryFilter) ([]memory.Memory, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"status": f.Status, "kind": f.Kind, "service": f.Service, "search": f.Search} {
		if value != "" {
			query.Set(name, value)
		}
	}
	all := []memory.Memory{}
	err := readPages(query, func(query url.Values) (string, error) {
		if f.Limit > 0 {
			query.Set("limit", strconv.Itoa(min(f.Limit-len(all), maxList)))
		}
		var page operations.MemoryPage
		err := m.client.get(ctx, place{[]string{"memories"}, query}, &page)
		all = append(all, page.Memories...)
		if f.Limit > 0 && len(all) >= f.Limit {
			page.Next = ""
		}
		return page.Next, err
	})
	return all, err
}

// Get returns one memory, named by its ID or its number.
func (m Memories) Get(ctx context.Context, given string) (found memory.Memory, err error) {
	err = m.client.get(ctx, at("memories", given), &found)
	return found, err
}

// Add records a memory.
func (m Memories) Add(ctx context.Context, content escalation.MemoryProposal, _ string) (added memory.Memory, err error) {
	err = m.client.post(ctx, at("memories"), content, &added)
	return added, err
}

// revision is the revision that a person has read.
type revision struct {
	Revision int `json:"revision,omitempty"`
}

// Confirm confirms a memory.
func (m Memories) Confirm(ctx context.Context, seen operations.SeenMemory, _ string) (confirmed memory.Memory, err error) {
	err = m.client.post(ctx, at("memories", seen.Given, "confirm"), revision{seen.Revision}, &confirmed)
	return confirmed, err
}

// Edit changes a memory.
func (m Memories) Edit(
	ctx context.Context, seen operations.SeenMemory, edit operations.MemoryEdit, _ string,
) (edited memory.Memory, err error) {
	body := struct {
		operations.MemoryEdit
		revision
	}{edit, revision{seen.Revision}}
	err = m.client.post(ctx, at("memories", seen.Given, "edit"), body, &edited)
	return edited, err
}

// Delete deletes a memory.
func (m Memories) Delete(ctx context.Context, seen operations.SeenMemory, _ string) (deleted memory.Memory, err error) {
	err = m.client.post(ctx, at("memories", seen.Given, "delete"), revision{seen.Revision}, &deleted)
	return deleted, err
}
