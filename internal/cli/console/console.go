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
	"github.com/claudeops/claudeops/internal/discover"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
	"github.com/claudeops/claudeops/internal/telemetry"
)

// Patience limits how long a command waits for a worker's answer to a query.
const Patience = 10 * time.Second

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

	// masks holds the result of the method called masking; nil before the first call of this method.
	masks *masking
	// telemetry traces the calls to Temporal; nil before Connect.
	telemetry *telemetry.Telemetry
}

// Connection is a client of Temporal, with the name of its namespace.
type Connection struct {
	client.Client

	Namespace string
	// Converter decodes payloads that the client returns undecoded, in the form in which Temporal stores them.
	Converter converter.DataConverter
	// Local reports that the server runs on this host, where queries cost nothing.
	Local bool
	// Decoding holds the converters for a replay. They mask no secrets, because a replay must see what the workers see.
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

// startTelemetry starts tracing the calls to Temporal, if the environment configures traces.
func (c *Console) startTelemetry(ctx context.Context) (err error) {
	if c.telemetry != nil {
		return nil
	}
	c.telemetry, err = telemetry.Start(ctx, telemetry.Options{
		Environ: c.Environ, Service: "claudeops-starter", Version: program.Version(), Logger: c.QuietLogger(),
	})
	return program.Misuse(err)
}

// Close sends the remaining traces of the command.
func (c *Console) Close() error { return c.telemetry.Close() }

// QuietLogger returns a logger that writes only warnings and errors. Use it for commands whose output is their result.
func (c *Console) QuietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact.New(c.Environ).Attr}))
}
