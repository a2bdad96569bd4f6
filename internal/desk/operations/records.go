package operations

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Lineage holds the ancestors and the descendants of a session, at most 1,000 of each. Both lists include the session.
type Lineage struct {
	Backward []escalation.Session `json:"backward"`
	Forward  []escalation.Session `json:"forward"`
	// Calls holds the decisions on the calls of the sessions in both lists, at most 5,000.
	Calls []escalation.CallDecision `json:"calls"`
}

// lineageOf returns the session with this number, its ancestors and its descendants, with the decisions on the calls of
// these sessions.
func lineageOf(ctx context.Context, records *store.Store, number int64) (Lineage, error) {
	var found Lineage
	var err error
	if found.Backward, err = records.Backward(ctx, number); err != nil {
		return found, err
	}
	if found.Forward, err = records.Forward(ctx, number); err != nil {
		return found, err
	}
	var ids []string
	for _, session := range slices.Concat(found.Backward, found.Forward[1:]) {
		ids = append(ids, session.SessionID)
	}
	found.Calls, err = records.DecisionsOf(ctx, ids)
	return found, err
}

// recordedCalls returns the decisions on the calls of a chain; nil if the records cannot be read.
func (b *backend) recordedCalls(ctx context.Context, chainID string) []escalation.CallDecision {
	records, err := b.ownRecords(ctx)
	if err != nil {
		return nil
	}
	calls, err := records.Decisions(ctx, chainID)
	if err != nil {
		return nil
	}
	return calls
}

// recorded reads a chain from the records. Use it for a chain that Temporal does not know.
func (b *backend) recorded(ctx context.Context, id string) (escalation.Chain, error) {
	records, err := b.ownRecords(ctx)
	if err != nil {
		return escalation.Chain{}, err
	}
	return recordedChain(ctx, records, id)
}

// settled returns chain with the sessions and the cost from the records. Use it for a chain that was terminated or
// timed out, because the workflow of such a chain does not know how its last session ended. If the records cannot be
// read, settled returns chain unchanged.
func (b *backend) settled(ctx context.Context, chain escalation.Chain) escalation.Chain {
	recorded, err := b.recorded(ctx, chain.ID)
	if err != nil {
		return chain
	}
	chain.Sessions, chain.Earlier, chain.CostUSD, chain.Wait = recorded.Sessions, recorded.Earlier, recorded.CostUSD,
		nil
	return chain
}

// recordedChain builds the chain with this ID from its records.
func recordedChain(ctx context.Context, records *store.Store, id string) (chain escalation.Chain, err error) {
	chain.ID = id
	if chain.Sessions, err = records.Chain(ctx, id); err != nil {
		return chain, err
	}
	if len(chain.Sessions) == 0 {
		return chain, ErrNoSuchChain
	}
	whole, err := records.WholeChain(ctx, id)
	if err != nil {
		return chain, err
	}
	chain.StartedAt, chain.Trigger, chain.CostUSD = whole.StartedAt, chain.Sessions[0].Trigger, whole.CostUSD
	if left := whole.Sessions - len(chain.Sessions); left > 0 {
		chain.Earlier = escalation.Earlier{
			Sessions: left,
			Cost: escalation.Cost{
				CostUSD: whole.CostUSD - escalation.TotalCostUSD(chain.Sessions), CostEstimated: whole.CostEstimated,
			},
		}
	}
	chain.Events, err = records.Events(ctx, id)
	return chain, err
}
