// Command worker is the production worker. It runs chains and their agents on a Temporal service. It reads its
// configuration only from the environment. The command `claudeops config` lists the settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // this program is also the shell of its agents
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/redact"
)

func main() {
	os.Exit(int(program.Main(execute, program.Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})))
}

// help is printed for --help.
const help = `Worker runs escalation chains and their Claude agents on a Temporal service, until it gets SIGINT or
SIGTERM: then running agents may finish for a while (CLAUDEOPS_DRAIN_TIMEOUT), and the rest is handed over.
A second signal ends it at once.

It takes no arguments but --help and --version. It is configured by CLAUDEOPS_ variables, which ` + "`claudeops config`" + ` and
docs/configuration.md list, and finds Temporal by Temporal's own settings: TEMPORAL_ADDRESS,
TEMPORAL_NAMESPACE, temporal.toml; without an address, the ` + "`claudeops up`" + ` on its state directory.
` + "`claudeops doctor`" + ` checks that all it needs is there.

All workers of a task queue must share one set of records. On one host, they share a CLAUDEOPS_STATE_DIR with its
SQLite file. On several hosts, they share a PostgreSQL database (CLAUDEOPS_DATABASE_URL) and an archive of
conversations (CLAUDEOPS_TRANSCRIPTS): see docs/many-hosts.md.

Exit codes:
  0  told to stop, it has drained
  1  something did not work
  2  the command line or the configuration is wrong; nothing was done
`

// execute runs the worker until ctx ends, and returns the exit code. If the only argument is a flag for the help or the
// version, execute prints that text and does not run the worker.
func execute(ctx context.Context, p program.Process) program.ExitCode {
	switch {
	case len(p.Args) == 1 && (p.Args[0] == "--help" || p.Args[0] == "-h"):
		_, _ = io.WriteString(p.Stdout, help)
		return program.ExitOK
	case len(p.Args) == 1 && p.Args[0] == "--version":
		_, _ = fmt.Fprintln(p.Stdout, "worker", program.Version())
		return program.ExitOK
	}
	err := run(ctx, p)
	if errors.Is(err, supervisor.ErrConnectionSettings) || errors.Is(err, telemetry.ErrTracing) {
		err = program.Misuse(err)
	}
	if err != nil {
		p.Complain("worker", err)
	}
	return program.CodeOf(err)
}

// run runs the worker with the configuration in the environment until ctx ends. It logs to stderr.
func run(ctx context.Context, p program.Process) (err error) {
	if len(p.Args) > 0 {
		return program.Misuse(fmt.Errorf("it takes no arguments, and was given %q (see `worker --help`)", p.Args[0]))
	}
	cfg, err := config.Load(p.Environ)
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(p.Stderr, cfg.Log, redact.New(p.Environ))
	supervisor.WarnOfRoot(ctx, cfg, logger)
	supervisor.WarnOfVariables(ctx, cfg, p.Environ, logger)
	go supervisor.WarnOfAccess(ctx, cfg, p.Environ, logger) // the worker starts although the API is slow
	options, err := supervisor.ConnectionOptions(p.Environ, cfg, logger)
	if err != nil {
		return err
	}
	if supervisor.IsLocal(options, cfg.State.Dir) {
		cfg = cfg.WithFreeHeartbeats()
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this host's name: %w", err)
	}
	watched, err := supervisor.StartTelemetry(ctx, cfg, p.Environ, program.Version(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watched.Close()) }()
	watched.Instrument(&options)
	s, err := supervisor.New(ctx, cfg, supervisor.Environment{
		Environ: p.Environ, Host: host, Version: program.Version(), Logger: logger, Telemetry: watched,
	})
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
	return s.Run(ctx, c, options.Namespace)
}
