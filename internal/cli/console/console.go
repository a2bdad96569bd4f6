// Package console holds code that all commands of starter share: the process's streams and environment, flags and
// arguments, the output of results, the connection to Temporal, and the masking of secrets.
package console

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
	"github.com/claudeops/claudeops/internal/telemetry"
)

// Patience limits the wait for a worker's answer to a query. A worker that is down delays a command by at most this
// time.
const Patience = 10 * time.Second

// Console holds the streams, the environment and the settings of one command.
type Console struct {
	program.Process

	// Clock returns the current time, in the time zone for output.
	Clock Clock
	// Patience limits the wait for a worker's answer to a query.
	Patience time.Duration
	Output   Format

	// masks caches the result of masking; nil before the first call.
	masks *masking
	// telemetry traces the calls of Temporal; nil before Connect.
	telemetry *telemetry.Telemetry
}

// Connection is a client of Temporal with its namespace.
type Connection struct {
	client.Client

	Namespace string
	// Converter decodes payloads that the client returns as Temporal has stored them.
	Converter converter.DataConverter
	// Local reports that the server runs on this host. Queries cost nothing there.
	Local bool
	// Decoding masks no secrets in payloads. A replay must see what the workers see.
	Decoding supervisor.Decoding
}

// Connect reads the configuration and connects to Temporal.
func (c *Console) Connect(ctx context.Context) (Connection, config.Config, error) {
	cfg, err := config.Load(c.Environ)
	if err != nil {
		return Connection{}, cfg, err
	}
	options, err := supervisor.ConnectionOptions(c.Environ, cfg, c.QuietLogger())
	if err != nil {
		return Connection{}, cfg, program.Misuse(err)
	}
	if err := c.startTelemetry(ctx); err != nil {
		return Connection{}, cfg, err
	}
	c.telemetry.Instrument(&options)
	decoding := supervisor.Decoding{Data: options.DataConverter, Failure: options.FailureConverter}
	options = supervisor.WithConverters(options, redact.New(c.Environ), cfg.Encryption.Keys, c.masking())
	connected, err := supervisor.Connect(ctx, options)
	return Connection{
		Client: connected, Namespace: options.Namespace, Converter: options.DataConverter, Decoding: decoding,
		Local: supervisor.IsOnThisHost(options.HostPort),
	}, cfg, err
}

// startTelemetry starts to trace the calls of Temporal, if the environment asks for it.
func (c *Console) startTelemetry(ctx context.Context) (err error) {
	if c.telemetry != nil {
		return nil
	}
	c.telemetry, err = telemetry.Start(ctx, telemetry.Options{
		Environ: c.Environ, Service: "claudeops-starter", Version: program.Version(), Logger: c.QuietLogger(),
	})
	return program.Misuse(err)
}

// Close sends the traces of the command that are not sent yet.
func (c *Console) Close() error { return c.telemetry.Close() }

// QuietLogger returns a logger for warnings and errors only. Use it for commands whose output is their result.
func (c *Console) QuietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact.New(c.Environ).Attr}))
}
