package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestFaultConversationTemporalKilled kills the Temporal server while a message arrives, while its session runs a
// command, and while messages wait. The session goes on. Each message is answered once, in order.
func TestFaultConversationTemporalKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	server := newTemporalProcess(t)
	server.start(t)
	c := connect(t, server.address)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	marks := t.TempDir()
	file := func(name string, turn int) string { return filepath.Join(marks, fmt.Sprint(name, turn)) }
	var turns []claudesim.Turn
	for _, turn := range []int{2, 4} {
		turns = append(turns, claudesim.On(claudesim.Match{Prompt: fmt.Sprint("question ", turn)},
			claudesim.Bash(fmt.Sprintf("touch %s; while [ ! -e %s ]; do sleep 0.05; done", file("began", turn), file("goes", turn))),
			claudesim.Conclude(escalation.TalkReply{Reply: "yes"})))
	}
	claude := simtest.Install(t, claudesim.Play(append(turns, saying("", "yes"))...))
	environ := environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash")
	worker := startWorker(t, environ, server.address)
	worker.awaitReady(t)
	talk := siteOf(t, c, environ).talk()
	ask := func(turn int) int { return talk.send(fmt.Sprint("m-", turn), fmt.Sprint("question ", turn)) }
	restart := func() {
		server.kill(t)
		server.start(t)
	}

	var sending sync.WaitGroup
	sending.Go(func() { ask(1) })
	restart() // at whatever moment of the first message
	sending.Wait()
	require.Equal(t, escalation.TalkAnswered, talk.await(1).State)
	for _, turn := range []int{2, 4} {
		require.Equal(t, turn, ask(turn))
		require.Eventually(t, exists(file("began", turn)), testTimeout, 20*time.Millisecond)
		if turn == 4 {
			require.Equal(t, 5, ask(5))
			require.Equal(t, 6, ask(6))
		}
		restart()
		require.NoError(t, os.WriteFile(file("goes", turn), nil, 0o600))
		require.Equal(t, turn, ask(turn), "a message that is sent again keeps its turn")
		require.Equal(t, "yes", talk.await(turn).Reply)
		if turn == 2 {
			require.Equal(t, 3, ask(3))
		}
	}
	require.Equal(t, escalation.TalkAnswered, talk.await(6).State)
	worker.drain(t)

	sessions := talk.sessionsOf(talk.records())
	require.Len(t, sessions, 6, "one session for each message")
	for i := range sessions[1:] {
		require.Equal(t, sessions[i].ID, sessions[i+1].ParentID, "each turn forks the one before")
	}
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 6, "no session was begun again")
	for i := range launches {
		require.Contains(t, launches[i].Stdin, fmt.Sprint("question ", i+1), "in order")
	}
}

// TestFaultRealCLIConversationHostKilled kills a host while its session runs a command, and removes all that was on the
// host. The other host has the archive and the records only. It goes on, and is told what was in flight.
func TestFaultRealCLIConversationHostKilled(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		c, address := startTemporalAt(t)
		marker := filepath.Join(t.TempDir(), "began")
		api := simtest.StartAPI(t, claudesim.Play(
			saying("ended before it was done", "gone on"),
			claudesim.On(claudesim.Match{Prompt: "linger"}, claudesim.Bash("touch "+marker+"; sleep 600")),
			saying("", "yes")))
		here := newHost(t, cli, "file://"+t.TempDir())
		keys := []string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}
		environ := here.environ(t, keys...)
		lost := startWorker(t, environ, address)
		talk := siteOf(t, c, environ).talk()
		require.Equal(t, "yes", talk.say("m-1", "remember the word plum").Reply)
		require.Equal(t, 2, talk.send("m-2", "linger"))
		require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
		require.Eventually(t, func() bool { return len(talk.heartbeat(talk.id()).InFlight) > 0 }, testTimeout, 20*time.Millisecond)
		lost.kill(t)
		requireGone(t, "CLAUDEOPS_CHAIN_ID="+talk.id())
		loseHost(t, here.home)

		other := startWorker(t, here.another(t).environ(t, keys...), address)
		second := talk.await(2)
		require.Equal(t, "gone on", second.Reply, second.Failure)
		require.Empty(t, second.Note, "nothing was lost")
		require.Equal(t, "yes", talk.say("m-3", "which word?").Reply)
		other.drain(t)

		requests := api.Requests()
		last := strings.Join(requests[len(requests)-1].Prompts(), "\n")
		require.Contains(t, last, "remember the word plum", "the conversation came from the archive")
		require.Contains(t, last, "sleep 600", "the turn was told what was in flight")
		sessions := talk.sessionsOf(talk.records())
		require.Len(t, sessions, 3)
		require.Equal(t, 2, sessions[1].Attempts)
		require.NotEqual(t, sessions[0].Host, sessions[1].Host)
	})
}

// TestConversationOfAnotherHost continues a conversation whose file is on another host, and in no archive.
func TestConversationOfAnotherHost(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(saying("", "yes")))
	temporalServer, address := startTemporalAt(t)
	here := newHost(t, claude, "none")
	first := startSite(t, temporalServer, here.environ(t))
	c := first.talk()
	c.say("m-1", "remember the word plum")
	require.NoError(t, first.stop())

	environ := here.another(t).environ(t)
	other := startWorker(t, environ, address)
	moved := talk{siteOf(t, temporalServer, environ), c.name}
	second := moved.say("m-2", "which word?")
	require.Equal(t, "yes", second.Reply, second.Failure)
	require.Contains(t, second.Note, "the file of the one before is on the host host-1, and in no archive that this host can read")
	require.Empty(t, moved.say("m-3", "and now?").Note, "the conversation is alive again")
	other.drain(t)
}
