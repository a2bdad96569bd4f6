package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/store"
)

// retentionInterval is the default time between two removals.
const retentionInterval = time.Hour

// OldRecords finds and removes the records of chains that ended long ago. The comments of store.Store describe the methods in
// detail.
type OldRecords interface {
	// ClaimDuty gives a duty to holder until the given time. It returns false if another holder has the duty.
	ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
	// OldChains returns a page of the chains with only old, unneeded records, sorted by ID. To read the next page,
	// pass the last ID of this page as the argument after.
	OldChains(ctx context.Context, before time.Time, after string) ([]store.OldChain, error)
	// RemoveChain removes the records of a chain. It returns false if the records are needed now.
	RemoveChain(ctx context.Context, chainID string, before time.Time) (store.Removed, bool, error)
	// RemoveIncidents removes incidents that were resolved before the given time.
	RemoveIncidents(ctx context.Context, before time.Time) (int64, error)
	// RemoveMemories removes the memories that nobody has confirmed, and those that people have deleted, before the given
	// time.
	RemoveMemories(ctx context.Context, before time.Time) (int64, error)
}

// memoryRetention is the time for which a memory waits for its confirmation.
const memoryRetention = 90 * 24 * time.Hour

var (
	_ OldRecords = (*store.Store)(nil)
	_ OldTalks   = (*store.Store)(nil)
)

// OldTalks finds and removes the records of old turns of conversations. A conversation has no end, so its turns are removed one
// by one.
type OldTalks interface {
	// OldTalkSessions returns the IDs of sessions of conversations that ended before a time, at most 100.
	OldTalkSessions(ctx context.Context, before time.Time) ([]string, error)
	// RemoveTalkSession removes the record of such a session.
	RemoveTalkSession(ctx context.Context, sessionID string) error
	// RemoveTurns removes turns that ended before a time, and returns their number.
	RemoveTurns(ctx context.Context, before time.Time) (int64, error)
}

// Conversations removes archived conversations.
type Conversations interface {
	Remove(ctx context.Context, sessionID string) error
}

// Retention removes the records and the archived conversations of old chains of one namespace. It keeps chains that still run
// or wait, and chains of unresolved incidents. At any time, only one worker of the namespace removes records.
type Retention struct {
	Records  OldRecords
	Talks    OldTalks
	Archive  Conversations
	Temporal Describer
	// NamespaceID is the ID of the namespace in which Temporal describes chains.
	NamespaceID string
	// Holder identifies this worker.
	Holder string
	// Keep is the time for which records are kept. 0 keeps them for ever; only memories that nobody has confirmed are removed.
	Keep time.Duration
	// Interval is the time between two removals. 0 means one hour.
	Interval time.Duration
	Logger   *slog.Logger
}

// Run removes old records at once, and then at every interval, until ctx ends.
func (r Retention) Run(ctx context.Context) {
	ticker := time.NewTicker(r.interval())
	defer ticker.Stop()
	for {
		if err := r.remove(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Logger.Warn("cannot remove old records; trying again", "interval", r.interval(), "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r Retention) interval() time.Duration { return cmp.Or(r.Interval, retentionInterval) }

// removed counts the records that were removed at one time.
type removed struct {
	chains    int
	incidents int64
	memories  int64
	turns     int64
	store.Removed
}

// remove removes old records, unless another worker has this duty now. It logs the number of removed records, even
// after an error.
func (r Retention) remove(ctx context.Context, now time.Time) error {
	claimed, err := r.Records.ClaimDuty(ctx, "retention "+r.NamespaceID, r.Holder, now, now.Add(r.interval()))
	if err != nil || !claimed {
		return err
	}
	var sum removed
	sum.memories, err = r.Records.RemoveMemories(ctx, now.Add(-memoryRetention))
	if err == nil && r.Keep > 0 {
		err = r.removeRecords(ctx, now.Add(-r.Keep), &sum)
	}
	if sum != (removed{}) {
		r.Logger.Info("removed old records and conversations", "keep", r.Keep,
			"chains", sum.chains, "sessions", sum.Sessions, "events", sum.Events, "incidents", sum.incidents, "memories", sum.memories,
			"turns", sum.turns)
	}
	return err
}

// removeRecords removes what only the setting Keep removes: all but memories.
func (r Retention) removeRecords(ctx context.Context, before time.Time, sum *removed) (err error) {
	sum.incidents, err = r.Records.RemoveIncidents(ctx, before)
	if err = errors.Join(err, r.removeChains(ctx, before, sum)); err != nil {
		return err
	}
	sum.turns, err = r.removeTurns(ctx, before)
	return err
}

// removeChains removes the old chains that have ended.
func (r Retention) removeChains(ctx context.Context, before time.Time, sum *removed) error {
	states := &chainStates{temporal: r.Temporal, namespaceID: r.NamespaceID, endings: map[string]ending{}}
	for after := ""; ; {
		old, err := r.Records.OldChains(ctx, before, after)
		if err != nil || len(old) == 0 {
			return errors.Join(err, errors.Join(states.problems...))
		}
		for _, chain := range old {
			after = chain.ChainID
			if states.ending(ctx, r.NamespaceID, chain.ChainID).reason == "" {
				continue // the chain runs or waits, or its state is unknown
			}
			if err := r.removeChain(ctx, chain, before, sum); err != nil {
				return err
			}
		}
	}
}

// removeTurns removes the old turns of conversations, with their sessions and what the archive has of them.
func (r Retention) removeTurns(ctx context.Context, before time.Time) (int64, error) {
	for {
		sessions, err := r.Talks.OldTalkSessions(ctx, before)
		if err != nil {
			return 0, err
		}
		if len(sessions) == 0 {
			return r.Talks.RemoveTurns(ctx, before)
		}
		for _, id := range sessions {
			if err := r.Archive.Remove(ctx, id); err != nil {
				return 0, fmt.Errorf("remove an old turn of a conversation: %w", err)
			}
			if err := r.Talks.RemoveTalkSession(ctx, id); err != nil {
				return 0, err
			}
		}
	}
}

// removeChain removes the conversations of a chain, and then the chain's records. If removing a conversation fails, the
// records remain, so that the next call finds the chain again.
func (r Retention) removeChain(ctx context.Context, chain store.OldChain, before time.Time, sum *removed) error {
	for _, id := range chain.SessionIDs {
		if err := r.Archive.Remove(ctx, id); err != nil {
			return fmt.Errorf("remove the conversations of chain %q: %w", chain.ChainID, err)
		}
	}
	rows, did, err := r.Records.RemoveChain(ctx, chain.ChainID, before)
	if did {
		sum.chains++
		sum.Sessions += rows.Sessions
		sum.Events += rows.Events
	}
	return err
}
