//go:build soak

package systemtest

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

// longLifeEvery gives every tenth worker a long life: it lives until as many sessions have ended as run at once. So
// long repairs finish before their attempts are used up, however slow the machine is. Kills alone would starve them: a
// repair that takes longer than the worker lives begins its work again each time.
const longLifeEvery = 10

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
		life := time.After(pause)
		if kills%longLifeEvery == longLifeEvery-1 {
			life = f.afterEnds(t, agentsAtOnce, over)
		}
		select {
		case <-life:
			worker.kill(t)
		case <-over:
			worker.drain(t)
			return kills
		}
	}
}

// afterEnds returns a channel that receives when more sessions have ended, or when over is closed.
func (f *watchedSite) afterEnds(t *testing.T, more int, over <-chan struct{}) <-chan time.Time {
	t.Helper()
	before, reached := f.endedSessions(t), make(chan time.Time, 1)
	go func() {
		for {
			select {
			case <-over:
				return
			case now := <-time.After(100 * time.Millisecond):
				if f.endedSessions(t) >= before+more {
					reached <- now
					return
				}
			}
		}
	}()
	return reached
}

// endedSessions counts the sessions that have ended. While the records are busy, it returns 0.
func (f *watchedSite) endedSessions(t *testing.T) (count int) {
	t.Helper()
	costs, err := f.records().Costs(t.Context(), time.Unix(0, 0), time.Now().Add(24*time.Hour))
	if err != nil {
		t.Logf("the ended sessions cannot be counted now: %v", err)
		return 0
	}
	for _, of := range costs.Quarters {
		count += of.Sessions
	}
	return count
}
