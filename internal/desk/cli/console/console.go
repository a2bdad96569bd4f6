// Package console holds code that all commands of claudeops share: the process's streams and environment, flags and
// arguments, the output of results, the connection to Temporal, and the masking of secrets.
package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/redact"
)

// MaskedHint tells people that their input contained a secret, and how agents get credentials instead.
const MaskedHint = "claudeops: what you gave holds a secret. It was masked before it was sent, because histories " +
	"keep what is sent; agents get credentials by CLAUDEOPS_PASS_ENV\n"

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
	Operations *Operations

	// goesBack reports that the person has pressed the key that leads to the previous question.
	goesBack bool
	// telemetry traces the calls to Temporal; nil before the first connection.
	telemetry *telemetry.Telemetry
}

// NewOperations returns the operations of the console's commands, beside the worker.
func (c *Console) NewOperations() *Operations {
	return Beside(operations.New(operations.Options{
		Environ: c.Environ, Logger: c.QuietLogger(), Clock: c.Clock, Patience: c.Patience,
		Masked: c.hint(), Telemetry: c.startTelemetry,
	}))
}

// hint returns a function that tells people once that their input contained a secret.
func (c *Console) hint() func() {
	return sync.OnceFunc(func() { _, _ = io.WriteString(c.Stderr, MaskedHint) })
}

// Masks returns a function that masks the secrets in JSON before it is sent, and tells people if there was one.
func (c *Console) Masks() func(document []byte) []byte {
	mask, hint := redact.New(c.Environ), c.hint()
	return func(document []byte) []byte {
		masked := mask.JSON(document)
		if !bytes.Equal(masked, document) {
			hint()
		}
		return masked
	}
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
		Environ: c.Environ, Service: "claudeops", Version: program.Version(), Logger: c.QuietLogger(),
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
	return slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{
		Level:       slog.LevelWarn,
		ReplaceAttr: redact.New(c.Environ).Attr,
	}))
}
