package systemtest

import (
	"bytes"
	"cmp"
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

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
)

// roleVariable makes the test binary play one of the roles. It lacks the product's prefix, because a worker complains
// about unknown variables with that prefix.
const roleVariable = "FAULTS_ROLE"

// checkLimitVariable limits the time of the checks of a worker role.
const checkLimitVariable = "FAULTS_CHECK_LIMIT"

// roles lists the main functions of the processes that fault tests start and kill.
var roles = map[string]func() error{"worker": workerRole, "temporal": temporalRole, "watcher": watcherRole}

// playRole runs a role and then ends the process. It does not return.
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

// roleProcess is a running role. It ends when its standard input ends, and therefore also when the test's process
// ends.
type roleProcess struct {
	*exec.Cmd
	input io.WriteCloser
	said  *said
}

// startRole starts a role. Its environment consists of environ and the role's name.
func startRole(t *testing.T, name string, stdout io.Writer, environ ...string) *roleProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self)
	command.Env, command.Stdout = environ, stdout
	return startRoleOf(t, name, command)
}

// startRoleOf starts a role as the command says. The command runs the test binary.
func startRoleOf(t *testing.T, name string, command *exec.Cmd) *roleProcess {
	t.Helper()
	p := &roleProcess{Cmd: command, said: &said{ready: make(chan struct{})}}
	p.Env = append([]string{roleVariable + "=" + name}, p.Env...)
	p.Stderr = p.said
	p.WaitDelay = 10 * time.Second
	input, err := p.StdinPipe()
	require.NoError(t, err)
	p.input = input
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended already
		_ = p.Wait()
		if t.Failed() {
			t.Logf("%s, process %d, said last:\n%s", name, p.Process.Pid, p.said.last())
		}
	})
	return p
}

// startWorker starts a worker that uses the Temporal server at address. All its other settings come from environ.
func startWorker(t *testing.T, environ []string, address string) *roleProcess {
	t.Helper()
	return startRole(t, "worker", nil, append(slices.Clip(environ), "TEMPORAL_ADDRESS="+address)...)
}

// kill ends the process with SIGKILL and waits for its end. If the process ended before the signal, kill fails the
// test.
func (p *roleProcess) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill(), "it must not have ended by itself: %s", p.said.last())
	err := p.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "it must not have ended by itself: %s", p.said.last())
}

// awaitReady waits until the worker logs that it is working.
func (p *roleProcess) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.said.ready:
	case <-time.After(testTimeout):
		require.Fail(t, "the worker does not come to work", p.said.last())
	}
}

// drain stops a worker with SIGTERM, like an operator, and waits for its end.
func (p *roleProcess) drain(t *testing.T) {
	t.Helper()
	p.awaitReady(t)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), p.said.last())
}

// said collects the output of a process. It detects the log line that says that the worker is working.
type said struct {
	mu    sync.Mutex
	all   bytes.Buffer
	ready chan struct{} // closed when the worker is working
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

// text returns the whole output.
func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// last returns the last 8 KiB of the output.
func (s *said) last() string {
	text := s.text()
	return text[max(0, len(text)-8<<10):]
}

// workerRole runs a production worker until SIGTERM. All its settings come from its environment.
func workerRole() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go exitWithInput()
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	logger := supervisor.NewLogger(os.Stderr, cfg.Log, redact.New(os.Environ()))
	options, err := supervisor.ConnectionOptions(os.Environ(), cfg, logger)
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(cmp.Or(os.Getenv(checkLimitVariable), "0"))
	if err != nil {
		return err
	}
	s, err := supervisor.New(ctx, cfg, supervisor.Environment{
		Environ: os.Environ(), Host: fmt.Sprint("process-", os.Getpid()), Logger: logger, CheckLimit: limit,
	})
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
	return s.Run(ctx, c, options.Namespace)
}

// exitWithInput ends this process when its standard input ends.
func exitWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
