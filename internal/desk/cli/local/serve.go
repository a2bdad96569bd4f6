package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// Serve runs what `claudeops up` runs, on free ports, while the function do runs. Schedules and chains that do leaves
// behind go on at the next `claudeops up`.
func Serve(ctx context.Context, c *console.Console, environ []string, do func() error) error {
	cfg, err := config.Load(environ)
	if err != nil {
		return err
	}
	cfg.Worker = cfg.Worker.WithoutVersion() // as in up
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this host's name: %w", err)
	}
	logger := (&app{c}).quietLogger(ctx, slog.LevelError) // what the server warns of is not for a person who sets it up
	one, err := StartAllInOne(ctx, cfg, embedded.Options{
		DatabaseFile: filepath.Join(cfg.State.Dir, "temporal.db"),
		Logger:       logger,
	}, nil,
		supervisor.Environment{Environ: environ, Host: host, Version: program.Version(), Logger: logger})
	if err != nil {
		return err
	}
	return errors.Join(do(), one.Stop())
}
