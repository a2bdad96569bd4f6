package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const sessionsTag = "sessions"

// SessionPath is the session that a path names.
type SessionPath struct {
	Number int64 `path:"number" doc:"The number of a session's record."`
}

func (a *API) registerSessions(r routes) {
	add(r, route{
		role: access.View, pattern: "GET /sessions/{number}", id: "getSession", tag: sessionsTag,
		summary: "Get a session, with its calls, actions and conversation",
	}, func(ctx context.Context, in *SessionPath) (*result[operations.SessionDetail], error) {
		return resultOf(a.operations.Sessions.Get(ctx, in.Number))
	})
	add(r, route{
		role: access.View, pattern: "GET /sessions/{number}/lineage", id: "getLineage", tag: sessionsTag,
		summary: "Get the sessions that led to a session, and those that came of it",
	}, func(ctx context.Context, in *SessionPath) (*result[operations.Lineage], error) {
		return resultOf(a.operations.Chains.Session(ctx, in.Number))
	})
	add(r, route{
		role: access.View, pattern: "GET /sessions/{number}/calls", id: "listCalls", tag: sessionsTag,
		summary: "List a session's calls, with the guard's decisions, in order",
	}, a.listCalls)
}

// callsRequest asks for the calls of a session.
type callsRequest struct {
	SessionPath
	Page
}

// callList is a page of calls.
type callList struct {
	Calls []escalation.CallDecision `json:"calls"`
	Next  string                    `json:"next,omitempty"`
}

func (a *API) listCalls(ctx context.Context, in *callsRequest) (*result[callList], error) {
	calls, err := a.operations.Sessions.Calls(ctx, in.Number)
	if err != nil {
		return nil, err
	}
	shown, next, err := cut(calls, in.Page, func(call escalation.CallDecision) string { return call.Call })
	return resultOf(callList{shown, next}, err)
}
