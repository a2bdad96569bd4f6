package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// Options configure the telemetry of a process.
type Options struct {
	// MetricsAddress is the address (host:port) at which the process serves metrics and health checks; empty for none.
	MetricsAddress string
	// PprofAddress is the address (host:port) at which the process serves profiles; empty for none. It must be a
	// loopback address.
	PprofAddress string
	// RefuseProfiles returns an error for a connection that is not permitted to read profiles. If RefuseProfiles is
	// nil, every connection is permitted to read profiles.
	RefuseProfiles func(net.Conn) error
	// Environ holds environment variables of the form NAME=value. OpenTelemetry's own variables among them turn traces
	// on. Environ must be the environment of this process, because OpenTelemetry reads its other settings directly from
	// there.
	Environ []string
	// Service is the name of this program in traces. The variable OTEL_SERVICE_NAME can replace this name.
	Service string
	// Version is the version of this program.
	Version string
	Logger  *slog.Logger
}

// Telemetry holds the telemetry of one process.
type Telemetry struct {
	logger  *slog.Logger
	metrics *Metrics
	sdk     client.MetricsHandler
	tracing *tracing
	probe   atomic.Pointer[Probe]
	polls   polls
	ports   []int
	stops   []func() error
}

// Start starts those parts of the telemetry that options configure. If options configure none, Start starts nothing.
// The caller must close the result.
func Start(ctx context.Context, options Options) (_ *Telemetry, err error) {
	t := &Telemetry{logger: options.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if options.MetricsAddress != "" {
		t.metrics = NewMetrics(options.Version)
		if t.sdk, err = sdkHandler(t.metrics.registry, options.Logger); err != nil {
			return t, err
		}
		if err := t.listen(ctx, "METRICS", options.MetricsAddress, t.metricsHandler()); err != nil {
			return t, err
		}
	}
	if wantsTraces(options.Environ) {
		if t.tracing, err = startTracing(ctx, options); err != nil {
			return t, err
		}
	}
	if options.PprofAddress != "" {
		if err := t.listen(ctx, "PPROF", options.PprofAddress, pprofHandler(options.RefuseProfiles)); err != nil {
			return t, err
		}
	}
	return t, nil
}

// listen starts an HTTP server with the given address and handler. The address comes from the setting
// CLAUDEOPS_<name>_ADDRESS, which the error and the log mention.
func (t *Telemetry) listen(ctx context.Context, name, address string, handler http.Handler) error {
	port, stop, err := serve(ctx, address, handler, t.logger)
	if err != nil {
		return fmt.Errorf("listen at CLAUDEOPS_%s_ADDRESS=%s: %w; choose another port, one for each worker of a host",
			name, address, err)
	}
	t.ports, t.stops = append(t.ports, port), append(t.stops, stop)
	t.logger.Info("serving telemetry", "setting", "CLAUDEOPS_"+name+"_ADDRESS", "port", port)
	return nil
}

// Metrics returns the metrics; nil if they are off.
func (t *Telemetry) Metrics() *Metrics {
	if t == nil {
		return nil
	}
	return t.metrics
}

// Ports returns the ports on which this process serves metrics and profiles.
func (t *Telemetry) Ports() []int {
	if t == nil {
		return nil
	}
	return t.ports
}

// Instrument adds metrics and traces to a Temporal client. Workers that use the client get the metrics and traces, too.
func (t *Telemetry) Instrument(options *client.Options) {
	if t == nil {
		return
	}
	if t.sdk != nil {
		options.MetricsHandler = t.sdk
		options.ConnectionOptions.DialOptions = append(
			slices.Clip(options.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(t.polls.intercept))
	}
	if t.tracing != nil {
		options.Interceptors = append(options.Interceptors, t.tracing.interceptor)
	}
}

// SetProbe sets the check for /readyz. If probe is nil, the worker is not ready.
func (t *Telemetry) SetProbe(probe Probe) {
	if t == nil {
		return
	}
	if probe == nil {
		t.probe.Store(nil)
		return
	}
	t.probe.Store(&probe)
}

// ready returns the reason why the worker is not ready; nil if the worker is ready.
func (t *Telemetry) ready(ctx context.Context) error {
	probe := t.probe.Load()
	if probe == nil {
		return errNotWorking
	}
	if err := t.polls.check(time.Now()); err != nil {
		return err
	}
	return (*probe)(ctx)
}

// Close stops all servers.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, stop := range t.stops {
		errs = append(errs, stop())
	}
	t.stops = nil
	if t.tracing != nil {
		errs = append(errs, t.tracing.close())
	}
	return errors.Join(errs...)
}
