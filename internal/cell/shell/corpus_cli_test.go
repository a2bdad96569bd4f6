//go:build soak && linux

package shell_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

const (
	// sessionCalls is the number of calls that one session of the real CLI makes.
	sessionCalls = 250
	// callLimit is the time limit that each call gives to the CLI, in milliseconds.
	callLimit = 2000
)

// TestSoakCorpusOnRealCLIs is TestCorpus with each pinned CLI between the model and the shell. The CLI may deny more
// than the guard does.
func TestSoakCorpusOnRealCLIs(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			counts := map[verdict]int{}
			rows := slices.Concat(corpus(t, "attacks", "attacks-found"), corpus(t, "wanted"))
			for tier := 1; tier <= 3; tier++ {
				ofTier := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Tier != tier })
				for session := range slices.Chunk(ofTier, sessionCalls) {
					for i, got := range s.session(t, version, tier, session) {
						counts[s.judge(t, session[i], got)]++
					}
				}
			}
			t.Logf("soak: corpus on the CLI %s: %v of %d calls", simtest.Number(t, version), counts, len(rows))
			require.Zero(t, counts[unwanted])
			require.Zero(t, counts[missed])
		})
	}
}

// session has the real CLI make calls, one after another.
func (s *stage) session(t *testing.T, version claudesim.Version, tier int, rows []row) []outcome {
	t.Helper()
	// Each decision on a call ends the call before it.
	calls := &callsOfCLI{stage: s, t: t, outcomes: map[string]*outcome{}}
	s.reset(t)
	post, err := cell.OpenPost(s.sockets, s.guard, cell.PostSession{ID: "session", Tier: tier, Place: s.place}, unlimited{}, calls.record)
	require.NoError(t, err)
	var replies []claudesim.Reply
	for _, r := range rows {
		replies = append(replies, claudesim.Call("Bash", map[string]any{"command": s.here.Replace(r.Command), "description": "scripted", "timeout": callLimit}))
	}
	results := s.runCLI(t, version, post, replies)
	require.NoError(t, post.Close())
	calls.end()
	require.Len(t, results, len(rows))
	outcomes := make([]outcome, len(rows))
	for i, result := range results {
		got := calls.outcomes[result.ID]
		if got == nil { // the CLI did not ask
			got = &outcome{reasons: []string{"the CLI did not ask its hook"}}
		}
		got.output = fmt.Sprint(result.Content)
		got.denied = got.denied || result.IsError && len(got.ran)+len(got.changed) == 0 && deniedByCLI.MatchString(got.output)
		outcomes[i] = *got
	}
	return outcomes
}

// deniedByCLI matches the result of a call that the CLI does not run.
var deniedByCLI = regexp.MustCompile(`^(Permission to use Bash (with command .* )?has been denied|<tool_use_error>)`)

// runCLI runs the real CLI as another user, with a simulated model that makes the calls one after another.
func (s *stage) runCLI(t *testing.T, version claudesim.Version, post *cell.Post, replies []claudesim.Reply) []simtest.ToolResult {
	t.Helper()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(append(replies, claudesim.Say("done"))...)))
	settings, err := json.Marshal(cell.HookSettings(s.self))
	require.NoError(t, err)
	shell, err := cell.InstallShell(t.TempDir(), s.self)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(shell)), 0o755)) //nolint:gosec // the other user must be able to enter it
	own := t.TempDir()
	require.NoError(t, os.Chown(own, nobody, nobody))
	command := exec.CommandContext(t.Context(), simtest.RealCLI(t, version), "-p", "--output-format", "stream-json", "--verbose",
		"--setting-sources", "", "--strict-mcp-config", "--permission-mode", "dontAsk", "--tools", "Bash",
		"--settings", string(settings), "--model", "haiku", "--session-id", uuid.NewString())
	command.Dir, command.Stdin = s.place.Work[0], strings.NewReader("look")
	variables := simtest.RealEnv(s.place.Home, api.URL())
	maps.Copy(variables, map[string]string{
		"PATH": s.bin, "TMPDIR": s.place.Temp, "TERM": "dumb", "ANTHROPIC_API_KEY": key, "CLAUDE_CONFIG_DIR": own, "GIT_CONFIG_COUNT": "0",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
	})
	maps.Copy(variables, post.Environment(s.self, shell))
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}
	var diagnostics bytes.Buffer
	command.Stderr = &diagnostics
	output, err := command.Output()
	require.NoError(t, err, "%s\n%.2000s", diagnostics.String(), output)
	return simtest.ToolResults(output)
}

// callsOfCLI collects what the calls of a CLI do.
type callsOfCLI struct {
	*stage
	t        *testing.T
	outcomes map[string]*outcome
	// current is the id of the call that runs.
	current string
}

// record records a decision on a call or on an act of a call.
func (c *callsOfCLI) record(entry cell.Entry) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	call, _, isAct := strings.Cut(entry.Call, "#")
	if !isAct {
		c.settle()
		c.current = call
		c.outcomes[call] = &outcome{denied: !entry.Decision.Allowed}
	}
	if got := c.outcomes[call]; !entry.Decision.Allowed && got != nil {
		got.refused = got.refused || isAct
		got.reasons = append(got.reasons, entry.Decision.Reason)
	}
}

// settle reads what the current call has done, and resets the stage.
func (c *callsOfCLI) settle() {
	if got := c.outcomes[c.current]; got != nil {
		got.ran, got.changed = c.effects(c.t)
		c.reset(c.t)
	}
}

func (c *callsOfCLI) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.settle()
}
