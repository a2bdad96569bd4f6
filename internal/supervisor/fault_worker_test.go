package supervisor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// faultLimit bounds a fault test: far more than the full figures take.
const faultLimit = 15 * time.Minute

// TestFaultWorkerKilled kills the worker at random moments, and starts it again, until all of many
// concurrent chains have ended.
func TestFaultWorkerKilled(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	f := newFaultSite(t, c)
	f.environ = append(f.environ, "TEMPORAL_ADDRESS="+address)
	dice, seed := newDice()
	began := time.Now()
	var ids []string
	for i := range *faultChains {
		id := fmt.Sprintf("chain-%d", i)
		if i%3 == 1 {
			id = longChain + id
		}
		ids = append(ids, id)
	}
	chains, over := f.runAll(t, ids...)
	kills := f.killWorkersUntil(t, over, dice)
	figures := f.requireUnharmed(t, *chains)
	require.Positive(t, kills)
	t.Logf("faults: worker killed: kills=%d %s took=%s seed=%d", kills, figures, time.Since(began).Round(time.Second), seed)
}

// runAll starts chains at once. Once the channel that it returns is closed, they have ended.
func (f *faultSite) runAll(t *testing.T, ids ...string) (chains *[]escalation.Chain, over <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faultLimit)
	t.Cleanup(cancel)
	all, done := make([]escalation.Chain, len(ids)), make(chan struct{})
	var running sync.WaitGroup
	for i, id := range ids {
		running.Go(func() {
			chain, err := f.run(ctx, id, serviceOf(i))
			if err != nil {
				t.Error(err)
			}
			all[i] = chain
		})
	}
	go func() {
		running.Wait()
		close(done)
	}()
	return &all, done
}

// longLifeEvery is how often a worker lives so long that a long repair ends on a slow machine, too, before
// its attempts are used up.
const longLifeEvery = 20

// killWorkersUntil runs one worker after another and kills each at a random moment, some of them while
// they start. The last one, which has nothing to do any more, is drained.
func (f *faultSite) killWorkersUntil(t *testing.T, over <-chan struct{}, dice *rand.Rand) (kills int) {
	t.Helper()
	for ; ; kills++ {
		worker := startRole(t, "worker", nil, f.environ...)
		pause := moment(dice, time.Second)
		if dice.IntN(5) > 0 {
			pause = moment(dice, 5*time.Second)
			worker.awaitReady(t)
		}
		if kills%longLifeEvery == longLifeEvery-1 {
			pause = 10 * time.Second
		}
		select {
		case <-time.After(pause):
			worker.kill(t)
		case <-over:
			worker.drain(t)
			return kills
		}
	}
}

// TestFaultWorkerRestarted kills a worker in the middle of a repair. The next one must not leave it
// to Temporal's time-out to find out.
func TestFaultWorkerRestarted(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	f := newFaultSite(t, c)
	f.environ = append(f.environ, "TEMPORAL_ADDRESS="+address)
	const id = lingeringChain + "chain"
	chains, over := f.runAll(t, id)
	worker := startRole(t, "worker", nil, f.environ...)
	require.Eventually(t, exists(filepath.Join(f.effects, id)), testTimeout, 5*time.Millisecond)
	worker.kill(t)
	worker = startRole(t, "worker", nil, f.environ...)
	worker.awaitReady(t)
	ready := time.Now()
	<-over
	took := time.Since(ready)
	worker.kill(t)
	launches := simtest.Launches(t, f.claude)
	require.Len(t, launches, 3, "Tier 1, Tier 2 and Tier 2 again")
	require.Contains(t, launches[2].Stdin, startedAgain)
	t.Logf("faults: worker restarted: chain ended %s after it was ready; %s",
		took.Round(100*time.Millisecond), f.requireUnharmed(t, *chains))
}
