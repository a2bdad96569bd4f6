package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// observeInterval is the time between two observations. Prometheus usually scrapes at the same interval or a
	// shorter one.
	observeInterval = time.Minute
	// maxObservedGates limits the number of chains whose records are read to find the oldest open gate. `claudeops
	// gate` has the same limit.
	maxObservedGates = 2_000
)

// observer sets the metrics about all chains. It reads the figures from Temporal and from the records.
type observer struct {
	client    client.Client
	namespace string
	records   *store.Store
	metrics   *telemetry.Metrics
	logger    *slog.Logger
	interval  time.Duration
}

// run calls observe at every interval until ctx ends.
func (o observer) run(ctx context.Context) {
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	for {
		if err := o.observe(ctx); err != nil && ctx.Err() == nil {
			o.logger.Warn("the metrics of gates, sessions and incidents are not up to date", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// observe sets the metrics once. After an error, the metrics keep their earlier values.
func (o observer) observe(ctx context.Context) error {
	seen := telemetry.Observation{At: time.Now(), Incidents: map[escalation.IncidentState]int{}}
	sessions, sessionsErr := o.records.Running(ctx)
	incidents, incidentsErr := o.records.Incidents(ctx, store.IncidentFilter{})
	if err := errors.Join(sessionsErr, incidentsErr); err != nil {
		o.metrics.StoreFailed(string(store.OpObserve), err)
		return err
	}
	seen.Sessions = len(sessions)
	for i := range sessions {
		seen.OldestSession = earlier(seen.OldestSession, sessions[i].StartedAt)
	}
	for i := range incidents {
		seen.Incidents[incidents[i].State]++
	}
	waiting, err := o.openGates(ctx)
	if err != nil {
		return err
	}
	seen.Gates = len(waiting)
	for _, chainID := range waiting[:min(len(waiting), maxObservedGates)] {
		opened, err := o.openedAt(ctx, chainID)
		if err != nil {
			o.metrics.StoreFailed(string(store.OpObserve), err)
			return err
		}
		seen.OldestGate = earlier(seen.OldestGate, opened)
	}
	o.metrics.Observe(seen)
	return nil
}

// openGates returns the IDs of the running chains that wait for a person.
func (o observer) openGates(ctx context.Context) ([]string, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: o.namespace, Query: fmt.Sprintf("WorkflowType IN ('%s') AND %s = '%s' AND ExecutionStatus = "+
			"'Running'",
			strings.Join(workflows.ChainWorkflows(), "', '"), workflows.GateAttribute.GetName(), workflows.GateOpen),
	}
	var chains []string
	for {
		page, err := o.client.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the open gates: %w", err)
		}
		for _, execution := range page.GetExecutions() {
			chains = append(chains, execution.GetExecution().GetWorkflowId())
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			return chains, nil
		}
	}
}

// openedAt returns the time at which the open gate of a chain was opened; zero if this time is not in the records.
func (o observer) openedAt(ctx context.Context, chainID string) (time.Time, error) {
	events, err := o.records.Events(ctx, chainID)
	var opened time.Time
	for i := range events {
		switch events[i].Kind { //nolint:exhaustive // only the events of gates matter
		case escalation.EventGateOpened:
			opened = events[i].At
		case escalation.EventGateClosed:
			opened = time.Time{}
		}
	}
	return opened, err
}

// earlier returns the earlier of two times. It ignores a zero time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// The reasons why a worker is not ready.
var (
	errNoTemporal = errors.New("no answer from Temporal")
	errNoDatabase = errors.New("no answer from the database")
)

// ready returns a probe that asks Temporal and the database. The probe's errors are fixed texts, because an error of a
// connection can contain credentials.
func (s *Supervisor) ready(c client.Client) telemetry.Probe {
	return func(ctx context.Context) error {
		if _, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}); err != nil {
			s.logger.Debug("not ready", "error", err)
			return errNoTemporal
		}
		if err := s.store.Ping(ctx); err != nil {
			s.logger.Debug("not ready", "error", err)
			return errNoDatabase
		}
		return nil
	}
}
