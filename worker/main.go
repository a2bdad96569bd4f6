// Command worker is the production worker: it runs chains and their agents on a Temporal
// service. It is configured by the environment alone; `starter config` lists the settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/process"
	"github.com/claudeops/claudeops/internal/supervisor"
)

func main() {
	process.InitIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	err := run(ctx, os.Environ(), os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run works as environ says until ctx ends, and logs to stderr.
func run(ctx context.Context, environ []string, stderr io.Writer) (err error) {
	cfg, err := config.Load(environ)
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(stderr, cfg.Log)
	options, err := supervisor.ConnectionOptions(environ, logger)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this host's name: %w", err)
	}
	s, err := supervisor.New(ctx, cfg, supervisor.Environment{Environ: environ, Host: host, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := supervisor.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := supervisor.SetUpNamespace(ctx, c, options.Namespace); err != nil {
		return err
	}
	return s.Run(ctx, c)
}
