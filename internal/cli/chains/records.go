package chains

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/chainview"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// View is the result of `chain`.
type View struct {
	escalation.Chain

	// Calls holds the decisions on the calls of the chain's agents, in order. If this host cannot read the records,
	// Calls is nil, and the JSON omits it.
	Calls []escalation.CallDecision `json:"calls,omitzero"`
}

// recordedCalls returns the decisions on the calls of a chain in namespace; nil if this host cannot read the records.
// If the database is missing, recordedCalls does not create one.
func recordedCalls(ctx context.Context, cfg config.Config, namespace store.Namespace, chainID string) []escalation.CallDecision {
	if file := cfg.State.DatabaseFile(); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
	}
	records, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return nil
	}
	defer func() { _ = records.Close() }() // nothing was written
	calls, err := records.In(namespace).Decisions(ctx, chainID)
	if err != nil {
		return nil
	}
	return calls
}

// callsOf returns the decisions on the calls of the given sessions, which can belong to several chains.
func callsOf(ctx context.Context, records *store.Store, sessions []escalation.Session) ([]escalation.CallDecision, error) {
	calls := []escalation.CallDecision{}
	var chains []string
	for i := range sessions {
		if id := sessions[i].ChainID; !slices.Contains(chains, id) {
			chains = append(chains, id)
		}
	}
	for _, id := range chains {
		found, err := records.Decisions(ctx, id)
		if err != nil {
			return nil, err
		}
		for i := range found {
			own := func(session escalation.Session) bool { return session.SessionID == found[i].SessionID }
			if slices.ContainsFunc(sessions, own) {
				calls = append(calls, found[i])
			}
		}
	}
	return calls, nil
}

// settled returns chain with the sessions and the cost from the records. Use it for a chain that was terminated or
// timed out, because the workflow of such a chain does not know how its last session ended. If the records cannot be
// read, settled returns chain unchanged.
func settled(ctx context.Context, cfg config.Config, namespace store.Namespace, chain escalation.Chain) escalation.Chain {
	recorded, err := recordedChain(ctx, cfg, namespace, chain.ID)
	if err != nil {
		return chain
	}
	chain.Sessions, chain.CostUSD, chain.Wait = recorded.Sessions, recorded.CostUSD, nil
	return chain
}

// recordedChain builds the chain with this ID from its records in namespace.
func recordedChain(ctx context.Context, cfg config.Config, namespace store.Namespace, id string) (chain escalation.Chain, err error) {
	opened, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return chain, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	records := opened.In(namespace)
	chain.ID = id
	if chain.Sessions, err = records.Chain(ctx, id); err != nil {
		return chain, err
	}
	if len(chain.Sessions) == 0 {
		return chain, chainclient.ErrNoSuchChain
	}
	chain.StartedAt = chain.Sessions[0].StartedAt
	chain.Trigger = chain.Sessions[0].Trigger
	chain.CostUSD = escalation.TotalCostUSD(chain.Sessions)
	chain.Events, err = records.Events(ctx, id)
	return chain, err
}

// recordedIn returns the namespace whose records describe a chain that Temporal does not know. This is own if own has
// no ID or has records of the chain, or if no namespace has records of the chain. Otherwise, it is the namespace of the
// latest session whose chain has this ID.
func recordedIn(ctx context.Context, cfg config.Config, own store.Namespace, id string) (_ store.Namespace, err error) {
	if own.ID == "" {
		return own, nil
	}
	records, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return own, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	sessions, err := records.Chain(ctx, id)
	isOwn := func(session escalation.Session) bool { return session.NamespaceID == own.ID }
	if err != nil || len(sessions) == 0 || slices.ContainsFunc(sessions, isOwn) {
		return own, err
	}
	latest := slices.MaxFunc(sessions, func(a, b escalation.Session) int { return cmp.Compare(a.ID, b.ID) })
	return store.Namespace{ID: latest.NamespaceID, Name: latest.Namespace}, nil
}

// lineageOf returns the session with this number, its ancestors and its descendants, with the decisions on the calls of
// these sessions.
func lineageOf(ctx context.Context, records *store.Store, number int64) (chainview.Lineage, error) {
	var found chainview.Lineage
	var err error
	if found.Backward, err = records.Backward(ctx, number); err != nil {
		return found, err
	}
	if found.Forward, err = records.Forward(ctx, number); err != nil {
		return found, err
	}
	found.Calls, err = callsOf(ctx, records, slices.Concat(found.Backward, found.Forward))
	return found, err
}
