package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// roleVariable makes the test binary one of roles. It is none of the product's names, which a
// worker would complain of.
const roleVariable = "FAULTS_ROLE"

// roles are the processes that fault tests start and kill.
var roles = map[string]func() error{"worker": workerRole, "temporal": temporalRole, "watcher": watcherRole}

// playRole is the main of a role. It does not return.
func playRole(name string) {
	role, known := roles[name]
	if !known {
		fmt.Fprintf(os.Stderr, "there is no role %q\n", name)
		os.Exit(2)
	}
	if err := role(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	syscall.Exit(0) // not os.Exit, which takes a second under the race detector
}

// roleProcess is a role at work. Its standard input ends with the test's process, and then so does it.
type roleProcess struct {
	*exec.Cmd
	input io.WriteCloser
	said  *said
}

// startRole starts a role in an environment of its own.
func startRole(t *testing.T, name string, stdout io.Writer, environ ...string) *roleProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &roleProcess{Cmd: exec.CommandContext(t.Context(), self), said: &said{ready: make(chan struct{})}}
	p.Env = append([]string{roleVariable + "=" + name}, environ...)
	p.Stdout, p.Stderr = stdout, p.said
	p.WaitDelay = 10 * time.Second
	p.input, err = p.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may be gone already
		_ = p.Wait()
		if t.Failed() {
			t.Logf("%s, process %d, said last:\n%s", name, p.Process.Pid, p.said.last())
		}
	})
	return p
}

// startWorker starts a worker of the Temporal server at address. It is configured by environ alone.
func startWorker(t *testing.T, environ []string, address string) *roleProcess {
	t.Helper()
	return startRole(t, "worker", nil, append(slices.Clip(environ), "TEMPORAL_ADDRESS="+address)...)
}

// kill ends the process as nothing else can, and returns when it has ended.
func (p *roleProcess) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill(), "it must not have ended by itself: %s", p.said.last())
	err := p.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "it must not have ended by itself: %s", p.said.last())
}

// awaitReady returns when a worker works.
func (p *roleProcess) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.said.ready:
	case <-time.After(testTimeout):
		require.Fail(t, "the worker does not come to work", p.said.last())
	}
}

// drain ends a worker as an operator does.
func (p *roleProcess) drain(t *testing.T) {
	t.Helper()
	p.awaitReady(t)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), p.said.last())
}

// said is what a process has printed. It notices when the process says that it works.
type said struct {
	mu    sync.Mutex
	all   bytes.Buffer
	ready chan struct{} // closed when it works
	works bool
}

var _ io.Writer = (*said)(nil)

// Write implements io.Writer.
func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(line)
	if !s.works && bytes.Contains(s.all.Bytes(), []byte("msg=working")) {
		s.works = true
		close(s.ready)
	}
	return len(line), nil
}

// text is all of it.
func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// last is the end of it.
func (s *said) last() string {
	text := s.text()
	return text[max(0, len(text)-8<<10):]
}

// workerRole is a production worker, configured by its environment alone, until SIGTERM.
func workerRole() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go exitWithInput()
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(os.Stderr, cfg.Log, redact.New(os.Environ()))
	options, err := supervisor.ConnectionOptions(os.Environ(), cfg.State.Dir, logger)
	if err != nil {
		return err
	}
	s, err := supervisor.New(ctx, cfg, supervisor.Environment{Environ: os.Environ(), Host: fmt.Sprint("process-", os.Getpid()), Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if at := os.Getenv(pointVariable); at != "" {
		p, err := parsePoint(at)
		if err != nil {
			return err
		}
		options.Interceptors = append(options.Interceptors, newFaultAt(p, dieOnce))
	}
	c, err := supervisor.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := supervisor.SetUpNamespace(ctx, c, options.Namespace); err != nil {
		return err
	}
	return s.Run(ctx, c)
}

// exitWithInput ends this process when its standard input ends.
func exitWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
