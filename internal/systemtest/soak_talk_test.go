//go:build soak

package systemtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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

const (
	// talkTemporalEvery and talkHostEvery choose which kills end the Temporal server, and which a host with all its
	// files. All other kills end the worker. A lost host costs the time after which Temporal notices it.
	talkTemporalEvery, talkHostEvery = 4, 25
	// talkWork is the command of each turn. Every third turn runs talkLongWork, of which a heartbeat tells.
	talkWork, talkLongWork = "sleep 0.4", "sleep 2"
)

// killedTalk is a conversation whose worker, host and Temporal server are killed. Hosts share the records and the
// archive.
type killedTalk struct {
	talk
	server *temporalProcess
	host   host
	worker *roleProcess
	dice   *rand.Rand
}

// TestSoakConversationKilled holds a conversation, and kills a part of the installation at a random moment of each
// turn. Two clients send each message at the same time. No message is lost, each is answered once and in order, and no
// answer that was stored is asked for again.
func TestSoakConversationKilled(t *testing.T) {
	server := newTemporalProcess(t)
	server.start(t)
	c := connect(t, server.address)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	claude := simtest.Install(t, claudesim.Play(
		saying("ended before it was done", "gone on"),
		claudesim.On(claudesim.Match{Prompt: "long question"}, claudesim.Bash(talkLongWork), claudesim.Conclude(escalation.TalkReply{Reply: "yes"})),
		claudesim.Always(claudesim.Bash(talkWork), claudesim.Conclude(escalation.TalkReply{Reply: "yes"}))))
	dice, seed := newDice()
	began := time.Now()
	k := &killedTalk{server: server, host: newHost(t, claude, "file://"+t.TempDir()), dice: dice}
	k.talk = siteOf(t, c, k.environ(t)).talk()
	require.NoError(t, k.cfg.MakeDirs())
	k.start(t)
	kills := map[string]int{}
	var slowest time.Duration
	for turn := 1; turn <= *soakTurns; turn++ {
		asked := time.Now()
		victim := k.turn(t, turn)
		kills[victim]++
		slowest = max(slowest, time.Since(asked))
	}
	k.worker.drain(t)
	t.Logf("soak: conversation: turns=%d kills_of_worker=%d kills_of_temporal=%d kills_of_host=%d %s slowest_turn=%s took=%s seed=%d",
		*soakTurns, kills["worker"], kills["temporal"], kills["host"], k.requireAll(t, claude), slowest.Round(time.Second),
		time.Since(began).Round(time.Second), seed)
}

func (k *killedTalk) environ(t *testing.T) []string {
	t.Helper()
	return k.host.environ(t, "CLAUDEOPS_DAY_BUDGET_USD=0")
}

func (k *killedTalk) start(t *testing.T) {
	t.Helper()
	k.worker = startWorker(t, k.environ(t), k.server.address)
}

// turn sends a message from two clients, kills a part of the installation, and waits for the answer. It returns the
// part.
func (k *killedTalk) turn(t *testing.T, turn int) (victim string) {
	t.Helper()
	id, text := fmt.Sprint("m-", turn), fmt.Sprintf("question %d.", turn)
	if turn%3 == 0 {
		text = "long " + text
	}
	k.worker.awaitReady(t)
	var sending sync.WaitGroup
	for range 2 {
		sending.Go(func() {
			if got := k.send(id, text); got != turn {
				t.Errorf("message %d has turn %d", turn, got)
			}
		})
	}
	time.Sleep(moment(k.dice, 2*time.Second))
	switch {
	case turn%talkHostEvery == 0:
		victim = "host"
		k.worker.kill(t)
		requireGone(t, "HOME="+k.host.home)
		require.NoError(t, os.RemoveAll(k.host.home))
		k.host = k.host.another(t)
		k.start(t)
	case turn%talkTemporalEvery == 0:
		victim = "temporal"
		k.server.kill(t)
		time.Sleep(moment(k.dice, time.Second))
		k.server.start(t)
	default:
		victim = "worker"
		k.worker.kill(t)
		k.start(t)
	}
	sending.Wait()
	ended := k.await(turn)
	require.Equal(t, escalation.TalkAnswered, ended.State, "turn %d: %s", turn, ended.Failure)
	require.Empty(t, ended.Note, "turn %d lost the conversation", turn)
	return victim
}

// requireAll checks all turns at the end, and returns figures.
func (k *killedTalk) requireAll(t *testing.T, claude string) (figures string) {
	t.Helper()
	records := k.records()
	turns, err := records.TalkTurns(t.Context(), k.id(), 2**soakTurns)
	require.NoError(t, err)
	require.Len(t, turns, *soakTurns, "no message was lost, and none counts twice")
	sessions := k.sessionsOf(records)
	require.Len(t, sessions, *soakTurns, "one session for each message")
	attempts, most := 0, 0
	var paid float64
	for i, turn := range turns {
		require.Equal(t, fmt.Sprint("m-", i+1), turn.MessageID, "in order")
		require.Equal(t, sessions[i].SessionID, turn.SessionID)
		require.NotEqual(t, escalation.SessionRunning, sessions[i].Status)
		require.InDelta(t, sessions[i].CostUSD, turn.CostUSD, 1e-9)
		if i > 0 {
			require.Equal(t, sessions[i-1].ID, sessions[i].ParentID, "each turn forks the one before")
		}
		attempts += sessions[i].Attempts
		most = max(most, sessions[i].Attempts)
		paid += turn.CostUSD
	}
	again, told := k.requireInOrder(t, simtest.Requests(t, claude))
	return fmt.Sprintf("lost=0 out_of_order=0 sessions=%d attempts=%d most_attempts=%d told_of_the_call=%d answers_asked_again=%d cost=$%.2f",
		len(sessions), attempts, most, told, again, paid)
}

// requireInOrder checks that no turn asks its model after a later turn has begun. It returns how many answers were
// asked for again, because their process died before it could store them, and how many turns were told of the call in
// flight.
func (k *killedTalk) requireInOrder(t *testing.T, requests []claudesim.Request) (again, told int) {
	t.Helper()
	latest, answers := 0, map[int]int{}
	for _, request := range requests {
		prompts := request.Prompts()
		turn := 0
		for n, prompt := range slices.Backward(prompts) {
			if _, text, ok := strings.Cut(prompt, "question "); ok {
				_, err := fmt.Sscanf(text, "%d.", &turn)
				require.NoError(t, err, "%d: %s", n, prompt)
				break
			}
		}
		require.GreaterOrEqual(t, turn, latest, "turn %d asked after turn %d", turn, latest)
		latest = turn
		resumed := strings.Contains(request.Prompt(), "ended before it was done")
		if resumed && strings.Contains(request.Prompt(), talkLongWork) {
			told++
		}
		if resumed || request.Step() == 1 {
			answers[turn]++
		}
	}
	for turn := 1; turn <= *soakTurns; turn++ {
		require.Positive(t, answers[turn], "turn %d", turn)
		again += answers[turn] - 1
	}
	return again, told
}
