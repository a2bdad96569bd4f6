package supervisor_test

import (
	"fmt"
	"log"
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

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/process"
)

// serviceVariable makes the test binary run as a service. Its value is the directory in which the service works.
const serviceVariable = "CLAUDEOPS_TEST_SERVICE"

// service is a separate process that answers 502 until restart-service has run.
type service struct {
	URL string
	pid int
	// bin is the directory that contains the program restart-service.
	bin string
}

// settings returns settings that let agents of Tier 2 restart the service, in addition to the permissions of the
// built-in policy.
func (s service) settings(t *testing.T, cli string) []string {
	t.Helper()
	policy := string(deploy.Policy)
	for old, changed := range map[string]string{
		"directories: [":              "directories: [" + s.bin + ", ",
		"    write: [\".\", $TMPDIR]": "    write: [\".\", $TMPDIR]\n    signals: true # restart-service sends one",
		"\nprograms:\n": "\nprograms:\n  restart-service: {tier: 2, starts: [sleep], args: SERVICE, action: restart}\n" +
			"  claude-and-snapshot: {tier: 1, starts: [cp, " + cli + "]}\n",
	} {
		require.Equal(t, 1, strings.Count(policy, old), old)
		policy = strings.Replace(policy, old, changed, 1)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o600))
	return []string{"CLAUDEOPS_POLICY_FILE=" + file, "PATH=" + s.bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

// startService starts the service, which works in dir.
func startService(t *testing.T, dir string) service {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), serviceVariable+"="+dir)
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	script := fmt.Sprintf("#!/bin/sh\nkill -HUP %d\nfor _ in 1 2 3 4 5 6 7 8 9 10; do [ -e up ] && echo restarted && exit 0; sleep 1; done\nexit 1\n",
		command.Process.Pid)
	bin := t.TempDir()
	require.NoError(t, process.WriteProgram(filepath.Join(bin, "restart-service"), []byte(script)))

	var address []byte
	require.Eventually(t, func() bool {
		address, err = os.ReadFile(filepath.Join(dir, "address"))
		return err == nil && len(address) > 0
	}, testTimeout, 10*time.Millisecond, "the service did not start")
	return service{URL: "http://" + strings.TrimSpace(string(address)), pid: command.Process.Pid, bin: bin}
}

// status returns the HTTP status with which the service answers.
func (s service) status(t *testing.T) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// runService is the main function of the service. SIGHUP makes the service healthy.
func runService(dir string) {
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
		log.Fatal(err)
	}
	<-hangup
	up.Store(true)
	if err := os.WriteFile(filepath.Join(dir, "up"), nil, 0o600); err != nil {
		log.Fatal(err)
	}
	select {}
}
