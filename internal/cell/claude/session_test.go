package claude_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestAnAgentsProcessesEndWithIt covers a daemon that a tool call leaves behind. The daemon must end with the
// invocation, and have the session's id in its environment.
func TestAnAgentsProcessesEndWithIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a process group does not hold it")
	}
	b := newBench(t, backend{version: claudesim.VersionNew}, claudesim.Play(claudesim.Always(
		claudesim.Bash("./daemon.sh"), claudesim.Say("left something behind"))), nil)
	seen := filepath.Join(b.dir, "seen")
	script := "#!/bin/sh\n(setsid sh -c 'read pid rest </proc/self/stat; echo $pid $" + claude.SessionVariable + " >" + seen + "; exec sleep 300' >/dev/null 2>&1 &)\n" +
		"while ! [ -s " + seen + " ]; do sleep 0.05; done\n"
	require.NoError(t, process.WriteProgram(filepath.Join(b.dir, "daemon.sh"), []byte(script)))
	invocation := b.invocation("look")
	invocation.AllowedTools = []string{"Bash(./daemon.sh)"}

	result := b.run(t, invocation)

	require.Contains(t, []claude.Containment{claude.ContainmentSubreaper, claude.ContainmentNamespace}, result.Containment)
	require.Zero(t, result.Survivors)
	text, err := os.ReadFile(seen)
	require.NoError(t, err)
	pid, session, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	require.Equal(t, invocation.SessionID, string(session))
	_, err = os.Stat(filepath.Join("/proc", string(pid)))
	require.ErrorIs(t, err, os.ErrNotExist, "the daemon lives on")
}

// TestEndSession covers the processes of a session whose worker and init were killed.
func TestEndSession(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("finds nothing")
	}
	id := uuid.NewString()
	stray := exec.CommandContext(t.Context(), "sleep", "300")
	stray.Env = []string{claude.SessionVariable + "=" + id}
	require.NoError(t, stray.Start())
	require.Eventually(t, func() bool { // Start returns before the kernel shows the new environment
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", stray.Process.Pid))
		return bytes.Contains(environ, []byte(id))
	}, time.Minute, time.Millisecond)

	ended, err := claude.EndSession(id)
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	require.ErrorContains(t, stray.Wait(), "killed")
}
