package embedded

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// startProcess runs this test binary as a server on file. It returns the process and its frontend's address.
func startProcess(t *testing.T, file string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) // the test binary itself
	cmd.Env = append(os.Environ(), serveFileVariable+"="+file)
	cmd.Stderr = testWriter{t}
	_, err := cmd.StdinPipe() // stays open until this process ends
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(address)
}

// startSleep starts the workflow sleepThenSay. No worker runs it until startWorker.
func startSleep(t *testing.T, address, id string, wait time.Duration) (runID string) {
	t.Helper()
	c := dial(t, address)
	run, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: id, TaskQueue: testQueue}, sleepThenSay, wait, id)
	require.NoError(t, err)
	return run.GetRunID()
}

// requireTimerStarted runs a worker until the workflow's timer has started.
func requireTimerStarted(t *testing.T, address, id, runID string) {
	t.Helper()
	c := dial(t, address)
	startWorker(t, c)
	events := c.GetWorkflowHistory(testContext(t), id, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
			return
		}
	}
	t.Fatal("the workflow ended before it had to wait")
}

// requireSaid runs a worker until the workflow ends, and checks that its result is its ID.
func requireSaid(t *testing.T, address, id, runID string) {
	t.Helper()
	c := dial(t, address)
	startWorker(t, c)
	var said string
	require.NoError(t, c.GetWorkflow(testContext(t), id, runID).Get(testContext(t), &said))
	require.Equal(t, id, said)
}

// fileSize returns the size of file in bytes; 0 if it is missing.
func fileSize(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return info.Size()
}
