package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// allInOne is a Temporal server, its Web UI and a worker in this process.
type allInOne struct {
	lock   *supervisor.LocalLock
	server *embedded.Server
	client client.Client
	worker *supervisor.Supervisor
	logger *slog.Logger

	stopWorker context.CancelFunc
	worked     chan error // gets the worker's end, once
}

// startAllInOne starts everything, or nothing.
func startAllInOne(
	ctx context.Context, cfg config.Config, options embedded.Options, environment supervisor.Environment,
) (_ *allInOne, err error) {
	one := &allInOne{logger: environment.Logger, worked: make(chan error, 1)}
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
	// Wherever the token turns up it is masked. Agents do not get the variable.
	environment.Environ = append(slices.Clone(environment.Environ), "STARTER_UP_TOKEN="+one.lock.Token)
	if one.worker, err = supervisor.New(ctx, cfg, environment); err != nil {
		return nil, err
	}
	options.Token, options.AdmitUI = one.lock.Token, admitPeople
	if one.server, err = embedded.Start(ctx, options); err != nil {
		return nil, err
	}
	one.worker.KeepAgentsFrom(one.server.Ports()...)
	if err := one.connect(ctx, redact.New(environment.Environ)); err != nil {
		return nil, err
	}
	// The worker must outlive ctx: it is told to drain by stop, while the server still answers.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	one.stopWorker = stop
	go func() { one.worked <- one.worker.Run(working, one.client) }()
	return one, nil
}

// connect connects to the server, prepares its namespace and lets other programs find it.
func (one *allInOne) connect(ctx context.Context, mask *redact.Redactor) (err error) {
	local := supervisor.LocalServer{Address: one.server.Address(), WebUI: one.server.UIURL(), Token: one.lock.Token}
	one.client, err = supervisor.Connect(ctx, local.ClientOptions(client.Options{
		Namespace: embedded.DefaultNamespace, Logger: log.NewStructuredLogger(one.logger),
		FailureConverter: supervisor.MaskFailures(mask),
	}))
	if err != nil {
		return err
	}
	if err := supervisor.SetUpNamespace(ctx, one.client, embedded.DefaultNamespace); err != nil {
		return err
	}
	return one.lock.Announce(local)
}

// admitPeople refuses the Web UI to agents. On systems other than Linux nobody can tell them from others.
func admitPeople(conn net.Conn) error {
	agent, err := claude.FromAgent(conn)
	switch {
	case err != nil:
		return fmt.Errorf("this Web UI cannot tell whether an agent asks: %w", err)
	case agent:
		return errors.New("this Web UI is not for agents")
	}
	return nil
}

// wait returns when ctx ends or the worker fails, after everything was drained and stopped.
func (one *allInOne) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return one.stop()
	case err := <-one.worked:
		one.worked <- nil // its end is told here, and only once
		return errors.Join(err, one.stop())
	}
}

// stop drains the worker and ends the rest.
func (one *allInOne) stop() error {
	one.stopWorker()
	return errors.Join(<-one.worked, one.release())
}

// release ends what was started, in the reverse order.
func (one *allInOne) release() error {
	var errs []error
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
