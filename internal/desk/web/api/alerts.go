package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

const alertsTag = "alerts"

var (
	listAlerts = route[alertQuery, operations.AlertList]{
		role: access.View, pattern: "GET /alerts", id: "listAlerts", tag: alertsTag,
		summary: "List alerts and what became of them, the latest first",
	}
	getAlert = route[alertPath, alert.Episode]{
		role: access.View, pattern: "GET /alerts/{number}", id: "getAlert", tag: alertsTag,
		summary: "Get an alert with its labels, and what became of it",
	}
)

func (a *API) registerAlerts(r routes) {
	alerts := a.operations.Alerts
	add(r, listAlerts, func(ctx context.Context, in *alertQuery) (operations.AlertList, error) {
		return alerts.List(ctx, operations.AlertFilter{Outcome: in.Outcome, Before: in.Before, Limit: in.Limit})
	})
	add(r, getAlert, func(ctx context.Context, in *alertPath) (alert.Episode, error) {
		return alerts.Get(ctx, in.Number)
	})
}

type alertQuery struct {
	Outcome string `query:"outcome" maxLength:"100" doc:"Only alerts with this outcome, such as unmapped."`
	Before  int64  `query:"before" minimum:"0" doc:"The before of the part before; 0 for the first part."`
	Limit   int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"At most this many."`
}

type alertPath struct {
	Number int64 `path:"number" minimum:"1" doc:"The number of an alert."`
}
