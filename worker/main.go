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

	_ "github.com/claudeops/claudeops/internal/agentshell" // this program is also the shell of its agents
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := execute(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(int(code))
}

// exitCode is what the process ends with, as for starter.
type exitCode int

// The exit codes.
const (
	exitOK      exitCode = 0 // it has drained, or the help was printed
	exitFailure exitCode = 1 // something did not work
	exitUsage   exitCode = 2 // the command line or the configuration is wrong; nothing was done
)

// help is printed for --help.
const help = `Worker runs escalation chains and their Claude agents on a Temporal service, until it gets SIGINT or
SIGTERM: then running agents may finish for a while (CLAUDEOPS_DRAIN_TIMEOUT), and the rest is handed over.
A second signal ends it at once.

It takes no arguments. It is configured by CLAUDEOPS_ variables, which ` + "`starter config`" + ` and
docs/configuration.md list, and finds Temporal by Temporal's own settings: TEMPORAL_ADDRESS,
TEMPORAL_NAMESPACE, temporal.toml; without an address, the ` + "`starter up`" + ` on its state directory.
` + "`starter doctor`" + ` checks that all it needs is there.

All workers of a task queue must share one set of records, a SQLite file: they run on one host, with one
CLAUDEOPS_STATE_DIR.

Exit codes:
  0  told to stop, it has drained
  1  something did not work
  2  the command line or the configuration is wrong; nothing was done
`

// execute works until ctx ends, or prints the help if args ask for it, and returns the exit code.
func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) exitCode {
	switch {
	case len(args) == 0:
	case args[0] == "--help" || args[0] == "-h":
		_, _ = io.WriteString(stdout, help)
		return exitOK
	default:
		_, _ = fmt.Fprintf(stderr, "worker: it takes no arguments, and was given %q (see `worker --help`)\n", args[0])
		return exitUsage
	}
	err := run(ctx, environ, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "worker:", redact.New(environ).Text(err.Error()))
	}
	return codeOf(err)
}

// codeOf returns the exit code for what run returned.
func codeOf(err error) exitCode {
	_, invalid := errors.AsType[*config.Error](err)
	switch {
	case err == nil:
		return exitOK
	case invalid, errors.Is(err, supervisor.ErrConnectionSettings):
		return exitUsage
	default:
		return exitFailure
	}
}

// run works as environ says until ctx ends, and logs to stderr.
func run(ctx context.Context, environ []string, stderr io.Writer) (err error) {
	cfg, err := config.Load(environ)
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(stderr, cfg.Log, redact.New(environ))
	options, err := supervisor.ConnectionOptions(environ, cfg.State.Dir, logger)
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
