package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/redact"
)

// AllInOne runs a Temporal server, its Web UI and a worker in this process.
type AllInOne struct {
	lock   *supervisor.LocalLock
	server *embedded.Server
	pages  *pageServer // nil if the pages are not served
	client client.Client
	worker *supervisor.Supervisor
	logger *slog.Logger

	stopWorker context.CancelFunc
	worked     chan error // receives the worker's error once, after the worker has ended
}

// Pages say where an AllInOne serves the pages, and what they call.
type Pages struct {
	Port int
	// Operations returns the operations with the settings in environ.
	Operations func(environ []string, logger *slog.Logger) *operations.Operations

	// temporalUI returns the address of a chain in Temporal's Web UI.
	temporalUI func(chainID, runID string) string
}

// StartAllInOne starts the server, the Web UI, the worker and, if pages is not nil, the pages. If one of these fails,
// StartAllInOne stops those that have already started.
func StartAllInOne(
	ctx context.Context, cfg config.Config, options embedded.Options, pages *Pages, environment supervisor.Environment,
) (_ *AllInOne, err error) {
	cfg = cfg.WithFreeHeartbeats()
	one := &AllInOne{logger: environment.Logger, worked: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, one.release())
		}
	}()
	if err := cfg.MakeDirs(); err != nil {
		return nil, err
	}
	if one.lock, err = supervisor.LockLocal(cfg.State.Dir); err != nil {
		return nil, err
	}
	// Pass the token in a variable with TOKEN in its name. The values of variables with such names are masked wherever
	// they occur. Agents do not get this variable.
	environment.Environ = append(slices.Clone(environment.Environ), "STARTER_UP_TOKEN="+one.lock.Token)
	if one.worker, err = supervisor.New(ctx, cfg, environment); err != nil {
		return nil, err
	}
	options.Token, options.Admit = one.lock.Token, func(c embedded.Connection) error { return admitPeople(c) }
	if pages != nil {
		pages.temporalUI = func(chainID, runID string) string {
			return one.server.WorkflowURL(embedded.DefaultNamespace, chainID, runID)
		}
		if one.pages, err = openLocalPages(ctx, cfg, *pages, one.lock.Token, environment.Logger); err != nil {
			return nil, err
		}
		options.Guard = one.pages.access.OwnerOnly
		one.worker.KeepAgentsFrom(one.pages.port())
	}
	if one.server, err = embedded.Start(ctx, options); err != nil {
		return nil, err
	}
	one.worker.KeepAgentsFrom(one.server.Ports()...)
	if err := one.connect(ctx, environment, cfg.Encryption.Keys); err != nil {
		return nil, err
	}
	if one.pages != nil {
		does := pages.Operations(atServer(environment.Environ, one.server.Address()), environment.Logger)
		if err := one.pages.prepare(does); err != nil {
			return nil, err
		}
		one.pages.serve(context.WithoutCancel(ctx))
	}
	// The worker must continue after ctx has ended, so that Stop can drain the worker while the server still runs.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	one.stopWorker = stop
	go func() { one.worked <- one.worker.Run(working, one.client, embedded.DefaultNamespace) }()
	return one, nil
}

// atServer returns environ with the address of the own Temporal server, whatever server environ names. The token is
// found by the state directory.
func atServer(environ []string, address string) []string {
	own := slices.DeleteFunc(slices.Clone(environ),
		func(variable string) bool { return strings.HasPrefix(variable, "TEMPORAL_") })
	return append(own, "TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE="+embedded.DefaultNamespace)
}

// connect connects to the server, prepares its namespace, and publishes the address for other programs.
func (one *AllInOne) connect(
	ctx context.Context, environment supervisor.Environment, keys *encryption.Keys,
) (err error) {
	local := supervisor.LocalServer{
		Address: one.server.Address(), WebUI: one.server.UIURL(), Token: one.lock.Token,
		Process: supervisor.ThisProcess(environment.Environ),
	}
	if one.pages != nil {
		local.Pages = one.pages.url()
	}
	options := local.ClientOptions(supervisor.WithConverters(client.Options{
		Namespace: embedded.DefaultNamespace, Logger: log.NewStructuredLogger(one.logger),
	}, redact.New(environment.Environ), keys))
	environment.Telemetry.Instrument(&options)
	one.client, err = supervisor.Connect(ctx, options)
	if err != nil {
		return err
	}
	if err := supervisor.SetUpNamespace(ctx, one.client, embedded.DefaultNamespace); err != nil {
		return err
	}
	return one.lock.Announce(local)
}

// admitPeople refuses connections of agents to Temporal, its Web UI and the pages. It recognises agents only on Linux.
func admitPeople(conn claude.Connection) error {
	agent, err := claude.FromAgent(conn)
	switch {
	case err != nil:
		return fmt.Errorf("this server cannot tell whether an agent asks: %w", err)
	case agent:
		return errors.New("this server is not for agents")
	}
	return nil
}

// wait waits until ctx ends or the worker fails. Then it calls Stop.
func (one *AllInOne) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return one.Stop()
	case err := <-one.worked:
		one.worked <- nil // the error is reported here; Stop must not report it again
		return errors.Join(err, one.Stop())
	}
}

// Address returns the address of the Temporal server.
func (one *AllInOne) Address() string { return one.server.Address() }

// Stop drains the worker and stops all parts.
func (one *AllInOne) Stop() error {
	one.stopWorker()
	return errors.Join(<-one.worked, one.release())
}

// release stops the started parts, the last one first.
func (one *AllInOne) release() error {
	var errs []error
	if one.pages != nil {
		errs = append(errs, one.pages.close())
	}
	if one.client != nil {
		one.client.Close()
	}
	if one.server != nil {
		errs = append(errs, one.server.Stop())
	}
	if one.worker != nil {
		errs = append(errs, one.worker.Close())
	}
	if one.lock != nil {
		errs = append(errs, one.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
