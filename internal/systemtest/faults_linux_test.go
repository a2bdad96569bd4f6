package systemtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// These helpers examine the effects of a fault through /proc and Temporal's history only. They do not use the code
// under test.

// toolsAllowed lets Tier 1 run commands.
func toolsAllowed() []string {
	return []string{"CLAUDEOPS_TIER1_TOOLS=Bash"}
}

// processesOf lists the living processes that have text in their environment or command line.
func processesOf(t *testing.T, text string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if the process has ended
		if len(command) > 0 && (bytes.Contains(environ, []byte(text)) || bytes.Contains(command, []byte(text))) {
			found = append(found, fmt.Sprintf("%d %q", pid, command))
		}
	}
	return found
}

// requireGone waits until no process has text in its environment or command line. It returns how long that took.
func requireGone(t *testing.T, text string) time.Duration {
	t.Helper()
	began := time.Now()
	for left := processesOf(t, text); len(left) > 0; left = processesOf(t, text) {
		require.Less(t, time.Since(began), testTimeout, "still there: %s", strings.Join(left, ", "))
		time.Sleep(50 * time.Millisecond) // looking takes a millisecond or two
	}
	return time.Since(began)
}

// peakMemory returns the peak memory of a process so far, in megabytes.
func peakMemory(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			require.NoError(t, err)
			return kilobytes / 1024
		}
	}
	require.Fail(t, "no peak", "%s", status)
	return 0
}

// failedAttempts lists the failures of those activity attempts of a run that were followed by another attempt.
func failedAttempts(t *testing.T, s *site, run client.WorkflowRun) []string {
	t.Helper()
	var failures []string
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if last := event.GetActivityTaskStartedEventAttributes().GetLastFailure(); last != nil {
			failures = append(failures, last.GetMessage())
		}
	}
	return failures
}
