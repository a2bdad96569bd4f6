package cli

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	s := startStage(t)

	t.Run("tiers, a wait, a gate that is answered, and the end", func(t *testing.T) {
		t.Parallel()
		s.plays(t, "chain-all", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight()}, scene{Chain: chaintest.Pausing()},
			scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{Chain: chaintest.Working()}, scene{Chain: chaintest.Overridden(chaintest.OpenedGate())})
		shown := onScreen(t, s.environ, 80, 34, "watch", "chain-all")
		shown.Sees("./jellyfin status")
		shown.Is("watch-tier")
		s.next(t, "chain-all")
		shown.Sees("jellyfin was restarted twice")
		shown.Is("watch-wait")
		s.next(t, "chain-all")
		shown.Sees("Your answer")
		shown.Is("watch-gate")
		shown.Types("c: mind the lock\r")
		shown.Sees("What is next: continue_session.")
		shown.Is("watch-answered")
		require.Equal(t, []escalation.GateAnswer{
			{GateID: "gate-1", Action: escalation.GateContinue, Guidance: "mind the lock", Actor: "ada"},
		}, s.answers(t, "chain-all"))
		s.next(t, "chain-all")
		require.Equal(t, program.ExitOK, shown.Ends())
		shown.Is("watch-end")
		require.NotContains(t, shown.Sent(), "\x1b]0;owned")
	})
	t.Run("a refused answer can be given again", func(t *testing.T) {
		t.Parallel()
		s.plays(t, "chain-refused", scene{Chain: chaintest.Waiting(chaintest.BareGate())}, scene{Chain: chaintest.Overridden(chaintest.BareGate())}, scene{Chain: chaintest.Overridden(chaintest.BareGate())})
		shown := onScreen(t, s.environ, 80, 34, "watch", "chain-refused", "--actor", "mallory")
		shown.Sees("Your answer")
		shown.Types("c\r")
		shown.Sees("gate-1 does not offer to continue")
		shown.Types("\x15o\r") // ctrl+u deletes the line first
		shown.Sees("Sure?")
		shown.Types("y")
		shown.Sees("gate-1 was not answered: mallory may not answer")
		shown.Sees("Your answer")
		shown.Is("watch-refused")
		require.Equal(t, program.ExitOK, starter(t, s.environ, "gate", "chain-refused", "--action", "o").Code)
		shown.Sees("gate-1 is closed: ada answered override at 2026-03-01 12:00 UTC")
		s.next(t, "chain-refused")
		require.Equal(t, program.ExitOK, shown.Ends())
		shown.Sees("Outcome: accepted by a person")
	})
	t.Run("narrow, and left", func(t *testing.T) {
		t.Parallel()
		s.plays(t, "chain-narrow", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight()}, scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{})
		shown := onScreen(t, slices.Concat(s.environ, []string{"NO_COLOR=1"}), 40, 36, "watch", "chain-narrow")
		shown.Sees("./jellyfin status")
		shown.Is("watch-narrow")
		s.next(t, "chain-narrow")
		shown.Sees("Your answer")
		shown.Is("watch-narrow-gate")
		shown.Types("\x03")
		require.Equal(t, program.ExitOK, shown.Ends())
		shown.Sees("Chain chain-narrow goes on.")
		require.Empty(t, s.answers(t, "chain-narrow"))
	})
	t.Run("chains of issues", func(t *testing.T) {
		t.Parallel()
		parent := chaintest.Pausing()
		parent.Wait = nil
		parent.Issues = []escalation.IssueChain{
			{ChainID: "chain-issue-1", Services: []string{"jellyfin"}},
			{ChainID: "chain-issue-2", Services: []string{"nas"}, Outcome: escalation.OutcomeResolved, Cost: escalation.Cost{CostUSD: 0.2}},
		}
		s.plays(t, "chain-issue-1", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{})
		s.plays(t, "chain-parent", scene{Chain: parent}, scene{})
		shown := onScreen(t, s.environ, 80, 20, "watch", "chain-parent")
		shown.Sees("answer with: claudeops gate chain-issue-1")
		shown.Is("watch-issues")
		shown.Types("q")
		require.Equal(t, program.ExitOK, shown.Ends())
	})
	t.Run("an attempt after one that failed", func(t *testing.T) {
		t.Parallel()
		s.plays(t, "chain-again", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight(), Failure: chaintest.HostileFailure}, scene{})
		shown := onScreen(t, s.environ, 80, 20, "watch", "chain-again")
		shown.Sees("attempt 1 ended")
		shown.Sees("./jellyfin status")
		shown.Is("watch-again")
		shown.Types("q")
		require.Equal(t, program.ExitOK, shown.Ends())
		require.NotContains(t, shown.Sent(), "\x1b]0;owned")
	})
	t.Run("no worker is free", func(t *testing.T) {
		t.Parallel()
		s.plays(t, "chain-queued", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight(), Queue: "nobody"}, scene{})
		shown := onScreen(t, s.environ, 80, 20, "watch", "chain-queued")
		shown.Sees("waits for a free worker")
		shown.Is("watch-queued")
		shown.Types("q")
		require.Equal(t, program.ExitOK, shown.Ends())
	})
	t.Run("no such chain", func(t *testing.T) {
		t.Parallel()
		got := starter(t, s.environ, "watch", "nobody")
		require.Equal(t, program.ExitFailure, got.Code)
		require.Equal(t, "claudeops: chain nobody: no such chain; `claudeops chains` lists them\n", got.Stderr)
	})
}

func TestWatchWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.plays(t, "chain-lines", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight(), Failure: chaintest.HostileFailure}, scene{Chain: chaintest.Waiting(chaintest.BareGate())}, scene{Chain: chaintest.Overridden(chaintest.BareGate())})
	var printed transcript
	ended := make(chan program.ExitCode, 1)
	go func() {
		ended <- execute(t.Context(), &console.Console{
			Process: program.Process{
				Args: []string{"watch", "chain-lines"}, Environ: s.environ, Stdin: strings.NewReader(""), Stdout: &printed, Stderr: &printed,
			},
			Clock: chaintest.Clock, Patience: clitest.Timeout,
		})
	}()
	printed.sees(t, "Bash  ./jellyfin restart")
	s.next(t, "chain-lines")
	printed.sees(t, "answer with: claudeops gate chain-lines")
	require.Equal(t, program.ExitOK, starter(t, s.environ, "gate", "chain-lines", "--action", "o").Code)
	require.Equal(t, program.ExitOK, <-ended, printed.text())
	for _, want := range []string{
		"  chain started (manual), highest tier 3\n", "attempt 2, by worker process 4711 on host-1\n",
		"    attempt 1 ended: the API call failed: Connection refused]0;owned[2J  by the agent\n", "Bash  ./jellyfin restart\n",
		"  chain chain-lines waits for a person at gate-1: tier 2 could not do its work: ",
		"answer with: claudeops gate chain-lines\n", "    Gate gate-1  tier 2  tier 2 could not", "        ada answered override at ", "Outcome: accepted by a person",
	} {
		require.Equal(t, 1, strings.Count(printed.text(), want), "%q in\n%s", want, printed.text())
	}
	require.NotContains(t, printed.text(), "\x1b")
}

// transcript collects the output of a running program.
type transcript struct {
	mutex   sync.Mutex
	printed bytes.Buffer
}

func (p *transcript) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.printed.Write(text)
}

func (p *transcript) text() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.printed.String()
}

func (p *transcript) sees(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.text(), text) }, clitest.Timeout, clitest.Look, "it does not print %q", text)
}
