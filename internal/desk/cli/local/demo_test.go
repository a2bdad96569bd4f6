package local

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/embeddedtest"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	got := starter(t, os.Environ(), "demo")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	for _, want := range []string{
		"├── Session #1  Tier 1  haiku", "└── Session #3  Tier 3  opus", "Outcome: resolved",
		"Forward from the first session: #1 → #2 → #3", "Backward from the last session: #3 → #2 → #1",
		"everything stays up",
	} {
		require.Contains(t, got.Stdout, want)
	}
	require.Regexp(t, `Bash  homelab (status|logs|restart|redeploy) jellyfin`, got.Stdout, "what is over between two looks is not told")
	require.NotContains(t, got.Stdout, "http://", "the Web UI is gone")
}

// TestDemoStopped interrupts the demo while the chain runs, and while --keep keeps the demo up after the chain.
func TestDemoStopped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		stopAt  string // the test interrupts when the output contains this text
		code    program.ExitCode
		says    string
		lacking string
	}{
		"in the middle": {[]string{"demo"}, "tier 2 starts on sonnet", program.ExitFailure, "The demo was stopped, and nothing of it is left.\n", "goes on"},
		"while kept":    {[]string{"demo", "--keep"}, " claudeops chains\n", program.ExitOK, "CLAUDEOPS_STATE_DIR='/", "was stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("starts a Temporal server; not with -short")
			}
			ctx, interrupt := context.WithCancel(t.Context())
			stdout := &stoppingWriter{at: tt.stopAt, stop: interrupt}
			var stderr bytes.Buffer
			code := clitest.Of(Commands).Execute(ctx, &console.Console{
				Process: program.Process{Args: tt.args, Environ: os.Environ(), Stdout: stdout, Stderr: &stderr},
				Clock:   time.Now, Patience: clitest.Timeout,
			})
			require.Equal(t, tt.code, code, stderr.String())
			require.Empty(t, embeddedtest.WithoutStalls(stderr.String()))
			require.Contains(t, stdout.text(), tt.says)
			require.NotContains(t, stdout.text(), tt.lacking)
		})
	}
}

// stoppingWriter calls stop as soon as the written text contains at.
type stoppingWriter struct {
	at   string
	stop func()

	mutex   sync.Mutex
	written strings.Builder
}

// Write implements io.Writer.
func (w *stoppingWriter) Write(data []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.written.Write(data)
	if strings.Contains(w.written.String(), w.at) {
		w.stop()
	}
	return len(data), nil
}

func (w *stoppingWriter) text() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.written.String()
}
