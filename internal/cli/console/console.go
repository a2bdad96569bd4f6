// Package console holds code that all commands of starter share: the process's streams and environment, flags and
// arguments, the output of results, the connection to Temporal, and the masking of secrets.
package console

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/discover"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/telemetry"
)

// MaskedHint tells people that their input contained a secret, and how agents get credentials instead.
const MaskedHint = "starter: what you gave holds a secret. It was masked before it was sent, because histories keep what is sent; " +
	"agents get credentials by CLAUDEOPS_PASS_ENV\n"

// Console holds the streams, the environment and the settings of one command.
type Console struct {
	program.Process

	// Clock returns the current time. The zone of this time is the time zone for output.
	Clock Clock
	// Patience limits how long the command waits for a worker's answer to a query.
	Patience time.Duration
	Output   Format
	// Machine returns the machine at which `init` looks; nil for the one on which the program runs.
	Machine func(environ []string) discover.Host

	// Operations does what the commands are for.
	Operations *operations.Operations

	// goesBack reports that the person has pressed the key that leads to the previous question.
	goesBack bool
	// telemetry traces the calls to Temporal; nil before the first connection.
	telemetry *telemetry.Telemetry
}

// NewOperations returns the operations of the console's commands.
func (c *Console) NewOperations() *operations.Operations {
	return operations.New(operations.Options{
		Environ: c.Environ, Logger: c.QuietLogger(), Clock: c.Clock, Patience: c.Patience,
		Masked:    sync.OnceFunc(func() { _, _ = io.WriteString(c.Stderr, MaskedHint) }),
		Telemetry: c.startTelemetry,
	})
}

// In returns a console for a command with other settings, which prints to the same streams. Close it, too.
func (c *Console) In(environ []string) *Console {
	other := &Console{Process: c.Process, Clock: c.Clock, Patience: c.Patience, Output: Text, Machine: c.Machine}
	other.Environ = environ
	other.Operations = other.NewOperations()
	return other
}

// startTelemetry starts tracing the calls to Temporal, if the environment configures traces.
func (c *Console) startTelemetry(ctx context.Context) (_ *telemetry.Telemetry, err error) {
	c.telemetry, err = telemetry.Start(ctx, telemetry.Options{
		Environ: c.Environ, Service: "claudeops-starter", Version: program.Version(), Logger: c.QuietLogger(),
	})
	return c.telemetry, program.Misuse(err)
}

// Connect connects to Temporal, if no connection exists yet, and returns the connection and the settings.
func (c *Console) Connect(ctx context.Context) (operations.Connection, config.Config, error) {
	return c.Operations.Connect(ctx)
}

// Close ends the connections of the command, and sends its remaining traces.
func (c *Console) Close() error { return errors.Join(c.Operations.Close(), c.telemetry.Close()) }

// QuietLogger returns a logger that writes only warnings and errors. Use it for commands whose output is their result.
func (c *Console) QuietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact.New(c.Environ).Attr}))
}
