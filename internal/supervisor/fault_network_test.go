package supervisor_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// lineState is what a line does to those who use it.
type lineState int

const (
	lineOpen lineState = iota
	lineClosed
	lineSwallows // connections stay, and nothing comes through
)

// line is a TCP connection to a server that a test can cut.
type line struct {
	net.Listener
	target string

	mu    sync.Mutex
	state lineState
	ends  map[net.Conn]bool
}

// startLine listens for those who want to talk to target.
func startLine(t *testing.T, target string) *line {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{Listener: listener, target: target, ends: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() {
		_ = l.Close()
		l.set(lineClosed)
	})
	return l
}

func (l *line) serve() {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		if l.add(near, far) {
			go l.pass(near, far)
			go l.pass(far, near)
		}
	}
}

// add takes in the two ends of a connection, unless the line is closed.
func (l *line) add(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		if l.state == lineClosed {
			_ = end.Close()
		} else {
			l.ends[end] = true
		}
	}
	return l.state != lineClosed
}

// pass carries bytes from one end to the other, or drops them.
func (l *line) pass(from, to net.Conn) {
	defer l.drop(from, to)
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil && (n == 0 || err != io.EOF) { //nolint:errorlint // a reader returns io.EOF itself
			return
		}
		if l.swallows() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *line) drop(ends ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		_ = end.Close()
		delete(l.ends, end)
	}
}

func (l *line) swallows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == lineSwallows
}

// set changes what the line does. Connections that have lost bytes do not outlive that.
func (l *line) set(state lineState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lineSwallows || state == lineClosed {
		for end := range l.ends {
			_ = end.Close()
		}
		clear(l.ends)
	}
	l.state = state
}

// fencedBefore is what must lie at least between the end of the cut-off agent and the start of the
// next. It is much less than the fence leaves, and much more than it takes to kill an agent that is
// still there when the next one is to start.
const fencedBefore = 4 * time.Second

// cutSite is a chain whose worker is to be cut off from Temporal.
type cutSite struct {
	name   string
	line   *line
	cutOff *site
	other  *site
	run    client.WorkflowRun
	watch  *watch
	cut    time.Time
}

// TestFaultNetworkCut cuts the line between Temporal and a worker in the middle of a tool call for
// longer than a heartbeat takes to time out, while another worker has a line of its own.
func TestFaultNetworkCut(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	closed := startCutSite(t, c, address, "closed", 1)
	swallows := startCutSite(t, c, address, "swallows", 1)
	closed.cutNow(lineClosed)
	swallows.cutNow(lineSwallows)
	closed.requireHandedOver(t)
	swallows.requireHandedOver(t)
}

// TestFaultNetworkCutWithFreeSlots cuts off a worker that waits for more work: as long as Temporal
// takes its silent connections for good, it gives them the next attempt, too.
func TestFaultNetworkCutWithFreeSlots(t *testing.T) {
	if !*faultLong {
		t.Skip("takes minutes; make faults runs it")
	}
	t.Parallel()
	c, address := startTemporalAt(t)
	s := startCutSite(t, c, address, "free-slots", 4)
	s.cutNow(lineSwallows)
	s.requireHandedOver(t)
}

// startCutSite starts a chain on a worker behind a line, and then, when its agent is in a tool
// call, a worker with a line of its own.
func startCutSite(t *testing.T, c client.Client, address, name string, slots int) *cutSite {
	t.Helper()
	started := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: startedAgain}, claudesim.Conclude(resolved()).After(2*time.Second)), // long enough to be seen
		claudesim.Always(claudesim.Bash("touch "+started+"; sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_TASK_QUEUE="+name,
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER1_ALLOWED_TOOLS=Bash")
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

// requireHandedOver waits for the chain's end on the other worker, and wants the agent of the
// first to have ended long before.
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
	require.Greater(t, gap, fencedBefore, "the worker that is cut off must end its agent by itself")
	require.Empty(t, seen.leftOver(t, "CLAUDEOPS_SESSION_ID="+session))
	t.Logf("faults: network cut (%s): old_agent_ended=%s next_started=%s gap=%s chain_ended=%s attempts=%d agents_seen=%d at_once=0 "+
		"processes_left=0 looks=%d longest_blind=%s",
		s.name, agents[0].Last.Sub(s.cut).Round(time.Millisecond), agents[1].First.Sub(s.cut).Round(time.Millisecond),
		gap.Round(time.Millisecond), ended.Round(time.Millisecond), chain.Sessions[0].Attempts, len(agents),
		seen.Looks, seen.Blind.Round(time.Millisecond))
}
