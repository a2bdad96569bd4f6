package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// sweepInterval is the usual time between two sweeps. A chain that was terminated holds its services and its share of the
// day's budget for about that long.
const sweepInterval = time.Minute

// Records are the open sessions and the locked services of all chains.
type Records interface {
	// Running returns the sessions that are open.
	Running(ctx context.Context) ([]escalation.Session, error)
	// SettleSession closes a session, and reports whether it did: not if the session is closed already.
	SettleSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) (bool, error)
	// ServiceLocks returns the services that chains have locked.
	ServiceLocks(ctx context.Context) ([]store.ServiceLock, error)
	// ReleaseLock releases a service, and reports whether it did: not if it was locked again since it was read.
	ReleaseLock(ctx context.Context, lock store.ServiceLock) (bool, error)
}

var _ Records = (*store.Store)(nil)

// Sweeper closes the sessions and releases the services of chains that were terminated, timed out, or are unknown to
// Temporal: nobody else does. It deletes nothing.
//
// The cost of such a session is that of its last heartbeat, as an estimate. Without a heartbeat it is unknown, and the
// day's budget counts all that was reserved for the session.
type Sweeper struct {
	Records  Records
	Temporal Describer
	// Interval is the time between two sweeps of Run; 0 is once a minute.
	Interval time.Duration
	Logger   *slog.Logger
}

// Run sweeps at every interval until ctx ends.
func (s Sweeper) Run(ctx context.Context) {
	ticker := time.NewTicker(s.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Sweep(ctx)
		}
	}
}

// Sweep sweeps once. An error is logged: a worker whose records are away still runs chains.
func (s Sweeper) Sweep(ctx context.Context) {
	if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Warn("cannot settle what ended chains have left behind; trying again", "interval", s.interval(), "error", err)
	}
}

func (s Sweeper) interval() time.Duration { return cmp.Or(s.Interval, sweepInterval) }

// sweep reads what chains hold before it looks at the chains, because they continue meanwhile. It settles only what is
// unchanged since then: a session that was closed in between keeps its report, and a service that a new run of the chain
// has locked stays locked.
func (s Sweeper) sweep(ctx context.Context) error {
	sessions, err := s.Records.Running(ctx)
	if err != nil {
		return err
	}
	locks, err := s.Records.ServiceLocks(ctx)
	if err != nil {
		return err
	}
	chains := &chainStates{temporal: s.Temporal, endings: map[string]ending{}}
	for i := range sessions {
		if err := s.settleSession(ctx, chains, sessions[i]); err != nil {
			return err
		}
	}
	for _, lock := range locks {
		if err := s.releaseLock(ctx, chains, lock); err != nil {
			return err
		}
	}
	if len(chains.problems) > 0 { // the next sweep looks again; this worker has work to do
		s.Logger.Warn("cannot tell whether some chains have ended", "error", errors.Join(chains.problems...))
	}
	return nil
}

// settleSession closes the session if its chain has ended.
func (s Sweeper) settleSession(ctx context.Context, chains *chainStates, session escalation.Session) error {
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
	settled, err := s.Records.SettleSession(ctx, session.SessionID, report, time.Now())
	if settled {
		s.Logger.Warn("settled an abandoned session", "session", session.ID, "chain", session.ChainID, "reason", end.reason)
	}
	return err
}

// releaseLock releases the service if its chain has ended.
func (s Sweeper) releaseLock(ctx context.Context, chains *chainStates, lock store.ServiceLock) error {
	end := chains.ending(ctx, lock.ChainID)
	if end.reason == "" {
		return nil
	}
	released, err := s.Records.ReleaseLock(ctx, lock)
	if released {
		s.Logger.Warn("released an abandoned service", "service", lock.Service, "chain", lock.ChainID, "reason", end.reason)
	}
	return err
}

// ending is how a chain ended.
type ending struct {
	// reason says why the chain closes nothing any more; "" if it still runs, or if that is unknown.
	reason string
	// agents are those that ran then.
	agents []activities.PendingAgent
}

// chainStates looks chains up in Temporal, each of them once.
type chainStates struct {
	temporal Describer
	// endings holds the chains that were looked up, by their IDs.
	endings  map[string]ending
	problems []error
}

// ending returns how a chain ended; zero if it still runs, or may.
func (s *chainStates) ending(ctx context.Context, chainID string) ending {
	end, known := s.endings[chainID]
	if known {
		return end
	}
	end, err := endingOf(ctx, s.temporal, chainID)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	s.endings[chainID] = end
	return end
}

// endingOf looks up how a chain ended; zero if it still runs.
func endingOf(ctx context.Context, c Describer, chainID string) (ending, error) {
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
