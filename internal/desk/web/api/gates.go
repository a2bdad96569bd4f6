package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const gatesTag = "gates"

var (
	listGates = route[Page, gateList]{
		role: access.View, pattern: "GET /gates", id: "listGates",
		summary: "List the open gates, the most severe first", tag: gatesTag,
	}
	getGate = route[ChainPath, *escalation.Gate]{
		role: access.View, pattern: "GET /chains/{chain_id}/gate", id: "getGate",
		summary: "Get the open gate of a chain", tag: gatesTag,
	}
	answerGate = route[answerRequest, escalation.GateResolution]{
		role: access.Answer, pattern: "POST /chains/{chain_id}/gate", id: "answerGate", tag: gatesTag,
		summary: "Answer the open gate of a chain",
	}
)

func (a *API) registerGates(r routes) {
	gates := a.operations.Gates
	add(r, listGates, func(ctx context.Context, in *Page) (list gateList, err error) {
		list.GateList, err = gates.List(ctx)
		if err == nil {
			list.Gates, list.Next, err = cut(list.Gates, *in,
				func(row operations.GateRow) string { return row.ChainID })
		}
		return list, err
	})
	add(r, getGate, func(ctx context.Context, in *ChainPath) (*escalation.Gate, error) {
		return gates.Get(ctx, string(in.ChainID))
	})
	add(r, answerGate, func(ctx context.Context, in *answerRequest) (escalation.GateResolution, error) {
		return gates.Answer(ctx, string(in.ChainID), escalation.GateAnswer{
			GateID: in.Body.GateID, Action: in.Body.Action, Guidance: in.Body.Guidance, Force: in.Body.Force,
			Actor: personOf(ctx), Verified: true,
		})
	})
}

// gateList is a page of open gates.
type gateList struct {
	operations.GateList

	Next string `json:"next,omitempty"`
}

// answerRequest is the answer to a gate. The person is the one who has logged in.
type answerRequest struct {
	ChainPath

	Body answerRequestBody
}

type answerRequestBody struct {
	GateID   string                `json:"gate_id" doc:"The gate that you have seen. The answer counts for no other."`
	Action   escalation.GateAction `json:"action" doc:"continue_session, fix, recheck, override or abort: one of the gate's options."`
	Guidance string                `json:"guidance,omitempty" doc:"What the agent is told."`
	Force    bool                  `json:"force,omitempty" doc:"Begin now, although restarts are used up."`
}

// Gates does through the API what operations.Gates does.
type Gates struct{ client *Client }

// List returns the open gates, the most severe first.
func (g Gates) List(ctx context.Context) (operations.GateList, error) {
	all := operations.GateList{Gates: []operations.GateRow{}}
	err := readPages(0, func(page Page) (int, string, error) {
		list, err := listGates.call(ctx, g.client, page)
		all.Gates = append(all.Gates, list.Gates...)
		all.Waiting, all.Asked = list.Waiting, list.Asked
		return len(list.Gates), list.Next, err
	})
	return all, err
}

// Get returns the open gate of a chain.
func (g Gates) Get(ctx context.Context, chainID string) (*escalation.Gate, error) {
	return getGate.call(ctx, g.client, ChainPath{temporalID(chainID)})
}

// Answer answers the open gate of a chain. The actor is the person to whom the token belongs.
func (g Gates) Answer(
	ctx context.Context, chainID string, said escalation.GateAnswer,
) (escalation.GateResolution, error) {
	body := answerRequestBody{said.GateID, said.Action, said.Guidance, said.Force}
	return answerGate.call(ctx, g.client, answerRequest{ChainPath{temporalID(chainID)}, body})
}
