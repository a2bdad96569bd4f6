//go:build soak

package systemtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/transcripts"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// mostMissing limits the part of a conversation that is lost with its host. It allows for the 15 seconds between two
// saves, and for a save and the current call on a busy host.
const mostMissing = 20 * time.Second

// TestSoakRealCLIHostLostInATier loses a host in the middle of a tier that makes many short calls. Another host may
// lack only the part of the conversation since the last save.
func TestSoakRealCLIHostLostInATier(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		var calls []claudesim.Reply
		for i := range 200 {
			calls = append(calls, claudesim.Bash(fmt.Sprintf("sleep 1; echo call %d", i)))
		}
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: startedAgain}, claudesim.Conclude(resolved())), claudesim.Always(calls...)))
		c, address := startTemporalAt(t)
		archive := filepath.Join(t.TempDir(), "archive")
		here := newHost(t, cli, "file://"+archive)
		keys := []string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key", "CLAUDEOPS_TIER1_BUDGET_USD=0"}
		environ := here.environ(t, keys...)
		first := startWorker(t, environ, address)
		s := siteOf(t, c, environ)
		run := s.start(nil)
		require.Eventually(t, func() bool { return len(api.Requests()) > 2 }, testTimeout, 20*time.Millisecond, "no call has ended")
		called := time.Now()
		require.Eventually(t, func() bool { return savedSince(archive, called) }, testTimeout, 20*time.Millisecond, "it is not saved")
		time.Sleep(10 * time.Second) // most of the time until the next save

		session := s.query(run).Sessions[0].SessionID
		first.kill(t)
		lost := time.Now()
		requireGone(t, session)
		asked := len(api.Requests())
		had := transcript(t, filepath.Join(s.cfg.AgentsDir(), "sessions", session, "projects"), session)
		loseHost(t, here.home)
		has := archived(t, archive, session)
		missing := lost.Sub(lastTimestamp(t, has))
		results := strings.Count(strings.Join(has, ""), `"type":"tool_result"`)
		require.Positive(t, results)

		there := here.another(t)
		environ = there.environ(t, keys...)
		startWorker(t, environ, address)
		s = siteOf(t, c, environ)
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 1, "the same session went on")
		require.Equal(t, 2, chain.Sessions[0].Attempts)
		next := api.Requests()[asked]
		require.Equal(t, api.Requests()[0].Prompts()[0], next.Prompts()[0], "the conversation goes on")
		require.GreaterOrEqual(t, len(next.ToolResults()), results, "with what was saved of it")
		require.Contains(t, next.Prompt(), startedAgain, "and says that it was cut off, perhaps between two calls")
		requireRecorded(t, s, chain)
		t.Logf("soak: real CLI %s, host lost in a tier: %d of %d lines archived, %.1f s of conversation missing, %s elsewhere after %.0f s",
			version, len(has), len(had), missing.Seconds(), chain.Outcome, time.Since(lost).Seconds())
		require.Less(t, missing, mostMissing)
	})
}

// savedSince reports whether an archive has a file that was written after the given moment. A later save of the same
// run replaces the earlier file.
func savedSince(archive string, moment time.Time) bool {
	return slices.ContainsFunc(objects(archive), func(object string) bool {
		info, err := os.Stat(object)
		return err == nil && info.ModTime().After(moment)
	})
}

// archived restores a conversation from the archive and returns its lines.
func archived(t *testing.T, archive, session string) []string {
	t.Helper()
	opened, err := transcripts.Open(t.Context(), "file://"+archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	projects := t.TempDir()
	local, err := opened.Copy(session, filepath.Join(projects, "-work", session+".jsonl"))
	require.NoError(t, err)
	_, err = local.Restore(t.Context())
	require.NoError(t, err)
	return transcript(t, projects, session)
}

// transcript returns the lines of a session's transcript.
func transcript(t *testing.T, projects, session string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(projects, "*", session+".jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return slices.Collect(strings.Lines(string(data)))
}

// lastTimestamp returns the last timestamp in the lines of a transcript.
func lastTimestamp(t *testing.T, lines []string) time.Time {
	t.Helper()
	var last time.Time
	for _, line := range lines {
		var entry struct{ Timestamp time.Time }
		if json.Unmarshal([]byte(line), &entry) == nil && !entry.Timestamp.IsZero() {
			last = entry.Timestamp
		}
	}
	require.False(t, last.IsZero())
	return last
}

// TestSoakRealCLIContinuedAtAGate lets Tier 2 time out in a tool call and kills the worker. Then it continues the
// session at the gate.
func TestSoakRealCLIContinuedAtAGate(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		command := "touch started; sleep 300"
		next := requireContinuedAtAGate(t, cli, interruption{
			source: escalation.GateTimedOut, limit: "CLAUDEOPS_TIER2_TIMEOUT=75s", work: []claudesim.Reply{claudesim.Bash(command)},
		})
		require.Contains(t, next.Prompt(), command, "it names the call whose effect is unknown")
		t.Logf("soak: real CLI %s, tier 2 timed out in a call, worker killed, continued with %d messages and the guidance, not offered again",
			version, len(next.Messages))
	})
}
