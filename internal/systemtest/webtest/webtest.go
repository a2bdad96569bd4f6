// Package webtest starts what tests of the web server talk to: a Temporal server, and a worker with a stand-in for
// claude.
package webtest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// Environ returns a valid environment without claude or Temporal.
func Environ(t testing.TB) []string {
	t.Helper()
	home := t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" +
			filepath.Join(home, "state"), "CLAUDEOPS_SANDBOX=off", "CLAUDEOPS_POLICY_FILE=" + simtest.OpenPolicy(t),
	}
}

// Install starts a Temporal server and a worker whose stand-in for claude plays scenario. It returns the environment of
// programs beside them.
func Install(t testing.TB, scenario claudesim.Scenario, more ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), scenario)
	require.NoError(t, err)
	environ := append(append(Environ(t), "CLAUDEOPS_CLAUDE="+claude), more...)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	require.NoError(t, cfg.MakeDirs())
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	environ = append(environ, "TEMPORAL_ADDRESS="+server.Address())
	Work(t, cfg, supervisor.Environment{Environ: environ, Host: "host-1", Logger: logger, SweepInterval: time.Second})
	return environ
}

// Work runs a worker until the end of the test.
func Work(t testing.TB, cfg config.Config, environment supervisor.Environment) {
	t.Helper()
	worker, err := supervisor.New(t.Context(), cfg, environment)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, worker.Close()) })
	options, err := supervisor.ConnectionOptions(environment.Environ, cfg, environment.Logger)
	require.NoError(t, err)
	options = supervisor.WithConverters(options, redact.New(environment.Environ), cfg.Encryption.Keys)
	connected, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(connected.Close)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), connected, embedded.DefaultNamespace))
	working, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	worked := make(chan error, 1)
	go func() { worked <- worker.Run(working, connected, embedded.DefaultNamespace) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-worked) })
}
