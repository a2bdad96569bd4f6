package year

import (
	"context"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// realTime returns the time that this process has used of its processors. In a bubble, package time knows simulated
// times only, and the wall's time would depend on what else the machine does.
func realTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// maxStep is the largest step of a clock that nobody notices. Greater ones are noticed by what they would remove.
const maxStep = 3 * time.Hour

// step returns by how much the clock of a host is ahead. It steps every five hours; Temporal's clock is the bubble's.
func (i *installation) step(host string) time.Duration {
	steps := []time.Duration{-maxStep, -7 * time.Minute, 0, 0, 0, 7 * time.Minute, maxStep}
	window := int(time.Since(i.begin) / (5 * time.Hour))
	if i.in(2, host, "jump", window) {
		return 400 * 24 * time.Hour
	}
	return steps[i.draw(len(steps), host, "clock", window)]
}

// clocked has the records as a host with a wrong clock uses them to sweep and to remove what is old. It checks that a
// sweep settles nothing of a chain that runs.
type clocked struct {
	*store.Store

	i    *installation
	host string
}

func (c clocked) ahead(at time.Time) time.Time { return at.Add(c.i.step(c.host)) }

func (c clocked) settled(chainID, what string, settled bool, err error) (bool, error) {
	if one := c.i.temporal.running(chainID); settled && one != nil {
		c.i.problem("a sweep settled %s of chain %s, which runs", what, chainID)
	}
	return settled, err
}

// Claim implements reconcile.Workers.
func (c clocked) Claim(ctx context.Context, own store.Namespace, now time.Time) error {
	return c.Store.Claim(ctx, own, c.ahead(now))
}

// ClaimDuty implements reconcile.Workers.
func (c clocked) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	return c.Store.ClaimDuty(ctx, name, holder, c.ahead(now), c.ahead(until))
}

// SettleSession implements reconcile.Records.
func (c clocked) SettleSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) (bool, error) {
	session, err := c.BySessionID(ctx, sessionID)
	if err != nil {
		return false, err
	}
	settled, err := c.Store.SettleSession(ctx, sessionID, report, endedAt)
	return c.settled(session.ChainID, "session "+sessionID, settled, err)
}

// ReleaseLock implements reconcile.Locks.
func (c clocked) ReleaseLock(ctx context.Context, lock store.ServiceLock) (bool, error) {
	released, err := c.Store.ReleaseLock(ctx, lock)
	return c.settled(lock.ChainID, "the lock on "+lock.Service, released, err)
}

// AbandonIncidents implements reconcile.Incidents.
func (c clocked) AbandonIncidents(ctx context.Context, chain store.ChainAtWork, reason string) (bool, error) {
	abandoned, err := c.Store.AbandonIncidents(ctx, chain, reason)
	return c.settled(chain.ChainID, "the incidents", abandoned, err)
}

// TrustClock implements reconcile.RemovalDuty.
func (c clocked) TrustClock(ctx context.Context, now time.Time) (trusted bool, last time.Time, err error) {
	return c.Store.TrustClock(ctx, c.ahead(now))
}

// OldChains implements reconcile.OldRecords.
func (c clocked) OldChains(ctx context.Context, before time.Time, after escalation.ChainRun) ([]store.OldChain, error) {
	if c.i.hoards {
		return nil, nil
	}
	return c.Store.OldChains(ctx, c.ahead(before), after)
}

// RemoveChain implements reconcile.OldRecords.
func (c clocked) RemoveChain(ctx context.Context, chain escalation.ChainRun, before time.Time) (store.Removed, bool, error) {
	return c.Store.RemoveChain(ctx, chain, c.ahead(before))
}

// RemoveIncidents implements reconcile.OldRecords.
func (c clocked) RemoveIncidents(ctx context.Context, before time.Time) (int64, error) {
	return c.Store.RemoveIncidents(ctx, c.ahead(before))
}

// RemoveMemories implements reconcile.OldRecords.
func (c clocked) RemoveMemories(ctx context.Context, before time.Time) (int64, error) {
	return c.Store.RemoveMemories(ctx, c.ahead(before))
}

// OldTalkSessions implements reconcile.OldTalks.
func (c clocked) OldTalkSessions(ctx context.Context, before time.Time, after store.OldTalkSession) ([]store.OldTalkSession, error) {
	return c.Store.OldTalkSessions(ctx, c.ahead(before), after)
}

// RemoveAlerts implements reconcile.OldTalks.
func (c clocked) RemoveAlerts(ctx context.Context, before time.Time) (int64, error) {
	return c.Store.RemoveAlerts(ctx, c.ahead(before))
}

// RemoveTurns implements reconcile.OldTalks.
func (c clocked) RemoveTurns(ctx context.Context, before time.Time) (int64, error) {
	return c.Store.RemoveTurns(ctx, c.ahead(before))
}
