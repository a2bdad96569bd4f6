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
// deleted. What such a session has cost is not known; its record says so.
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
	chains := &chainStates{client: c, reasons: map[string]string{}}
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
	reason := chains.gone(ctx, session.ChainID)
	if reason == "" {
		return nil
	}
	report := session.Report
	report.Status, report.Error, report.CostEstimated = escalation.SessionFailed, reason, true
	settled, err := s.store.SettleSession(ctx, session.SessionID, report, time.Now())
	if settled {
		s.logger.Warn("settled an abandoned session", "session", session.ID, "chain", session.ChainID, "reason", reason)
	}
	return err
}

// settleLock releases a service if its chain is gone.
func (s *Supervisor) settleLock(ctx context.Context, chains *chainStates, lock store.ServiceLock) error {
	reason := chains.gone(ctx, lock.ChainID)
	if reason == "" {
		return nil
	}
	released, err := s.store.ReleaseLock(ctx, lock)
	if released {
		s.logger.Warn("released an abandoned service", "service", lock.Service, "chain", lock.ChainID, "reason", reason)
	}
	return err
}

// chainStates asks Temporal about chains, about each of them once.
type chainStates struct {
	client client.Client
	// reasons holds why a chain will close nothing any more, by its ID; "" if it will, or if
	// nobody knows.
	reasons  map[string]string
	problems []error
}

// gone returns why nobody will close what a chain has left open; "" if it still runs, or may.
func (s *chainStates) gone(ctx context.Context, chainID string) string {
	reason, known := s.reasons[chainID]
	if known {
		return reason
	}
	reason, err := abandoned(ctx, s.client, chainID)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	s.reasons[chainID] = reason
	return reason
}

// abandoned returns why nobody will close what a chain has left open; "" if it still runs.
func abandoned(ctx context.Context, c client.Client, chainID string) (string, error) {
	described, err := c.DescribeWorkflowExecution(ctx, chainID, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return "its chain is unknown to Temporal", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at chain %s: %w", chainID, err)
	}
	status := described.GetWorkflowExecutionInfo().GetStatus()
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return "", nil
	default:
		return "its chain ended without closing it: " + strings.ToLower(status.String()), nil
	}
}
