package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

const (
	// settling is the time after the start that does not count as idle.
	settling = 10 * time.Second
	// idling is the time during which the idle program is measured.
	idling = 30 * time.Second
)

// BenchmarkUp measures `claudeops up`: the time until its worker polls for agents' work, and its use of resources while
// it is idle.
func BenchmarkUp(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "claudeops")
	output, err := exec.CommandContext(b.Context(), "go", "build", "-ldflags", "-s -w", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, string(output))
	claude := filepath.Join(dir, "claude")
	require.NoError(b, process.WriteProgram(claude, fmt.Appendf(nil, "#!/bin/sh\necho '%s (Claude Code)'\n", claudesim.VersionNew)))
	var starts, cpu time.Duration
	var memory float64
	for b.Loop() {
		up := startUp(b, program, claude)
		starts += up.firstPoll().Sub(up.began)
		time.Sleep(settling)
		before := up.cpu()
		time.Sleep(idling)
		cpu += up.cpu() - before
		memory += up.residentMB()
		up.stop()
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(starts.Seconds()*1000/n, "ms-to-first-poll")
	b.ReportMetric(cpu.Seconds()/idling.Seconds()*100/n, "idle-%cpu")
	b.ReportMetric(memory/n, "idle-MB")
}

// upProcess is a running `claudeops up`.
type upProcess struct {
	b       *testing.B
	began   time.Time
	command *exec.Cmd
	client  client.Client
}

func startUp(b *testing.B, program, claude string) *upProcess {
	b.Helper()
	home := b.TempDir()
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"),
		"CLAUDEOPS_CLAUDE=" + claude, "CLAUDEOPS_LOG_LEVEL=warn",
	}
	up := &upProcess{b: b, command: exec.CommandContext(b.Context(), program, "up", "--port", "0", "--ui-port", "0", "-o", "json")}
	up.command.Env, up.command.Stderr = environ, b.Output()
	stdout, err := up.command.StdoutPipe()
	require.NoError(b, err)
	up.began = time.Now()
	require.NoError(b, up.command.Start())
	var running struct {
		Temporal string `json:"temporal_address"`
	}
	require.NoError(b, json.NewDecoder(stdout).Decode(&running))
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	env := exec.CommandContext(b.Context(), program, "env")
	env.Env = environ
	settings, err := env.Output()
	require.NoError(b, err)
	key := regexp.MustCompile(`TEMPORAL_API_KEY='?([^'\s;]+)`).FindSubmatch(settings)
	require.NotNil(b, key, "claudeops env prints no key")
	up.client, err = client.DialContext(b.Context(), client.Options{
		HostPort: running.Temporal, Credentials: client.NewAPIKeyStaticCredentials(string(key[1])),
		ConnectionOptions: client.ConnectionOptions{TLSDisabled: true},
	})
	require.NoError(b, err)
	return up
}

// firstPoll returns the time at which the worker first polled the agents' task queue. A poll takes up to a minute, and
// Temporal keeps the time of the latest.
func (u *upProcess) firstPoll() (at time.Time) {
	u.b.Helper()
	require.Eventually(u.b, func() bool {
		queue, err := u.client.DescribeTaskQueue(u.b.Context(), "claudeops-agents", enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil || len(queue.GetPollers()) == 0 {
			return false
		}
		at = queue.GetPollers()[0].GetLastAccessTime().AsTime()
		return true
	}, time.Minute, 20*time.Millisecond, "its worker does not poll")
	return at
}

// cpu returns the CPU time of the process.
func (u *upProcess) cpu() time.Duration {
	u.b.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", u.command.Process.Pid))
	require.NoError(u.b, err)
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	var ticks int
	for _, field := range fields[11:13] { // utime, stime
		count, err := strconv.Atoi(string(field))
		require.NoError(u.b, err)
		ticks += count
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ of the kernel is 100
}

// residentMB returns the memory of the process, in MB.
func (u *upProcess) residentMB() float64 {
	u.b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.command.Process.Pid))
	require.NoError(u.b, err)
	resident := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(u.b, resident)
	kilobytes, err := strconv.ParseFloat(string(resident[1]), 64)
	require.NoError(u.b, err)
	return kilobytes / 1024
}

// stop ends the process as Ctrl-C does.
func (u *upProcess) stop() {
	u.b.Helper()
	u.client.Close()
	require.NoError(u.b, u.command.Process.Signal(os.Interrupt))
	require.NoError(u.b, u.command.Wait())
}
