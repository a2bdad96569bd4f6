//go:build soak

package supervisor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoakWorkerKilled kills the worker at random moments and restarts it, until all of many concurrent chains have
// ended.
func TestSoakWorkerKilled(t *testing.T) {
	c, address := startTemporalAt(t)
	f := newWatchedSite(t, c, *soakChains)
	f.environ = append(f.environ, "TEMPORAL_ADDRESS="+address)
	dice, seed := newDice()
	began := time.Now()
	var ids []string
	for i := range *soakChains {
		id := fmt.Sprintf("chain-%d", i)
		if i%3 == 1 {
			id = longChain + id
		}
		ids = append(ids, id)
	}
	chains, over := f.runAll(t, ids...)
	kills := f.killWorkersUntil(t, over, dice)
	figures := f.requireAllUnharmed(t, *chains)
	require.Positive(t, kills)
	t.Logf("soak: worker killed: kills=%d %s took=%s seed=%d", kills, figures, time.Since(began).Round(time.Second), seed)
}

// longLifeEvery gives every 20th worker a long life. A long repair can then finish before its attempts are used up,
// even on a slow machine.
const longLifeEvery = 20

// killWorkersUntil runs one worker after another and kills each at a random moment, sometimes while it starts. When
// over is closed, it drains the last worker. It returns the number of kills.
func (f *watchedSite) killWorkersUntil(t *testing.T, over <-chan struct{}, dice *rand.Rand) (kills int) {
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
