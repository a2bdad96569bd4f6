// Package console holds what all commands of starter share: the process's streams and environment, flags and
// arguments, how results are printed, the connection to Temporal, and what is masked on its way there and back.
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
)

// Patience is the time that a worker has to answer a query. Nobody waits longer for one that is down.
const Patience = 10 * time.Second

// Console is the program while it runs one command.
type Console struct {
	program.Process

	// Clock returns the time, in the zone in which times are shown.
	Clock Clock
	// Patience is the time that a worker has to answer a query.
	Patience time.Duration
	Output   Format

	// masks is the result of masking; nil before its first call.
	masks *masking
}

// Connection is a client of Temporal and the namespace it speaks for.
type Connection struct {
	client.Client

	Namespace string
}

// Connect reads the configuration and connects to Temporal.
func (c *Console) Connect(ctx context.Context) (Connection, config.Config, error) {
	cfg, err := config.Load(c.Environ)
	if err != nil {
		return Connection{}, cfg, err
	}
	options, err := supervisor.ConnectionOptions(c.Environ, cfg.State.Dir, c.QuietLogger())
	if err != nil {
		return Connection{}, cfg, program.Misuse(err)
	}
	options.DataConverter = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c.masking())
	connected, err := supervisor.Connect(ctx, options)
	return Connection{connected, options.Namespace}, cfg, err
}

// QuietLogger returns a logger that logs problems only, for commands whose output is their result.
func (c *Console) QuietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact.New(c.Environ).Attr}))
}
