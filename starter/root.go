package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// process is what the program takes from the operating system, passed as values so that
// tests can give their own.
type process struct {
	args           []string
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	// now is the time, in the zone in which people are told times.
	now func() time.Time
	// patience is how long a worker has to answer a question.
	patience time.Duration
}

// app is the program while it runs one command.
type app struct {
	process
	output outputFormat
	// started says that a command began: what fails before is the command line's fault.
	started bool
	// masks is what masking returns, once it was called.
	masks *masking
}

// execute runs the command that the arguments name and returns the exit code.
func execute(ctx context.Context, p process) exitCode {
	a := &app{process: p, output: outputText}
	root := a.rootCommand()
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = misuse(fmt.Errorf("%w (see `%s --help`)", err, cmd.CommandPath()))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		_, _ = fmt.Fprintln(p.stderr, "starter:", redact.New(p.environ).Text(err.Error()))
	}
	return codeOf(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Start and watch escalation chains of Claude agents",
		Long: "Starter is the operator's command line of Claude Ops. It reads CLAUDEOPS_ variables (see `starter config`).\n" +
			"It finds the `starter up` that runs on its state directory, and another Temporal by Temporal's own settings:\n" +
			"TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, temporal.toml.\n\n" + exitHelp,
		SilenceUsage:     true,
		SilenceErrors:    true,
		PersistentPreRun: func(*cobra.Command, []string) { a.started = true },
	}
	root.SetFlagErrorFunc(flagProblem)
	root.PersistentFlags().VarP(&a.output, "output", "o", "how results are printed: text or json")
	root.AddCommand(
		a.demoCommand(), a.upCommand(),
		a.runCommand(), a.watchCommand(), a.gateCommand(), a.chainCommand(), a.chainsCommand(), a.escalateCommand(), a.cancelCommand(),
		a.scheduleCommand(),
		a.configCommand(), a.envCommand(), a.doctorCommand(), a.notifyCommand(), a.policyCommand(),
	)
	return root
}

// connection is a client of Temporal and the namespace it speaks for.
type connection struct {
	client.Client
	namespace string
}

// connect reads the configuration and connects to Temporal.
func (a *app) connect(ctx context.Context) (connection, config.Config, error) {
	cfg, err := config.Load(a.environ)
	if err != nil {
		return connection{}, cfg, err
	}
	options, err := supervisor.ConnectionOptions(a.environ, cfg.State.Dir, a.quietLogger())
	if err != nil {
		return connection{}, cfg, misuse(err)
	}
	options.DataConverter = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), a.masking())
	c, err := supervisor.Connect(ctx, options)
	return connection{c, options.Namespace}, cfg, err
}

// quietLogger is for commands whose output is their result: only problems are logged.
func (a *app) quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact.New(a.environ).Attr}))
}
