// Package servicetest is a service for tests that is really down until a program restarts it.
package servicetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

const (
	// variable makes the test binary run as a service. Its value is the directory in which the service works.
	variable = "CLAUDEOPS_TEST_SERVICE"
	// timeout limits the wait for the start of a service.
	timeout = 5 * time.Minute
)

// restartScript restarts the service with this process number, and waits until it is up.
const restartScript = `#!/bin/sh
kill -HUP %d
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e up ] && echo restarted && exit 0; sleep 1; done
exit 1
`

// Service is a separate process that answers 502 until the program restart-service has run.
type Service struct {
	URL string
	// Bin is the directory that contains the program restart-service.
	Bin string
}

// Start starts a service, which works in dir. The TestMain of the calling package must call Run.
func Start(t testing.TB, dir string) Service {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), variable+"="+dir)
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	bin := t.TempDir()
	restart := fmt.Appendf(nil, restartScript, command.Process.Pid)
	require.NoError(t, process.WriteProgram(filepath.Join(bin, "restart-service"), restart))

	var address []byte
	require.Eventually(t, func() bool {
		address, err = os.ReadFile(filepath.Join(dir, "address"))
		return err == nil && len(address) > 0
	}, timeout, 10*time.Millisecond, "the service did not start")
	return Service{URL: "http://" + strings.TrimSpace(string(address)), Bin: bin}
}

// Status returns the HTTP status with which the service answers.
func (s Service) Status(t testing.TB) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// Run runs this process as the service if Start has started it. In all other processes it returns at once. SIGHUP makes
// the service healthy.
func Run() {
	dir := os.Getenv(variable)
	if dir == "" {
		return
	}
	var up atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "the backend is down", http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprintln(w, "library ready")
	}))
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	if err := os.WriteFile(filepath.Join(dir, "address"), []byte(front.Listener.Addr().String()), 0o600); err != nil {
		panic(err)
	}
	<-hangup
	up.Store(true)
	if err := os.WriteFile(filepath.Join(dir, "up"), nil, 0o600); err != nil {
		panic(err)
	}
	select {}
}
