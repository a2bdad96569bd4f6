package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const incidentsTag = "incidents"

// IncidentPath is the incident that a path names.
type IncidentPath struct {
	Incident text `path:"incident" maxLength:"100" doc:"The ID of an incident, or its number."`
}

func (a *API) registerIncidents(r routes) {
	add(r, route{
		role: access.View, pattern: "GET /incidents", id: "listIncidents", tag: incidentsTag,
		summary: "List incidents, the most urgent first",
	}, a.listIncidents)
	add(r, route{
		role: access.View, pattern: "GET /incidents/{incident}", id: "getIncident", tag: incidentsTag,
		summary: "Get an incident, and what chains did about it",
	}, func(ctx context.Context, in *IncidentPath) (*result[operations.Incident], error) {
		return resultOf(a.operations.Incidents.Get(ctx, string(in.Incident)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /incidents/{incident}/close", id: "closeIncident", tag: incidentsTag,
		summary: "Close an incident because its fault is gone",
	}, a.closeIncident)
}

// incidentQuery selects incidents.
type incidentQuery struct {
	Page

	All     bool   `query:"all" doc:"Also incidents that are resolved."`
	Service text   `query:"service" doc:"Only incidents of this service."`
	State   string `query:"state" doc:"Only incidents in this state: open, repairing, waiting or resolved."`
}

func (a *API) listIncidents(ctx context.Context, in *incidentQuery) (*result[operations.IncidentPage], error) {
	filter := operations.IncidentFilter{All: in.All, Service: string(in.Service), State: in.State, Limit: in.Limit}
	return resultOf(a.operations.Incidents.Page(ctx, filter, in.After))
}

// closeRequest closes an incident. The person is the one who has logged in.
type closeRequest struct {
	IncidentPath

	Body *struct {
		Reason string `json:"reason,omitempty" doc:"Why, for the record."`
	}
}

func (a *API) closeIncident(ctx context.Context, in *closeRequest) (*result[operations.ClosedIncident], error) {
	closing := operations.IncidentClosing{Actor: personOf(ctx), Verified: true}
	if in.Body != nil {
		closing.Reason = in.Body.Reason
	}
	return resultOf(a.operations.Incidents.Close(ctx, string(in.Incident), closing))
}
