package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// sweepInterval is how often a worker looks for what chains have left behind. A chain that was
// terminated holds its services and its share of the day's budget for about that long.
const sweepInterval = time.Minute

// keepSweeping sweeps until ctx ends.
func (s *Supervisor) keepSweeping(ctx context.Context, c client.Client) {
	ticker := time.NewTicker(s.sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.trySweep(ctx, c)
		}
	}
}

// trySweep sweeps once. A worker whose records are away has chains to look after all the same.
func (s *Supervisor) trySweep(ctx context.Context, c client.Client) {
	if err := s.sweep(ctx, c); err != nil && ctx.Err() == nil {
		s.logger.Warn("cannot settle what ended chains have left behind; trying again", "interval", s.sweepInterval, "error", err)
	}
}

// sweep settles what nobody else will any more, because its chain was terminated, has run into a
// time-out, or is unknown to Temporal: it closes sessions and releases services. Nothing is
// deleted. What such a session has cost is estimated by its last heartbeat. If there is none, it
// is not known, and the day's budget counts all that was reserved for it.
//
// Chains go on meanwhile. So what they hold is read before they are looked at, and only what is
// unchanged since then is settled: a session that was closed in between keeps its report, and a
// service that a new run of the chain has claimed stays claimed.
func (s *Supervisor) sweep(ctx context.Context, c client.Client) error {
	sessions, err := s.store.Running(ctx)
	if err != nil {
		return err
	}
	locks, err := s.store.ServiceLocks(ctx)
	if err != nil {
		return err
	}
	chains := &chainStates{client: c, endings: map[string]ending{}}
	for i := range sessions {
		if err := s.settleSession(ctx, chains, sessions[i]); err != nil {
			return err
		}
	}
	for _, lock := range locks {
		if err := s.settleLock(ctx, chains, lock); err != nil {
			return err
		}
	}
	if len(chains.problems) > 0 { // the next sweep looks again; this worker has work to do
		s.logger.Warn("cannot tell whether some chains have ended", "error", errors.Join(chains.problems...))
	}
	return nil
}

// settleSession closes session if its chain is gone.
func (s *Supervisor) settleSession(ctx context.Context, chains *chainStates, session escalation.Session) error {
	end := chains.ending(ctx, session.ChainID)
	if end.reason == "" {
		return nil
	}
	report := session.Report
	for _, agent := range end.agents {
		if agent.Last.SessionID == session.SessionID {
			report = agent.Last.Total()
		}
	}
	report.Status, report.Error, report.CostEstimated = escalation.SessionFailed, end.reason, true
	settled, err := s.store.SettleSession(ctx, session.SessionID, report, time.Now())
	if settled {
		s.logger.Warn("settled an abandoned session", "session", session.ID, "chain", session.ChainID, "reason", end.reason)
	}
	return err
}

// settleLock releases a service if its chain is gone.
func (s *Supervisor) settleLock(ctx context.Context, chains *chainStates, lock store.ServiceLock) error {
	end := chains.ending(ctx, lock.ChainID)
	if end.reason == "" {
		return nil
	}
	released, err := s.store.ReleaseLock(ctx, lock)
	if released {
		s.logger.Warn("released an abandoned service", "service", lock.Service, "chain", lock.ChainID, "reason", end.reason)
	}
	return err
}

// ending is how a chain has ended that closes nothing any more.
type ending struct {
	// reason says why nobody will close what it has left open; "" if it will, or if nobody knows.
	reason string
	// agents are those that ran then.
	agents []activities.PendingAgent
}

// chainStates asks Temporal about chains, about each of them once.
type chainStates struct {
	client client.Client
	// endings holds what is known of chains, by their IDs.
	endings  map[string]ending
	problems []error
}

// ending returns how a chain has ended; zero if it still runs, or may.
func (s *chainStates) ending(ctx context.Context, chainID string) ending {
	end, known := s.endings[chainID]
	if known {
		return end
	}
	end, err := endingOf(ctx, s.client, chainID)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	s.endings[chainID] = end
	return end
}

// endingOf asks Temporal how a chain has ended; zero if it still runs.
func endingOf(ctx context.Context, c client.Client, chainID string) (ending, error) {
	described, err := c.DescribeWorkflowExecution(ctx, chainID, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return ending{reason: "its chain is unknown to Temporal"}, nil
	}
	if err != nil {
		return ending{}, fmt.Errorf("look at chain %s: %w", chainID, err)
	}
	status := described.GetWorkflowExecutionInfo().GetStatus()
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return ending{}, nil
	default:
		return ending{
			reason: "its chain ended without closing it: " + strings.ToLower(status.String()),
			agents: pendingAgents(described.GetPendingActivities()),
		}, nil
	}
}
