package apiclient

import (
	"context"
	"net/url"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Gates does through the API what operations.Gates does.
type Gates struct{ client *Client }

// List returns the open gates, oldest first.
func (g Gates) List(ctx context.Context) (operations.GateList, error) {
	all := operations.GateList{Gates: []operations.GateRow{}}
	err := readPages(nil, func(query url.Values) (string, error) {
		var page struct {
			operations.GateList

			Next string `json:"next"`
		}
		err := g.client.get(ctx, place{[]string{"gates"}, query}, &page)
		all.Gates = append(all.Gates, page.Gates...)
		all.Waiting, all.Asked = page.Waiting, page.Asked
		return page.Next, err
	})
	return all, err
}

// Get returns the open gate of a chain.
func (g Gates) Get(ctx context.Context, chainID string) (*escalation.Gate, error) {
	var gate escalation.Gate
	if err := g.client.get(ctx, at("chains", chainID, "gate"), &gate); err != nil {
		return nil, err
	}
	return &gate, nil
}

// Answer answers the open gate of a chain. The actor is the person to whom the token belongs.
func (g Gates) Answer(ctx context.Context, chainID string, answer escalation.GateAnswer) (escalation.GateResolution, error) {
	var resolution escalation.GateResolution
	document := map[string]any{"gate_id": answer.GateID, "action": answer.Action, "guidance": answer.Guidance}
	err := g.client.post(ctx, at("chains", chainID, "gate"), document, &resolution)
	return resolution, err
}
