package operations

import (
	"cmp"
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

// recordedCalls returns the decisions on the calls of a chain in namespace; nil if this host cannot read the records.
func (b *backend) recordedCalls(ctx context.Context, namespace store.Namespace, chainID string) []escalation.CallDecision {
	records, _, err := b.openRecords(ctx)
	if err != nil {
		return nil
	}
	calls, err := records.In(namespace).Decisions(ctx, chainID)
	if err != nil {
		return nil
	}
	return calls
}

// recorded reads a chain from the records. Use it for a chain that Temporal does not know. It returns the chain and its
// namespace, which can differ from own.
func (b *backend) recorded(
	ctx context.Context, own store.Namespace, id string,
) (namespace store.Namespace, chain escalation.Chain, err error) {
	records, _, err := b.openRecords(ctx)
	if err != nil {
		return own, chain, err
	}
	if namespace, err = recordedIn(ctx, records, own, id); err != nil {
		return own, chain, err
	}
	chain, err = recordedChain(ctx, records.In(namespace), id)
	return namespace, chain, err
}

// settled returns chain with the sessions and the cost from the records. Use it for a chain that was terminated or
// timed out, because the workflow of such a chain does not know how its last session ended. If the records cannot be
// read, settled returns chain unchanged.
func (b *backend) settled(ctx context.Context, namespace store.Namespace, chain escalation.Chain) escalation.Chain {
	records, _, err := b.openRecords(ctx)
	if err != nil {
		return chain
	}
	recorded, err := recordedChain(ctx, records.In(namespace), chain.ID)
	if err != nil {
		return chain
	}
	chain.Sessions, chain.Earlier, chain.CostUSD, chain.Wait = recorded.Sessions, recorded.Earlier, recorded.CostUSD, nil
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

// recordedIn returns the namespace whose records describe a chain that Temporal does not know. This is own if own has
// no ID or has records of the chain, or if no namespace has records of the chain. Otherwise, it is the namespace of the
// latest session whose chain has this ID.
func recordedIn(ctx context.Context, records *store.Store, own store.Namespace, id string) (store.Namespace, error) {
	if own.ID == "" {
		return own, nil
	}
	sessions, err := records.Chain(ctx, id)
	isOwn := func(session escalation.Session) bool { return session.NamespaceID == own.ID }
	if err != nil || len(sessions) == 0 || slices.ContainsFunc(sessions, isOwn) {
		return own, err
	}
	latest := slices.MaxFunc(sessions, func(a, b escalation.Session) int { return cmp.Compare(a.ID, b.ID) })
	return store.Namespace{ID: latest.NamespaceID, Name: latest.Namespace}, nil
}
