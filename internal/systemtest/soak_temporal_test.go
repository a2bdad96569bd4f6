//go:build soak

package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// lanes is the number of chains that run at the same time.
const lanes = 6

// longOutageEvery makes every seventh outage so long that workers must end their agents.
const longOutageEvery = 7

// TestSoakTemporalKilled kills the Temporal server at random moments while chains run, and restarts it on its file.
// Most restarts follow soon. Some follow only after workers had to end their agents.
func TestSoakTemporalKilled(t *testing.T) {
	server := newTemporalProcess(t)
	server.start(t)
	c := connect(t, server.address)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	f := newWatchedSite(t, c, lanes)
	worker := startWorker(t, f.environ, server.address)
	worker.awaitReady(t)
	dice, seed := newDice()
	began := time.Now()

	over := make(chan struct{})
	wait := f.runLanes(t, over)
	away, slowest := f.killTimes(t, server, *soakKills, dice)
	close(over)
	chains := wait()
	worker.drain(t)
	t.Logf("soak: Temporal killed: kills=%d away=%s slowest_return=%s %s took=%s seed=%d", *soakKills, away.Round(time.Second), slowest.Round(time.Second),
		f.requireAllUnharmed(t, chains), time.Since(began).Round(time.Second), seed)
}

// killTimes kills and restarts the server the given number of times while agents start. It returns how long the
// server was away in total, and the longest time from a restart until the next agent started.
func (f *watchedSite) killTimes(t *testing.T, server *temporalProcess, times int, dice *rand.Rand) (away, slowest time.Duration) {
	t.Helper()
	for i := range times {
		f.awaitLaunch(t)
		time.Sleep(moment(dice, 2*time.Second))
		died := time.Now()
		server.kill(t)
		pause := moment(dice, 3*time.Second)
		if i%longOutageEvery == longOutageEvery-1 {
			pause += 17 * time.Second
		}
		time.Sleep(pause)
		server.start(t)
		away += time.Since(died)
		back := time.Now()
		f.awaitLaunch(t)
		slowest = max(slowest, time.Since(back))
	}
	return away, slowest
}

// awaitLaunch waits until one more agent has started.
func (f *watchedSite) awaitLaunch(t *testing.T) {
	t.Helper()
	before := len(simtest.Launches(t, f.claude))
	simtest.AwaitLaunches(t, f.claude, before+1, testTimeout)
}

// runLanes runs chains until over is closed. Each lane runs one chain after another. The function that it returns
// waits for the running chains and returns all chains.
func (f *watchedSite) runLanes(t *testing.T, over <-chan struct{}) (wait func() []escalation.Chain) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soakLimit)
	t.Cleanup(cancel)
	var running sync.WaitGroup
	var mu sync.Mutex
	var chains []escalation.Chain
	lane := func(name, service string) {
		for i := 0; ; i++ {
			chain, err := f.run(ctx, fmt.Sprintf("%s-%d", name, i), service)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			chains = append(chains, chain)
			mu.Unlock()
			select {
			case <-over:
				return
			default:
			}
		}
	}
	for i, name := range [lanes]string{"chain-a", "chain-b", "chain-c", "chain-d", slowChain + "a", slowChain + "b"} {
		running.Go(func() { lane(name, serviceOf(i)) })
	}
	return func() []escalation.Chain {
		running.Wait()
		return chains
	}
}
