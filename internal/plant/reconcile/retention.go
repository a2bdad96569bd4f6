package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// retentionInterval is the default time between two removals.
const retentionInterval = time.Hour

// OldRecords finds and removes the records of chains that ended long ago. The comments of store.Store describe the
// methods in detail.
type OldRecords interface {
	RemovalDuty

	// OldChains returns a page of the chains with only old, unneeded records, sorted. To read the next page, pass the
	// last chain of this page as the argument after.
	OldChains(ctx context.Context, before time.Time, after escalation.ChainRun) ([]store.OldChain, error)
	// RemoveChain removes the records of a chain. It returns false if the records are needed now.
	RemoveChain(ctx context.Context, chain escalation.ChainRun, before time.Time) (store.Removed, bool, error)
	// RemoveIncidents removes incidents that were resolved before the given time.
	RemoveIncidents(ctx context.Context, before time.Time) (int64, error)
	// RemoveMemories removes the memories that nobody has confirmed, and those that people have deleted, before the
	// given time.
	RemoveMemories(ctx context.Context, before time.Time) (int64, error)
}

// RemovalDuty says whether this worker may remove records now.
type RemovalDuty interface {
	// ClaimDuty gives a duty to holder until the given time. It returns false if another holder has the duty.
	ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
	// Now returns the database's time. If the database has no clock of its own, it returns the time of this host.
	Now(ctx context.Context, host time.Time) (time.Time, error)
	// TrustClock reports whether now can be the time: the clock has not just jumped ahead of the last time of which
	// that was known. It returns that last time.
	TrustClock(ctx context.Context, now time.Time) (trusted bool, last time.Time, err error)
}

// memoryRetention is the time for which a memory waits for its confirmation.
const memoryRetention = 90 * 24 * time.Hour

var (
	_ OldRecords = (*store.Store)(nil)
	_ OldTalks   = (*store.Store)(nil)
)

// OldTalks finds and removes the records of old turns of conversations. A conversation has no end, so its turns are
// removed one by one.
type OldTalks interface {
	// OldTalkSessions returns a page of the sessions of conversations that ended before a time. To read the next page,
	// pass the last session of this page as the argument after.
	OldTalkSessions(ctx context.Context, before time.Time, after store.OldTalkSession) ([]store.OldTalkSession, error)
	// RemoveTalkSession removes the record of such a session.
	RemoveTalkSession(ctx context.Context, sessionID string) error
	// CompactCosts keeps what old sessions have cost as sums of days.
	CompactCosts(ctx context.Context, now time.Time) error
	// RemoveTurns removes turns that ended before a time, and returns their number.
	RemoveTurns(ctx context.Context, before time.Time) (int64, error)
	// RemoveAlerts removes alerts that were last received before a time and wait for nothing, and returns their number.
	RemoveAlerts(ctx context.Context, before time.Time) (int64, error)
}

// Conversations removes archived conversations.
type Conversations interface {
	Remove(ctx context.Context, sessionID string) error
}

// Retention removes the records and the archived conversations of old chains. It keeps chains that still run or wait,
// and chains of unresolved incidents. At any time, only one worker removes records.
//
// What cannot be removed, such as a conversation under an object lock, stays with its records, and is tried again at
// the next interval. It stops nothing else.
type Retention struct {
	Records  OldRecords
	Talks    OldTalks
	Archive  Conversations
	Temporal Describer
	// Holder identifies this worker.
	Holder string
	// Keep is the time for which records are kept. 0 keeps them for ever; only memories that nobody has confirmed are
	// removed.
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
	if err := r.checkClock(ctx, now); err != nil {
		return err
	}
	claimed, err := r.Records.ClaimDuty(ctx, "retention", r.Holder, now, now.Add(r.interval()))
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
			"chains", sum.chains, "sessions", sum.Sessions, "events", sum.Events, "incidents", sum.incidents,
			"memories", sum.memories,
			"turns", sum.turns)
	}
	return err
}

// maxClockSkew is the largest accepted difference between the clocks of this host and of the database. Records are kept
// for weeks, so that a smaller one removes nothing too early.
const maxClockSkew = 10 * time.Minute

// checkClock returns an error if the clock of this host may be wrong. What is removed because of a wrong clock is lost.
func (r Retention) checkClock(ctx context.Context, now time.Time) error {
	theirs, err := r.Records.Now(ctx, now)
	if err != nil {
		return err
	}
	if skew := now.Sub(theirs).Abs(); skew > maxClockSkew {
		return fmt.Errorf("nothing is removed, because it is %s on this host and %s in the database: synchronize "+
			"both with NTP",
			now.UTC().Format(time.RFC3339), theirs.UTC().Format(time.RFC3339))
	}
	trusted, last, err := r.Records.TrustClock(ctx, now)
	if err == nil && !trusted {
		err = fmt.Errorf("nothing is removed, because it is %s on this host, and was %s when a worker last looked: "+
			"if no worker has "+
			"run in between, old records are removed a day from now; otherwise set the clock",
			now.UTC().Format(time.RFC3339),
			last.UTC().Format(time.RFC3339))
	}
	return err
}

// removeRecords removes what only the setting Keep removes: all but memories.
func (r Retention) removeRecords(ctx context.Context, before time.Time, sum *removed) (err error) {
	var left leftovers
	sum.incidents, err = r.Records.RemoveIncidents(ctx, before)
	if err == nil {
		err = r.removeChains(ctx, before, sum, &left)
	}
	if err == nil {
		err = r.removeTalkSessions(ctx, before, &left)
	}
	if err == nil {
		err = r.Talks.CompactCosts(ctx, before.Add(r.Keep))
	}
	if err == nil {
		sum.turns, err = r.Talks.RemoveTurns(ctx, before)
	}
	if err == nil {
		_, err = r.Talks.RemoveAlerts(ctx, before)
	}
	return errors.Join(err, left.err())
}

// leftovers counts what could not be removed, or whose state is unknown, and keeps the first problem.
type leftovers struct {
	count int
	first error
}

func (l *leftovers) add(err error) {
	l.count++
	l.first = cmp.Or(l.first, err)
}

func (l *leftovers) err() error {
	if l.count <= 1 {
		return l.first
	}
	return fmt.Errorf("%w (and %d more like this)", l.first, l.count-1)
}

// removeChains removes the old chains that have ended.
func (r Retention) removeChains(ctx context.Context, before time.Time, sum *removed, left *leftovers) error {
	states := &chainStates{temporal: r.Temporal, endings: map[escalation.ChainRun]ending{}}
	var after escalation.ChainRun
	for {
		old, err := r.Records.OldChains(ctx, before, after)
		if err != nil || len(old) == 0 {
			for _, problem := range states.problems {
				left.add(problem)
			}
			return err
		}
		for _, chain := range old {
			after = chain.ChainRun
			if states.ending(ctx, chain.ChainRun).reason == "" {
				continue // the chain runs or waits, or its state is unknown
			}
			if err := r.removeChain(ctx, chain, before, sum, left); err != nil {
				return err
			}
		}
	}
}

// removeChain removes the conversations of a chain, and then the chain's records. If removing a conversation fails, the
// records remain, so that the next call finds the chain again.
func (r Retention) removeChain(
	ctx context.Context, chain store.OldChain, before time.Time, sum *removed, left *leftovers,
) error {
	for _, id := range chain.SessionIDs {
		if err := r.Archive.Remove(ctx, id); err != nil {
			left.add(fmt.Errorf("remove the conversations of chain %q: %w", chain.ChainID, err))
			return ctx.Err()
		}
	}
	rows, did, err := r.Records.RemoveChain(ctx, chain.ChainRun, before)
	if did {
		sum.chains++
		sum.Sessions += rows.Sessions
		sum.Events += rows.Events
	}
	return err
}

// removeTalkSessions removes the sessions of old turns, with what the archive has of them.
func (r Retention) removeTalkSessions(ctx context.Context, before time.Time, left *leftovers) error {
	for after := (store.OldTalkSession{}); ; {
		sessions, err := r.Talks.OldTalkSessions(ctx, before, after)
		if err != nil || len(sessions) == 0 {
			return err
		}
		for _, session := range sessions {
			after = session
			if err := r.Archive.Remove(ctx, session.SessionID); err != nil {
				left.add(fmt.Errorf("remove session %s of a conversation: %w", session.SessionID, err))
				if ctx.Err() != nil {
					return ctx.Err()
				}
				continue
			}
			if err := r.Talks.RemoveTalkSession(ctx, session.SessionID); err != nil {
				return err
			}
		}
	}
}
