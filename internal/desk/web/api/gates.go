package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const gatesTag = "gates"

func (a *API) registerGates(r routes) {
	add(r, route{role: access.View, pattern: "GET /gates", id: "listGates", summary: "List the open gates, oldest first", tag: gatesTag},
		a.listGates)
	add(r, route{
		role: access.View, pattern: "GET /chains/{chain_id}/gate", id: "getGate", summary: "Get the open gate of a chain", tag: gatesTag,
	}, func(ctx context.Context, in *ChainPath) (*result[*escalation.Gate], error) {
		return resultOf(a.operations.Gates.Get(ctx, string(in.ChainID)))
	})
	add(r, route{
		role: access.Answer, pattern: "POST /chains/{chain_id}/gate", id: "answerGate", tag: gatesTag,
		summary: "Answer the open gate of a chain",
	}, a.answerGate)
}

// gateList is a page of open gates.
type gateList struct {
	operations.GateList

	Next string `json:"next,omitempty"`
}

func (a *API) listGates(ctx context.Context, in *Page) (*result[gateList], error) {
	open, err := a.operations.Gates.List(ctx)
	if err != nil {
		return nil, err
	}
	var next string
	open.Gates, next, err = cut(open.Gates, *in, func(row operations.GateRow) string { return row.ChainID })
	return resultOf(gateList{open, next}, err)
}

// answerRequest is the answer to a gate. The person is the one who has logged in.
type answerRequest struct {
	ChainPath

	Body struct {
		GateID   string                `json:"gate_id" doc:"The gate that you have seen. The answer counts for no other."`
		Action   escalation.GateAction `json:"action" doc:"continue_session, fix, override or abort: one of the gate's options."`
		Guidance string                `json:"guidance,omitempty" doc:"What the agent is told."`
	}
}

func (a *API) answerGate(ctx context.Context, in *answerRequest) (*result[escalation.GateResolution], error) {
	return resultOf(a.operations.Gates.Answer(ctx, string(in.ChainID), escalation.GateAnswer{
		GateID: in.Body.GateID, Action: in.Body.Action, Guidance: in.Body.Guidance, Actor: personOf(ctx), Verified: true,
	}))
}
