//go:build linux

package systemtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// These tests kill workers that run the real CLI, or remove their hosts. Only the model is scripted.

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
		require.Eventually(t, func() bool { // the CLI writes the transcript a moment later
			files, _ := filepath.Glob(filepath.Join(s.cfg.AgentsDir(), "sessions", session, "projects", "*", session+".jsonl"))
			if len(files) != 1 {
				return false
			}
			kept, err := os.ReadFile(files[0])
			return err == nil && bytes.Contains(kept, []byte(`"tool_use"`))
		}, testTimeout, 20*time.Millisecond, "the transcript has no call")

		asked := len(api.Requests())
		first.kill(t)
		gone := requireGone(t, session)
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

// TestFaultRealCLIHostLostBetweenTiers removes the host that has run Tier 1 before Tier 2 begins.
func TestFaultRealCLIHostLostBetweenTiers(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		leaves := filepath.Join(t.TempDir(), "leaves")
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"},
				claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(resolved()))))
		c, address := startTemporalAt(t)
		here := newHost(t, cli, "file://"+t.TempDir())
		keys := []string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}
		first := startSite(t, connect(t, address, leaving(beforeTier2, leaves)), here.environ(t, keys...))
		run := first.start(nil)
		require.Eventually(t, exists(leaves), testTimeout, 20*time.Millisecond)
		require.NoError(t, first.stop())
		loseHost(t, here.home)
		lost := time.Now()

		environ := here.another(t).environ(t, keys...)
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

// requireWholeConversationOf checks that a later request contains the conversation that the first request began.
func requireWholeConversationOf(t *testing.T, later *claudesim.Request, first claudesim.Request) {
	t.Helper()
	require.NotNil(t, later, "Tier 2 never asked its model")
	require.Equal(t, first.Prompts()[0], later.Prompts()[0])
	require.Contains(t, strings.Join(later.ToolResults(), "\n"), "seen by tier 1")
}

// TestFaultRealCLIContinuedAtAGate lets Tier 2 spend its budget and kills the worker. Then it continues the
// session at the gate.
func TestFaultRealCLIContinuedAtAGate(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		next := requireContinuedAtAGate(t, cli, interruption{
			source: escalation.GateBudget, limit: "CLAUDEOPS_TIER2_BUDGET_USD=0.001",
			work: []claudesim.Reply{claudesim.Bash("echo seen by tier 2"), claudesim.Bash("true"), claudesim.Bash("true")},
		})
		require.Contains(t, strings.Join(next.ToolResults(), "\n"), "seen by tier 2", "with what Tier 2 found")
	})
}

// interruption describes how a limit ends Tier 2 while it works, before it has concluded.
type interruption struct {
	source escalation.GateSource
	limit  string
	work   []claudesim.Reply
}

// requireContinuedAtAGate interrupts Tier 2, kills the worker, and continues the session at the gate. The
// continuation fails, so the next gate must not offer another one. It returns the first request of the continuation.
func requireContinuedAtAGate(t *testing.T, cli string, by interruption) claudesim.Request {
	t.Helper()
	failed := escalation.Verdict{Status: escalation.VerdictFailed, Summary: "it does not answer", Services: []string{"jellyfin"}}
	api := simtest.StartAPI(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(failed)),
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asksFor(2))),
		claudesim.On(claudesim.Match{Model: "sonnet"}, by.work...)))
	c, address := startTemporalAt(t)
	environ := environment(t, cli, append(toolsAllowed(), "ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key",
		"CLAUDEOPS_TIER2_TOOLS=Bash", by.limit, "CLAUDEOPS_GATE_TIMEOUT=72h")...)
	s := siteOf(t, c, environ)
	first := startWorker(t, environ, address)
	run := s.start(nil)
	gate := s.awaitGate(run.GetID(), "gate-1")
	require.Equal(t, by.source, gate.Source)
	require.NotNil(t, gate.Continuation, gate.NoContinuation)
	interrupted := s.query(run).Sessions[1]
	require.Equal(t, interrupted.SessionID, interrupted.ReportedSessionID, "an interrupted tier carries its session")
	first.kill(t)
	asked := len(api.Requests())

	startWorker(t, append(environ, "CLAUDEOPS_TIER2_BUDGET_USD=2"), address)
	_, err := s.resolve(run.GetID(), escalation.GateAnswer{
		GateID: "gate-1", Action: escalation.GateContinue, Actor: "anna", Guidance: "the proxy was moved to host seven",
	})
	require.NoError(t, err)
	second := s.awaitGate(run.GetID(), "gate-2")
	requests := api.Requests()
	require.Greater(t, len(requests), asked)
	next := requests[asked]
	require.Equal(t, requests[0].Prompts()[0], next.Prompts()[0], "the old conversation goes on")
	require.Contains(t, next.Text(), "jellyfin answers 502", "with what Tier 1 found")
	require.Contains(t, next.Prompt(), "Continue this session and complete all that is left")
	require.Contains(t, next.Prompt(), "the proxy was moved to host seven")
	require.Equal(t, escalation.GateFailed, second.Source)
	require.Nil(t, second.Continuation)
	require.Contains(t, second.NoContinuation, "was tried, and failed")
	_, err = s.resolve(run.GetID(), escalation.GateAnswer{GateID: "gate-2", Action: escalation.GateContinue, Actor: "anna"})
	require.ErrorContains(t, err, "gate-2 does not offer to continue")
	_, err = s.resolve(run.GetID(), escalation.GateAnswer{GateID: "gate-2", Action: escalation.GateOverride, Actor: "anna"})
	require.NoError(t, err)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
	require.Len(t, chain.Sessions, 3)
	require.Equal(t, interrupted.ID, chain.Sessions[2].ParentID)
	requireRecordedBut(t, s, chain, escalation.EventGateRefused)
	return next
}
