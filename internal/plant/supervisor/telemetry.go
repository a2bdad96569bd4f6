package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

// StartTelemetry starts the configured telemetry of a worker. The argument environ ("NAME=value") must be the
// environment of the process. The caller must close the telemetry.
func StartTelemetry(
	ctx context.Context, cfg config.Config, environ []string, version string, logger *slog.Logger,
) (*telemetry.Telemetry, error) {
	return telemetry.Start(ctx, telemetry.Options{
		MetricsAddress: cfg.Telemetry.MetricsAddress, PprofAddress: cfg.Telemetry.PprofAddress,
		RefuseProfiles: refuseAgents, Environ: environ, Service: "claudeops-worker", Version: version, Logger: logger,
	})
}

// refuseAgents returns an error if an agent has opened the connection. It recognises agents only on Linux.
func refuseAgents(conn net.Conn) error {
	agent, err := claude.FromAgent(conn)
	switch {
	case err != nil:
		return fmt.Errorf("tell whether an agent asks: %w", err)
	case agent:
		return errors.New("an agent asks")
	}
	return nil
}

// interceptors returns the interceptors of a worker: the given ones, and those that all workers have.
func (s *Supervisor) interceptors(own ...interceptor.WorkerInterceptor) []interceptor.WorkerInterceptor {
	all := slices.Concat(own, []interceptor.WorkerInterceptor{s.leases.Interceptor()})
	if metrics := s.telemetry.Metrics(); metrics != nil {
		all = append(all, &chainCounter{metrics: metrics})
	}
	return all
}

// beginObserving observes the gates, sessions and incidents of all chains until the caller calls stop. If there are no
// metrics, beginObserving does nothing.
func (s *Supervisor) beginObserving(ctx context.Context, c client.Client, namespace string) (stop func()) {
	metrics := s.telemetry.Metrics()
	if metrics == nil {
		return func() {}
	}
	seen := observer{
		client: c, namespace: namespace, records: s.store, metrics: metrics, logger: s.logger,
		interval: cmp.Or(s.sweepInterval, observeInterval),
	}
	return inBackground(ctx, seen.run)
}

// limitsOf returns the configured values with which alerts compare metrics.
func limitsOf(cfg config.Config) telemetry.Limits {
	limits := telemetry.Limits{
		Agents: cfg.Worker.MaxConcurrentAgents, DayBudgetUSD: cfg.Limits.DayBudgetUSD,
		Models: map[escalation.Tier]string{},
	}
	policy := cfg.Policy()
	for _, tier := range escalation.Tiers() {
		limits.Models[tier] = policy.For(tier).Model
	}
	return limits
}
