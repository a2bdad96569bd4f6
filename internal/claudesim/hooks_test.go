package claudesim_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// withHooks prepares a stand-in that plays calls, with a settings file that contains hooks. Each hook is a matcher, a
// command and a time limit in seconds.
func withHooks(t *testing.T, hooks [][3]any, calls ...claudesim.Reply) *exec.Cmd {
	t.Helper()
	var groups []any
	for _, h := range hooks {
		command := map[string]any{"type": "command", "command": h[1], "timeout": h[2]}
		groups = append(groups, map[string]any{"matcher": h[0], "hooks": []any{command}})
	}
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": groups}})
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.json")
	require.NoError(t, os.WriteFile(file, settings, 0o600))
	path := simtest.Install(t, claudesim.Play(claudesim.Always(append(calls, claudesim.Say("done"))...)))
	command := exec.CommandContext(t.Context(), path, append(baseArgs(), "--settings", file, "--tools", "Bash,Read", "--model", "haiku")...)
	command.Dir, command.Env, command.Stdin = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, strings.NewReader("try")
	return command
}

const deny = `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'`

func TestHooksOfAFile(t *testing.T) {
	t.Parallel()
	command := withHooks(t, [][3]any{
		{"Write|Edit", "exit 2", 5},
		{"Bash", `grep -q please && echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`, 5},
		{"", "grep -q secret && " + deny, 5},
		{"Ba.*", "grep -q slow && sleep 60 && " + deny, 0.2},
	},
		claudesim.Bash("touch here # please"), claudesim.Bash("touch here # please, secret"), claudesim.Bash("touch here"),
		claudesim.Bash("echo slow"), claudesim.Call("Read", map[string]string{"file_path": "settings.json"}),
	)
	began := time.Now()
	printed, err := command.Output()
	require.NoError(t, err)
	require.Less(t, time.Since(began), 50*time.Second, "the slow hook is killed")
	o := newObservation(t, output{stdout: string(printed)})
	require.Equal(t, []string{
		"error=false (Bash completed with no output)", "error=true PreToolUse:Bash hook error: no", "error=true Permission to use Bash",
		"error=false slow",
	}, o.Tools[:4])
	require.Contains(t, o.Tools[4], "error=false 1\t{")
	require.Equal(t, 1, strings.Count(strings.Join(o.Events, " "), "system/informational"), "of the hook that was killed")
}

func TestSignalEndsAHook(t *testing.T) {
	t.Parallel()
	command := withHooks(t, [][3]any{{"*", "echo $$ > started; sleep 60", 60}}, claudesim.Bash("touch here"))
	require.NoError(t, command.Start())
	hook := awaitPID(t, filepath.Join(command.Dir, "started"))
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	_ = command.Wait() // another test checks the exit code
	require.Eventually(t, func() bool { return !lives(hook) }, patience, 10*time.Millisecond)
	require.NoFileExists(t, filepath.Join(command.Dir, "here"))
}
