package api

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const statsTag = "stats"

// costQuery selects a time.
type costQuery struct {
	From time.Time `query:"from" doc:"The begin of the time; by default 30 days ago."`
	To   time.Time `query:"to" doc:"The end of the time; by default now."`
}

func (a *API) registerOverview(r routes) {
	add(r, route[struct{}, operations.Now]{
		role: access.View, pattern: "GET /now", id: "getNow", tag: statsTag,
		summary: "Get what happens now: gates, work, waits, incidents, money and the next cycles",
	}, func(ctx context.Context, _ *struct{}) (operations.Now, error) {
		return a.operations.Overview.Now(ctx), nil
	})
	add(r, route[costQuery, operations.CostReport]{
		role: access.View, pattern: "GET /costs", id: "getCosts", tag: statsTag,
		summary: "Get what sessions have cost: by day, tier, model, service and trigger",
	}, func(ctx context.Context, in *costQuery) (operations.CostReport, error) {
		return a.operations.Costs.Report(ctx, operations.CostFilter{From: in.From, To: in.To})
	})
}
