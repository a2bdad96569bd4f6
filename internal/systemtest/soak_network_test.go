//go:build soak

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// endedBefore is the shortest allowed gap between the end of the cut-off agent and the start of the next agent. The
// heartbeat deadline leaves a far longer gap. Killing an agent that still runs would leave a far shorter one.
const endedBefore = 4 * time.Second

// cutSite is a chain whose worker gets cut off from Temporal.
type cutSite struct {
	name   string
	line   *line
	cutOff *site
	other  *site
	run    client.WorkflowRun
	watch  *watch
	cut    time.Time
}

// TestSoakNetworkCut cuts the line between Temporal and a worker in the middle of a tool call, for longer than the
// heartbeat timeout. Another worker has a connection of its own.
func TestSoakNetworkCut(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	closed := startCutSite(t, c, address, "closed", 1)
	swallows := startCutSite(t, c, address, "swallows", 1)
	closed.cutNow(lineClosed)
	swallows.cutNow(lineSwallows)
	closed.requireHandedOver(t)
	swallows.requireHandedOver(t)
}

// TestSoakNetworkCutWithFreeSlots cuts off a worker that has free slots. Until Temporal notices that the silent
// connections are dead, it also assigns the next attempt to that worker.
func TestSoakNetworkCutWithFreeSlots(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	s := startCutSite(t, c, address, "free-slots", 4)
	s.cutNow(lineSwallows)
	s.requireHandedOver(t)
}

// startCutSite starts a chain on a worker behind a line. When the chain's agent is in a tool call, it starts another
// worker with a connection of its own.
func startCutSite(t *testing.T, c client.Client, address, name string, slots int) *cutSite {
	t.Helper()
	started := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: startedAgain}, claudesim.Conclude(resolved()).After(2*time.Second)), // long enough to be seen
		claudesim.Always(claudesim.Bash("touch "+started+"; sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_TASK_QUEUE="+name,
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	s := &cutSite{name: name, watch: startWatch(t, claude), line: startLine(t, address)}
	s.cutOff = startSite(t, connect(t, s.line.Addr().String()),
		append(environ, fmt.Sprintf("CLAUDEOPS_MAX_CONCURRENT_AGENTS=%d", slots)))
	s.run = s.cutOff.startAs("chain-"+name, nil)
	require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, testTimeout, 10*time.Millisecond)
	s.other = startSite(t, c, environ)
	return s
}

func (s *cutSite) cutNow(state lineState) {
	s.cut = time.Now()
	s.line.set(state)
}

// requireHandedOver waits until the chain has ended on the other worker. It checks that the agent of the first worker
// ended at least endedBefore the next agent started.
func (s *cutSite) requireHandedOver(t *testing.T) {
	t.Helper()
	chain, err := s.other.finish(s.other.client.GetWorkflow(t.Context(), s.run.GetID(), s.run.GetRunID()))
	require.NoError(t, err)
	ended := time.Since(s.cut)
	s.line.set(lineOpen)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 1)
	requireRecorded(t, s.other, chain)
	require.NoError(t, s.cutOff.stop())
	require.NoError(t, s.other.stop())

	seen := s.watch.stop(t)
	seen.requireAlone(t)
	session := chain.Sessions[0].SessionID
	agents := seen.of(session)
	require.Len(t, agents, 2)
	gap := agents[1].First.Sub(agents[0].Last)
	require.Greater(t, gap, endedBefore, "the worker that is cut off must end its agent by itself")
	require.Empty(t, seen.leftOver(t, "CLAUDEOPS_SESSION_ID="+session))
	t.Logf("soak: network cut (%s): old_agent_ended=%s next_started=%s gap=%s chain_ended=%s attempts=%d agents_seen=%d at_once=0 "+
		"processes_left=0 looks=%d longest_blind=%s",
		s.name, agents[0].Last.Sub(s.cut).Round(time.Millisecond), agents[1].First.Sub(s.cut).Round(time.Millisecond),
		gap.Round(time.Millisecond), ended.Round(time.Millisecond), chain.Sessions[0].Attempts, len(agents),
		seen.Looks, seen.Blind.Round(time.Millisecond))
}
