package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const incidentsTag = "incidents"

var (
	listIncidents = route[incidentQuery, operations.IncidentPage]{
		role: access.View, pattern: "GET /incidents", id: "listIncidents", tag: incidentsTag,
		summary: "List incidents, the most urgent first",
	}
	getIncident = route[IncidentPath, operations.Incident]{
		role: access.View, pattern: "GET /incidents/{incident}", id: "getIncident", tag: incidentsTag,
		summary: "Get an incident, and what chains did about it",
	}
	closeIncident = route[closeRequest, operations.ClosedIncident]{
		role: access.Operate, pattern: "POST /incidents/{incident}/close", id: "closeIncident", tag: incidentsTag,
		summary: "Close an incident because its fault is gone",
	}
	acknowledgeIncident = route[acknowledgeRequest, operations.Incident]{
		role: access.Operate, pattern: "POST /incidents/{incident}/acknowledge", id: "acknowledgeIncident",
		tag: incidentsTag, summary: "Acknowledge or snooze an incident: nobody is reminded of it",
	}
)

func (a *API) registerIncidents(r routes) {
	incidents := a.operations.Incidents
	add(r, listIncidents, func(ctx context.Context, in *incidentQuery) (operations.IncidentPage, error) {
		filter := operations.IncidentFilter{All: in.All, Service: string(in.Service), State: in.State, Limit: in.Limit}
		return incidents.Page(ctx, filter, in.After)
	})
	add(r, getIncident, func(ctx context.Context, in *IncidentPath) (operations.Incident, error) {
		return incidents.Get(ctx, string(in.Incident))
	})
	add(r, closeIncident, func(ctx context.Context, in *closeRequest) (operations.ClosedIncident, error) {
		closing := operations.IncidentClosing{Actor: personOf(ctx), Verified: true}
		if in.Body != nil {
			closing.Reason = in.Body.Reason
		}
		return incidents.Close(ctx, string(in.Incident), closing)
	})
	add(r, acknowledgeIncident, func(ctx context.Context, in *acknowledgeRequest) (operations.Incident, error) {
		act := operations.IncidentAcknowledging{Actor: personOf(ctx), Verified: true}
		if in.Body != nil {
			act.Note, act.Snooze, act.Withdrawn = in.Body.Note, in.Body.For.Std(), in.Body.Withdrawn
		}
		return incidents.Acknowledge(ctx, string(in.Incident), act)
	})
}

// IncidentPath is the incident that a path names.
type IncidentPath struct {
	Incident text `path:"incident" maxLength:"100" doc:"The ID of an incident, or its number."`
}

// incidentQuery selects incidents.
type incidentQuery struct {
	Page

	All     bool   `query:"all" doc:"Also incidents that are resolved."`
	Service text   `query:"service" doc:"Only incidents of this service."`
	State   string `query:"state" doc:"Only incidents in this state: open, repairing, waiting or resolved."`
}

// closeRequest closes an incident. The person is the one who has logged in.
type closeRequest struct {
	IncidentPath

	Body *closeRequestBody
}

type closeRequestBody struct {
	Reason string `json:"reason,omitempty" doc:"Why, for the record."`
}

// acknowledgeRequest acknowledges or snoozes an incident. The person is the one who has logged in.
type acknowledgeRequest struct {
	IncidentPath

	Body *acknowledgeRequestBody
}

type acknowledgeRequestBody struct {
	Note string              `json:"note,omitempty" doc:"For others to read."`
	For  escalation.Duration `json:"for,omitempty" doc:"How long, such as 8h; then people are told of the incident."`
	// Withdrawn is a field of its own, so that a repeated request has the same effect.
	Withdrawn bool `json:"withdrawn,omitempty" doc:"Withdraw what was recorded before."`
}

// Incidents does through the API what operations.Incidents does.
type Incidents struct{ client *Client }

// List returns the incidents that the filter selects, the most urgent first.
func (i Incidents) List(ctx context.Context, f operations.IncidentFilter) ([]operations.Incident, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	all := []operations.Incident{}
	err := readPages(f.Limit, func(page Page) (int, string, error) {
		list, err := listIncidents.call(ctx, i.client, incidentQuery{page, f.All, text(f.Service), f.State})
		all = append(all, list.Incidents...)
		return len(list.Incidents), list.Next, err
	})
	return all, err
}

// Get returns one incident, named by its ID or its number.
func (i Incidents) Get(ctx context.Context, given string) (operations.Incident, error) {
	return getIncident.call(ctx, i.client, IncidentPath{text(given)})
}

// Close resolves an open incident. The actor is the person to whom the token belongs. If the incident is resolved
// already, Close returns it with an error of KindConflict.
func (i Incidents) Close(
	ctx context.Context, given string, closing operations.IncidentClosing,
) (closed operations.ClosedIncident, err error) {
	closed, err = closeIncident.call(ctx, i.client, closeRequest{
		IncidentPath{text(given)},
		&closeRequestBody{closing.Reason},
	})
	if operations.KindOf(err) == operations.KindConflict {
		if current, problem := i.Get(ctx, given); problem == nil {
			closed.Incident = current
		}
	}
	return closed, err
}

// Acknowledge acknowledges or snoozes an open incident. The actor is the person to whom the token belongs.
func (i Incidents) Acknowledge(
	ctx context.Context, given string, act operations.IncidentAcknowledging,
) (operations.Incident, error) {
	return acknowledgeIncident.call(ctx, i.client, acknowledgeRequest{
		IncidentPath{text(given)},
		&acknowledgeRequestBody{act.Note, escalation.Duration(act.Snooze), act.Withdrawn},
	})
}
