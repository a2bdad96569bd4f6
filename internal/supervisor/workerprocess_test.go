package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// workerVariable makes the test binary a worker of the Temporal server at the address it holds.
const workerVariable = "CLAUDEOPS_TEST_WORKER"

// workerProcess is a worker in a process of its own, which a test can kill.
type workerProcess struct {
	pid     int
	command *exec.Cmd
	log     string // the file with what it logs
	ended   bool
}

// startWorkerProcess starts a worker that is configured by environ alone.
func startWorkerProcess(t *testing.T, environ []string, address string) *workerProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "worker.log"))
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	w := &workerProcess{command: exec.CommandContext(context.WithoutCancel(t.Context()), self), log: log.Name()}
	w.command.Env = append([]string{workerVariable + "=" + address}, environ...)
	w.command.Stdout, w.command.Stderr = log, log
	require.NoError(t, w.command.Start())
	w.pid = w.command.Process.Pid
	t.Cleanup(func() {
		w.end(syscall.SIGKILL)
		if t.Failed() {
			text, _ := os.ReadFile(w.log)
			t.Logf("worker %d logged:\n%s", w.pid, text)
		}
	})
	return w
}

// end sends the worker a signal, unless it has ended, and waits for its end.
func (w *workerProcess) end(sig os.Signal) {
	if w.ended {
		return
	}
	w.ended = true
	_ = w.command.Process.Signal(sig)
	_ = w.command.Wait()
}

// logged returns what the worker has logged.
func (w *workerProcess) logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(w.log)
	require.NoError(t, err)
	return string(text)
}

// siteOf is an installation whose workers are processes of their own.
func siteOf(t *testing.T, c client.Client, environ []string) *site {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	return &site{t: t, cfg: cfg, client: c}
}

// runWorkerProcess is the worker's main.
func runWorkerProcess(address string) {
	environ := os.Environ()
	for i, entry := range environ {
		if strings.HasPrefix(entry, workerVariable+"=") {
			environ = append(environ[:i:i], environ[i+1:]...)
			break
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := work(ctx, environ, address)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(ctx context.Context, environ []string, address string) (err error) {
	cfg, err := config.Load(environ)
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(os.Stderr, cfg.Log)
	s, err := supervisor.New(ctx, cfg, supervisor.Environment{Environ: environ, Host: fmt.Sprint("process-", os.Getpid()), Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	options, err := supervisor.ConnectionOptions([]string{"TEMPORAL_ADDRESS=" + address}, logger)
	if err != nil {
		return err
	}
	c, err := supervisor.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	return s.Run(ctx, c)
}
