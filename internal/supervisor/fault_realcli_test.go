//go:build linux

package supervisor_test

import (
	"bytes"
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
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/transcripts"
)

// These tests kill workers of the real CLI and take their hosts away. Only the model is scripted.

// mostMissing is how much of a conversation may be missing after a host was lost: the 15 seconds
// between two saves, and what a save and the call under way take on a busy host.
const mostMissing = 20 * time.Second

func forRealCLIs(t *testing.T, test func(t *testing.T, version claudesim.Version, cli string)) {
	t.Parallel()
	for _, version := range simtest.Versions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			test(t, version, simtest.RealCLI(t, version))
		})
	}
}

// TestFaultRealCLIWorkerKilled kills a worker in the middle of a tool call.
func TestFaultRealCLIWorkerKilled(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		marker := filepath.Join(t.TempDir(), "started")
		command := "touch " + marker + "; sleep 300"
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: startedAgain}, claudesim.Conclude(resolved())),
			claudesim.Always(claudesim.Bash(command))))
		c, address := startTemporalAt(t)
		environ := environment(t, cli, append(toolsAllowed(), "ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key")...)
		s := siteOf(t, c, environ)
		first := startWorker(t, environ, address)
		run := s.start(nil)
		require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
		session := s.query(run).Sessions[0].SessionID
		require.GreaterOrEqual(t, len(processesOf(t, session)), 2, "the CLI and its command")
		require.Eventually(t, func() bool { return len(s.heartbeat(run.GetID()).InFlight) > 0 },
			testTimeout, 20*time.Millisecond, "no heartbeat tells of the call")
		require.Eventually(t, func() bool { // the CLI writes it a moment later
			files, _ := filepath.Glob(filepath.Join(s.cfg.Claude.ConfigDir, "projects", "*", session+".jsonl"))
			if len(files) != 1 {
				return false
			}
			kept, err := os.ReadFile(files[0])
			return err == nil && bytes.Contains(kept, []byte(`"tool_use"`))
		}, testTimeout, 20*time.Millisecond, "the transcript has no call")

		asked := len(api.Requests())
		first.kill(t)
		gone := requireGone(t, session, testTimeout)
		killed := time.Now()

		startWorker(t, environ, address)
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 1, "the same session went on")
		require.Equal(t, 2, chain.Sessions[0].Attempts)
		require.Equal(t, escalation.ReasonInterrupted, chain.Sessions[0].ContinuityReason)
		requests := api.Requests()
		require.Len(t, requests, asked+1)
		next := requests[asked]
		require.Equal(t, requests[0].Prompts()[0], next.Prompts()[0], "the conversation goes on")
		require.Contains(t, next.Prompt(), command, "it names the call that was in flight")
		requireRecorded(t, s, chain)
		t.Logf("faults: real CLI %s, worker killed in a tool call: tree gone after %.2f s, resumed and %s after %.0f s",
			version, gone.Seconds(), chain.Outcome, time.Since(killed).Seconds())
	})
}

// TestFaultRealCLIHostLostBetweenTiers takes the host away that has run Tier 1.
func TestFaultRealCLIHostLostBetweenTiers(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		marker, drains := filepath.Join(t.TempDir(), "looking"), filepath.Join(t.TempDir(), "drains")
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"},
				claudesim.Bash(lookingUntil(marker, drains)), claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(resolved()))))
		c, address := startTemporalAt(t)
		here := newHost(t, cli, "file://"+t.TempDir())
		keys := []string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}
		environ := here.environ(t, append(keys, "CLAUDEOPS_DRAIN_TIMEOUT=1m")...)
		// The worker drains while Tier 1 runs, so that it finishes it and begins nothing more.
		first := startWorker(t, environ, address)
		run := siteOf(t, c, environ).start(nil)
		require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
		first.drainWith(t, func() {
			time.Sleep(drainingSoon)
			require.NoError(t, os.WriteFile(drains, nil, 0o600))
		})
		require.NoError(t, os.RemoveAll(here.home))
		lost := time.Now()

		environ = here.another(t).environ(t, keys...)
		startWorker(t, environ, address)
		s := siteOf(t, c, environ)
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 2)
		require.Equal(t, escalation.ContinuityResume, chain.Sessions[1].Continuity)
		require.NotEqual(t, chain.Sessions[0].Host, chain.Sessions[1].Host)
		var opening *claudesim.Request
		for _, request := range api.Requests() {
			if strings.Contains(request.Model, "sonnet") && opening == nil {
				opening = &request
			}
		}
		requireWholeConversationOf(t, opening, api.Requests()[0])
		requireRecorded(t, s, chain)
		t.Logf("faults: real CLI %s, host lost between tiers: tier 2 resumed elsewhere with all %d messages, %s after %.0f s",
			version, len(opening.Messages), chain.Outcome, time.Since(lost).Seconds())
	})
}

// requireWholeConversationOf checks that a later request goes on with the conversation of the first.
func requireWholeConversationOf(t *testing.T, later *claudesim.Request, first claudesim.Request) {
	t.Helper()
	require.NotNil(t, later, "Tier 2 never asked its model")
	require.Equal(t, first.Prompts()[0], later.Prompts()[0])
	require.Contains(t, strings.Join(later.ToolResults(), "\n"), "seen by tier 1")
}

// TestFaultRealCLIHostLostInATier takes a host away in the middle of a tier that makes one short call
// after the other. What is missing of its conversation elsewhere is what was said since the last save.
func TestFaultRealCLIHostLostInATier(t *testing.T) {
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
		keys := []string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key", "CLAUDEOPS_TIER1_BUDGET_USD=0", "CLAUDEOPS_TIER1_MAX_TURNS=0"}
		environ := here.environ(t, keys...)
		first := startWorker(t, environ, address)
		s := siteOf(t, c, environ)
		run := s.start(nil)
		require.Eventually(t, func() bool { return len(api.Requests()) > 2 }, testTimeout, 20*time.Millisecond, "no call has ended")
		called := time.Now()
		require.Eventually(t, func() bool { return savedSince(archive, called) }, testTimeout, 20*time.Millisecond, "it is not saved")
		time.Sleep(10 * time.Second) // most of the time to the next save

		session := s.query(run).Sessions[0].SessionID
		first.kill(t)
		lost := time.Now()
		requireGone(t, session, testTimeout)
		asked := len(api.Requests())
		had := transcript(t, filepath.Join(here.home, "state", "claude", "projects"), session)
		require.NoError(t, os.RemoveAll(here.home))
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
		t.Logf("faults: real CLI %s, host lost in a tier: %d of %d lines archived, %.1f s of conversation missing, %s elsewhere after %.0f s",
			version, len(has), len(had), missing.Seconds(), chain.Outcome, time.Since(lost).Seconds())
		require.Less(t, missing, mostMissing)
	})
}

// savedSince reports whether something was written to an archive after a moment: a later save of the same
// run takes the place of the one before.
func savedSince(archive string, moment time.Time) bool {
	return slices.ContainsFunc(objects(archive), func(object string) bool {
		info, err := os.Stat(object)
		return err == nil && info.ModTime().After(moment)
	})
}

// archived returns the lines of a conversation as the archive would give it back.
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

// transcript returns the lines of a conversation.
func transcript(t *testing.T, projects, session string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(projects, "*", session+".jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return slices.Collect(strings.Lines(string(data)))
}

// lastTimestamp is when the last line of a transcript was written that says so.
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
