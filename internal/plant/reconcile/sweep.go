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
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// sweepInterval is the default time between two sweeps. After a chain is terminated, it takes about this time until
// its services are unlocked and its reservation of the day's budget ends.
const sweepInterval = time.Minute

// Records reads and closes the open sessions and the service locks of all chains.
type Records interface {
	// Running returns the open sessions.
	Running(ctx context.Context) ([]escalation.Session, error)
	// SettleSession closes a session. If the session is already closed, it returns false.
	SettleSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) (bool, error)
	Workers
	Locks
	Incidents
}

// Workers records which workers run, and which of them sweeps.
type Workers interface {
	// Claim records that a worker of a namespace runs now. If the records belong to another namespace, the error is
	// store.ErrForeign.
	Claim(ctx context.Context, own store.Namespace, now time.Time) error
	// ClaimDuty gives a duty to holder until a time. It returns false if another holder has it.
	ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
}

// Locks reads and releases the services that chains have locked.
type Locks interface {
	// ServiceLocks returns the services that chains have locked.
	ServiceLocks(ctx context.Context) ([]store.ServiceLock, error)
	// ReleaseLock releases the lock on a service. If a chain has locked the service again after the caller read the
	// lock, ReleaseLock returns false.
	ReleaseLock(ctx context.Context, lock store.ServiceLock) (bool, error)
}

// Incidents reads and ends the work of chains on incidents.
type Incidents interface {
	// ChainsAtWork returns the chains that have not ended their work on incidents.
	ChainsAtWork(ctx context.Context) ([]store.ChainAtWork, error)
	// AbandonIncidents records that a chain no longer takes care of any incident. If the chain has recorded progress
	// after ChainsAtWork read its row, AbandonIncidents changes nothing and returns false.
	AbandonIncidents(ctx context.Context, chain store.ChainAtWork, reason string) (bool, error)
	// EndedSnoozes returns the open incidents whose snooze has ended.
	EndedSnoozes(ctx context.Context, now time.Time) ([]escalation.Incident, error)
	// EndSnooze records that people are told of the end of a snooze.
	EndSnooze(ctx context.Context, ended escalation.Incident) error
}

var _ Records = (*store.Store)(nil)

// Sweeper settles the records of chains that were terminated, timed out, or are unknown to Temporal. Sweeper closes the
// sessions of such chains, and releases their services and incidents, because the chains cannot do that. Sweeper
// deletes no record.
//
// A running chain of another namespace is unknown to this Sweeper's Temporal. So Sweeper first makes sure that the
// records belong to its own namespace.
//
// The cost of a closed session is the estimate of its last heartbeat. Without a heartbeat the cost is unknown, and the
// day's budget counts the session's whole reservation.
type Sweeper struct {
	Records  Records
	Temporal Describer
	// Converter decodes heartbeats.
	Converter converter.DataConverter
	// Namespace is the namespace in which Temporal describes chains.
	Namespace store.Namespace
	// Holder identifies this worker.
	Holder string
	// Interval is the time between two sweeps of Run; 0 means one minute.
	Interval time.Duration
	// TellSnoozeEnded has people told that the snooze of an incident has ended. Repeated calls tell them once.
	TellSnoozeEnded func(ctx context.Context, ended escalation.Incident) error
	Logger          *slog.Logger
}

// Run sweeps at every interval until ctx ends, unless another worker has just done so. Each sweep asks
// Temporal about every chain at work, so the sweeps of hundreds of workers would be too many.
func (s Sweeper) Run(ctx context.Context) {
	ticker := time.NewTicker(s.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.isDue(ctx) {
				s.Sweep(ctx)
			}
		}
	}
}

// isDue reports whether this worker is to sweep now. It claims the sweep for half the interval only: if this worker
// dies, another one sweeps soon.
func (s Sweeper) isDue(ctx context.Context) bool {
	now := time.Now()
	due, err := s.Records.ClaimDuty(ctx, "sweep", s.Holder, now, now.Add(s.interval()/2))
	if err != nil && ctx.Err() == nil {
		s.Logger.Warn("cannot settle what ended chains have left behind; trying again", "interval", s.interval(),
			"error", err)
	}
	return due
}

// Sweep sweeps once. It logs errors and returns none, because a worker can run chains while the records are
// unavailable.
func (s Sweeper) Sweep(ctx context.Context) {
	if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Warn("cannot settle what ended chains have left behind; trying again", "interval", s.interval(),
			"error", err)
	}
}

func (s Sweeper) interval() time.Duration { return cmp.Or(s.Interval, sweepInterval) }

// sweep first reads the open sessions, the locks and the chains at work. Then it looks up the chains of these records
// in Temporal. Chains continue meanwhile, so sweep settles a record only if the record has not changed since sweep
// read it. If a session was closed meanwhile, its report stays. If a new run of the chain has locked a service, the
// service stays locked.
func (s Sweeper) sweep(ctx context.Context) error {
	if err := s.Records.Claim(ctx, s.Namespace, time.Now()); err != nil {
		return err
	}
	sessions, err := s.Records.Running(ctx)
	if err != nil {
		return err
	}
	locks, err := s.Records.ServiceLocks(ctx)
	if err != nil {
		return err
	}
	working, err := s.Records.ChainsAtWork(ctx)
	if err != nil {
		return err
	}
	chains := &chainStates{temporal: s.Temporal, converter: s.Converter, endings: map[escalation.ChainRun]ending{}}
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
	for _, chain := range working {
		if err := s.abandonIncidents(ctx, chains, chain); err != nil {
			return err
		}
	}
	if err := s.endSnoozes(ctx); err != nil {
		return err
	}
	if len(chains.problems) > 0 { // only log the problems, because the next sweep looks up these chains again
		s.Logger.Warn("cannot tell whether some chains have ended", "error", errors.Join(chains.problems...))
	}
	return nil
}

// settleSession closes the session if its chain has ended.
func (s Sweeper) settleSession(ctx context.Context, chains *chainStates, session escalation.Session) error {
	end := chains.ending(ctx, escalation.ChainRun{ChainID: session.ChainID, FirstRunID: session.FirstRunID})
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
		s.Logger.Warn("settled an abandoned session", "session", session.ID, "chain", session.ChainID, "reason",
			end.reason)
	}
	return err
}

// releaseLock releases a lock if its chain has ended. The lock is on one service or on all services.
func (s Sweeper) releaseLock(ctx context.Context, chains *chainStates, lock store.ServiceLock) error {
	end := chains.ending(ctx, escalation.ChainRun{ChainID: lock.ChainID})
	if end.reason == "" {
		return nil
	}
	released, err := s.Records.ReleaseLock(ctx, lock)
	if released {
		s.Logger.Warn("released an abandoned service", "service", cmp.Or(lock.Service, "all"), "chain", lock.ChainID,
			"reason", end.reason)
	}
	return err
}

// abandonIncidents records that an ended chain no longer takes care of any incident. If the chain has not ended,
// abandonIncidents does nothing.
func (s Sweeper) abandonIncidents(ctx context.Context, chains *chainStates, chain store.ChainAtWork) error {
	end := chains.ending(ctx, chain.ChainRun)
	if end.reason == "" {
		return nil
	}
	abandoned, err := s.Records.AbandonIncidents(ctx, chain, end.reason)
	if abandoned {
		s.Logger.Warn("an ended chain no longer takes care of its incidents", "chain", chain.ChainID, "reason",
			end.reason)
	}
	return err
}

// endSnoozes has people told of the snoozes that have ended.
func (s Sweeper) endSnoozes(ctx context.Context) error {
	ended, err := s.Records.EndedSnoozes(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, incident := range ended {
		if err := s.TellSnoozeEnded(ctx, incident); err != nil {
			return fmt.Errorf("tell that the snooze of %s has ended: %w", incident.ID, err)
		}
		if err := s.Records.EndSnooze(ctx, incident); err != nil {
			return err
		}
	}
	return nil
}

// ending describes how a chain ended.
type ending struct {
	// reason says how the chain ended; "" if the chain still runs or its state is unknown.
	reason string
	// agents holds the agents that were running when the chain ended.
	agents []activities.PendingAgent
}

// chainStates looks up chains in Temporal, each chain only once.
type chainStates struct {
	temporal  Describer
	converter converter.DataConverter
	// endings holds the results of earlier lookups.
	endings  map[escalation.ChainRun]ending
	problems []error
}

// ending returns how a chain ended. It returns zero if the chain still runs, or if its state is unknown.
func (s *chainStates) ending(ctx context.Context, chain escalation.ChainRun) ending {
	end, known := s.endings[chain]
	if known {
		return end
	}
	end, err := s.endingOf(ctx, chain)
	if err != nil {
		s.problems = append(s.problems, fmt.Errorf("look at chain %s: %w", chain.ChainID, err))
	}
	s.endings[chain] = end
	return end
}

// endingOf looks up how a chain ended. For a running chain it returns zero. While a later chain with the same workflow
// ID runs, the chain has ended, because Temporal runs only one of them at a time.
func (s *chainStates) endingOf(ctx context.Context, chain escalation.ChainRun) (ending, error) {
	described, err := s.temporal.DescribeWorkflowExecution(ctx, chain.ChainID, "")
	end, err := s.endingIn(described, err)
	if err != nil || end.reason != "" || chain.FirstRunID == "" {
		return end, err
	}
	info := described.GetWorkflowExecutionInfo()
	if chain.FirstRunID == info.GetFirstRunId() || chain.FirstRunID == info.GetExecution().GetRunId() {
		return ending{}, nil
	}
	// The runs of a cron schedule share their first run. So only the chain's own first run shows whether it is another
	// chain. If that one has been continued as new, the running one may be its continuation.
	described, err = s.temporal.DescribeWorkflowExecution(ctx, chain.ChainID, chain.FirstRunID)
	return s.endingIn(described, err)
}

// endingIn returns how the described run ended; zero if it runs or was continued as new.
func (s *chainStates) endingIn(
	described *workflowservice.DescribeWorkflowExecutionResponse, err error,
) (ending, error) {
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return ending{reason: "its chain is unknown to Temporal"}, nil
	}
	if err != nil {
		return ending{}, err
	}
	status := described.GetWorkflowExecutionInfo().GetStatus()
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return ending{}, nil
	default:
		return ending{
			reason: "its chain ended without closing it: " + strings.ToLower(status.String()),
			agents: pendingAgents(described.GetPendingActivities(), s.converter),
		}, nil
	}
}
