package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

const memoriesTag = "memories"

// MemoryPath is the memory that a path names.
type MemoryPath struct {
	Memory text `path:"memory" maxLength:"100" doc:"The ID of a memory, or its number."`
}

func (a *API) registerMemories(r routes) {
	memories := a.operations.Memories
	add(r, route{
		role: access.View, pattern: "GET /memories", id: "listMemories", tag: memoriesTag,
		summary: "List memories, the candidates first",
	}, a.listMemories)
	add(r, route{
		role: access.View, pattern: "GET /memories/{memory}", id: "getMemory", tag: memoriesTag,
		summary: "Get a memory, where it comes from, and which sessions have read it",
	}, func(ctx context.Context, in *MemoryPath) (*result[memory.Memory], error) {
		return resultOf(memories.Get(ctx, string(in.Memory)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /memories", id: "addMemory", tag: memoriesTag, status: 201,
		summary: "Add a memory, which agents get at once",
	}, func(ctx context.Context, in *addMemoryRequest) (*result[memory.Memory], error) {
		return resultOf(memories.Add(ctx, in.Body, personOf(ctx)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /memories/{memory}/confirm", id: "confirmMemory", tag: memoriesTag,
		summary: "Confirm a candidate, so that agents get it",
	}, func(ctx context.Context, in *memoryDecision) (*result[memory.Memory], error) {
		return resultOf(memories.Confirm(ctx, in.seen(), personOf(ctx)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /memories/{memory}/edit", id: "editMemory", tag: memoriesTag,
		summary: "Change a memory, which also confirms it",
	}, func(ctx context.Context, in *editMemoryRequest) (*result[memory.Memory], error) {
		seen := operations.SeenMemory{Given: string(in.Memory), Revision: in.Body.Revision}
		return resultOf(memories.Edit(ctx, seen, in.Body.MemoryEdit, personOf(ctx)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /memories/{memory}/delete", id: "deleteMemory", tag: memoriesTag,
		summary: "Delete a memory, so that agents do not get it any more",
	}, func(ctx context.Context, in *memoryDecision) (*result[memory.Memory], error) {
		return resultOf(memories.Delete(ctx, in.seen(), personOf(ctx)))
	})
}

// memoryQuery selects memories.
type memoryQuery struct {
	Page

	Status  string `query:"status" doc:"Only candidate, confirmed or deleted ones. Without it, those that are not deleted."`
	Kind    string `query:"kind" doc:"Only memories of this kind: correction, discovery or remediation."`
	Service text   `query:"service" doc:"Only memories of this service."`
	Search  text   `query:"search" maxLength:"1000" doc:"Only memories with all of these words."`
}

func (a *API) listMemories(ctx context.Context, in *memoryQuery) (*result[operations.MemoryPage], error) {
	filter := operations.MemoryFilter{
		Status: in.Status, Kind: in.Kind, Service: string(in.Service), Search: string(in.Search), Limit: in.Limit,
	}
	return resultOf(a.operations.Memories.Page(ctx, filter, in.After))
}

// addMemoryRequest is a memory of the person who has logged in.
type addMemoryRequest struct {
	Body escalation.MemoryProposal
}

// memoryRevision names the revision that a person has read.
type memoryRevision struct {
	Revision int `json:"revision,omitempty" minimum:"1" doc:"The revision that you have read. If the memory has another one, nothing is changed."` //nolint:lll // a tag cannot be wrapped
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

// editMemoryRequest changes a memory.
type editMemoryRequest struct {
	MemoryPath

	Body struct {
		operations.MemoryEdit
		memoryRevision
	}
}
