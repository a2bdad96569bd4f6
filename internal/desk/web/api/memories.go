package api

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

const memoriesTag = "memories"

var (
	listMemories = route[memoryQuery, operations.MemoryPage]{
		role: access.View, pattern: "GET /memories", id: "listMemories", tag: memoriesTag,
		summary: "List memories, the candidates first",
	}
	getMemory = route[MemoryPath, memory.Memory]{
		role: access.View, pattern: "GET /memories/{memory}", id: "getMemory", tag: memoriesTag,
		summary: "Get a memory, where it comes from, and which sessions have read it",
	}
	addMemory = route[addMemoryRequest, memory.Memory]{
		role: access.Operate, pattern: "POST /memories", id: "addMemory", tag: memoriesTag, status: http.StatusCreated,
		summary: "Add a memory, which agents get at once",
	}
	confirmMemory = route[memoryDecision, memory.Memory]{
		role: access.Operate, pattern: "POST /memories/{memory}/confirm", id: "confirmMemory", tag: memoriesTag,
		summary: "Confirm a candidate, so that agents get it",
	}
	editMemory = route[editMemoryRequest, memory.Memory]{
		role: access.Operate, pattern: "POST /memories/{memory}/edit", id: "editMemory", tag: memoriesTag,
		summary: "Change a memory, which also confirms it",
	}
	deleteMemory = route[memoryDecision, memory.Memory]{
		role: access.Operate, pattern: "POST /memories/{memory}/delete", id: "deleteMemory", tag: memoriesTag,
		summary: "Delete a memory, so that agents do not get it any more",
	}
)

func (a *API) registerMemories(r routes) {
	memories := a.operations.Memories
	add(r, listMemories, func(ctx context.Context, in *memoryQuery) (operations.MemoryPage, error) {
		filter := operations.MemoryFilter{
			Status: in.Status, Kind: in.Kind, Service: string(in.Service), Search: string(in.Search), Limit: in.Limit,
		}
		return memories.Page(ctx, filter, in.After)
	})
	add(r, getMemory, func(ctx context.Context, in *MemoryPath) (memory.Memory, error) {
		return memories.Get(ctx, string(in.Memory))
	})
	add(r, addMemory, func(ctx context.Context, in *addMemoryRequest) (memory.Memory, error) {
		return memories.Add(ctx, in.Body, personOf(ctx))
	})
	add(r, confirmMemory, func(ctx context.Context, in *memoryDecision) (memory.Memory, error) {
		return memories.Confirm(ctx, in.seen(), personOf(ctx))
	})
	add(r, editMemory, func(ctx context.Context, in *editMemoryRequest) (memory.Memory, error) {
		seen := operations.SeenMemory{Given: string(in.Memory), Revision: in.Body.Revision}
		return memories.Edit(ctx, seen, in.Body.MemoryEdit, personOf(ctx))
	})
	add(r, deleteMemory, func(ctx context.Context, in *memoryDecision) (memory.Memory, error) {
		return memories.Delete(ctx, in.seen(), personOf(ctx))
	})
}

// MemoryPath is the memory that a path names.
type MemoryPath struct {
	Memory text `path:"memory" maxLength:"100" doc:"The ID of a memory, or its number."`
}

// memoryQuery selects memories.
type memoryQuery struct {
	Page

	Status  string `query:"status" doc:"Only candidate, confirmed or deleted ones. Without it, those that are not deleted."`
	Kind    string `query:"kind" doc:"Only memories of this kind: correction, discovery or remediation."`
	Service text   `query:"service" doc:"Only memories of this service."`
	Search  text   `query:"search" maxLength:"1000" doc:"Only memories with all of these words."`
}

// addMemoryRequest is a memory of the person who has logged in.
type addMemoryRequest struct {
	Body escalation.MemoryProposal
}

// memoryRevision names the revision that a person has read.
type memoryRevision struct {
	Revision int `json:"revision,omitempty" minimum:"1" doc:"The revision that you have read. If the memory has another one, nothing is changed."`
}

// memoryDecision decides on a memory.
type memoryDecision struct {
	MemoryPath

	Body *memoryRevision
}

func (d *memoryDecision) seen() operations.SeenMemory {
	seen := operations.SeenMemory{Given: string(d.Memory)}
	if d.Body != nil {
		seen.Revision = d.Body.Revision
	}
	return seen
}

// decisionOn returns a decision on the memory that a person has seen.
func decisionOn(seen operations.SeenMemory) memoryDecision {
	return memoryDecision{MemoryPath{text(seen.Given)}, &memoryRevision{seen.Revision}}
}

// editMemoryRequest changes a memory.
type editMemoryRequest struct {
	MemoryPath

	Body editMemoryRequestBody
}

type editMemoryRequestBody struct {
	operations.MemoryEdit
	memoryRevision
}

// Memories does through the API what operations.Memories does. The actor of each change is the person to whom the token
// belongs.
type Memories struct{ client *Client }

// List returns the memories that the filter selects.
func (m Memories) List(ctx context.Context, f operations.MemoryFilter) ([]memory.Memory, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	all := []memory.Memory{}
	err := readPages(f.Limit, func(page Page) (int, string, error) {
		list, err := listMemories.call(ctx, m.client, memoryQuery{
			page, f.Status, f.Kind, text(f.Service),
			text(f.Search),
		})
		all = append(all, list.Memories...)
		return len(list.Memories), list.Next, err
	})
	return all, err
}

// Get returns one memory, named by its ID or its number.
func (m Memories) Get(ctx context.Context, given string) (memory.Memory, error) {
	return getMemory.call(ctx, m.client, MemoryPath{text(given)})
}

// Add records a memory.
func (m Memories) Add(ctx context.Context, content escalation.MemoryProposal, _ string) (memory.Memory, error) {
	return addMemory.call(ctx, m.client, addMemoryRequest{content})
}

// Confirm confirms a memory.
func (m Memories) Confirm(ctx context.Context, seen operations.SeenMemory, _ string) (memory.Memory, error) {
	return confirmMemory.call(ctx, m.client, decisionOn(seen))
}

// Edit changes a memory.
func (m Memories) Edit(
	ctx context.Context, seen operations.SeenMemory, edit operations.MemoryEdit, _ string,
) (memory.Memory, error) {
	body := editMemoryRequestBody{edit, memoryRevision{seen.Revision}}
	return editMemory.call(ctx, m.client, editMemoryRequest{MemoryPath{text(seen.Given)}, body})
}

// Delete deletes a memory.
func (m Memories) Delete(ctx context.Context, seen operations.SeenMemory, _ string) (memory.Memory, error) {
	return deleteMemory.call(ctx, m.client, decisionOn(seen))
}
