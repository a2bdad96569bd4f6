package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
)

const eventsTag = "events"

// registerStreams adds the streams, which huma does not know, and describes them by hand.
func (a *API) registerStreams(r routes, router *access.Router) {
	followers := stream.NewFollowers(a.follow, writeProblem, func(err error) any { return modelOf(err) })
	router.Handle(access.View, "GET "+prefix+"/events", a.hub.Handler())
	router.Handle(access.View, "GET "+prefix+"/chains/{chain_id}/follow", followers.Handler())
	talks := stream.NewTalks(a.operations.Conversations.Watch, writeProblem)
	router.Handle(access.ReadTalk, "GET "+prefix+"/conversations/{name}/events", talks.Handler())
	text := &huma.Schema{Type: huma.TypeString}
	parameter := func(in, name, says string) *huma.Param {
		return &huma.Param{Name: name, In: in, Description: says, Schema: text, Required: in == "path"}
	}
	schemas := r.OpenAPI().Components.Schemas
	for _, data := range []any{
		stream.Event{},
		stream.End{},
		operations.EventNews{},
		operations.ChainNews{},
		operations.SessionNews{},
		operations.CallNews{},
		operations.IncidentNews{},
		operations.ProgressNews{},
		operations.Snapshot{},
		operations.TalkNews{},
	} {
		schemas.Schema(reflect.TypeOf(data), true, "")
	}
	r.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "streamEvents", Method: http.MethodGet, Path: prefix + "/events", Tags: []string{eventsTag},
		Summary: "Stream what changes, as server-sent events",
		Description: "Needs the role view. The event field is the type, and data is a StreamEvent: chain (EventNews, " +
			"or ChainNews where the records are elsewhere), session (SessionNews), gate (EventNews), incident " +
			"(IncidentNews), call (CallNews), progress (ProgressNews, without an ID: only the latest counts) and " +
			"reset: changes may be missing, so read everything again. A comment comes every 15 seconds, and the " +
			"stream ends after 2 minutes: reconnect with Last-Event-ID.",
		Parameters: []*huma.Param{
			parameter("query", "chain", "Only the changes of this chain."),
			parameter("query", "after", "As Last-Event-ID, for clients that cannot set it."),
			parameter("header", "Last-Event-ID", "The ID of the last event that you know."),
		},
		Responses: eventStream("StreamEvent"),
	})
	r.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "followChain", Method: http.MethodGet, Path: prefix + "/chains/{chain_id}/follow",
		Tags: []string{eventsTag}, Summary: "Stream snapshots of a chain until it has ended, as server-sent events",
		Description: "Needs the role view. The event field is snapshot (data is a Snapshot), nobody (no worker " +
			"answers) or end (data is a StreamEnd), which is the last one. A stream that ends without it is to be " +
			"opened again.",
		Parameters: []*huma.Param{parameter("path", "chain_id", "The ID of a chain.")},
		Responses:  eventStream("Snapshot"),
	})
	r.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "watchConversation", Method: http.MethodGet, Path: prefix + "/conversations/{name}/events",
		Tags: []string{eventsTag}, Summary: "Stream what happens in a conversation, as server-sent events",
		Description: "Needs the role talk. The event field is talk, and data is a TalkNews: a turn waits, works, has " +
			"the next part of its reply (text), or has ended: then get it. A stream begins with the turns that are " +
			"open, and with their replies so far. It ends after 2 minutes: open it again.",
		Parameters: []*huma.Param{parameter("path", "name", "The name of a conversation.")},
		Responses:  eventStream("TalkNews"),
	})
}

// follow follows a chain, if there can be one with this ID.
func (a *API) follow(ctx context.Context, chainID string, observer operations.Observer) (escalation.Chain, error) {
	if id := temporalID(chainID); !id.valid() {
		return escalation.Chain{}, operations.ErrNoSuchChain
	}
	return a.operations.Chains.Follow(ctx, chainID, observer)
}

// eventStream describes the answers of a stream whose events have the given schema.
func eventStream(schema string) map[string]*huma.Response {
	ref := func(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }
	return map[string]*huma.Response{
		"200": {
			Description: "A stream of events. The schema is that of the data of one event.",
			Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: ref(schema)}},
		},
		"default": {
			Description: "Problem",
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: ref("ErrorModel")}},
		},
	}
}
