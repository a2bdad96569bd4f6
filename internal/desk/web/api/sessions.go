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

var getLineage = route[SessionPath, operations.Lineage]{
	role: access.View, pattern: "GET /sessions/{number}/lineage", id: "getLineage", tag: sessionsTag,
	summary: "Get the sessions that led to a session, and those that came of it",
}

func (a *API) registerSessions(r routes) {
	add(r, route[SessionPath, operations.SessionDetail]{
		role: access.View, pattern: "GET /sessions/{number}", id: "getSession", tag: sessionsTag,
		summary: "Get a session, with its calls, actions and conversation",
	}, func(ctx context.Context, in *SessionPath) (operations.SessionDetail, error) {
		return a.operations.Sessions.Get(ctx, in.Number)
	})
	add(r, getLineage, func(ctx context.Context, in *SessionPath) (operations.Lineage, error) {
		return a.operations.Chains.Session(ctx, in.Number)
	})
	add(r, route[callsRequest, callList]{
		role: access.View, pattern: "GET /sessions/{number}/calls", id: "listCalls", tag: sessionsTag,
		summary: "List a session's calls, with the guard's decisions, in order",
	}, func(ctx context.Context, in *callsRequest) (list callList, err error) {
		list.Calls, err = a.operations.Sessions.Calls(ctx, in.Number)
		if err == nil {
			list.Calls, list.Next, err = cut(list.Calls, in.Page,
				func(call escalation.CallDecision) string { return call.Call })
		}
		return list, err
	})
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
