//go:build soak

package systemtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// The soak tests kill or cut off the dependencies of chains many times at random moments, and measure the effects.
// Each test prints its figures in a line that begins with "soak:", and fails if a figure is out of bounds. `make
// soak` runs them. `make test` has a deterministic test for each.
var (
	soakChains = flag.Int("soak.chains", 60, "chains that run while their worker is killed")
	soakKills  = flag.Int("soak.kills", 20, "times that the Temporal server is killed")
	soakGates  = flag.Int("soak.gates", 1000, "chains that are parked at gates at a time")
	soakLoop   = flag.Int("soak.loop", 300, "gates that one chain goes through")
	soakTurns  = flag.Int("soak.turns", 200, "turns of a conversation, with a kill in each")
	soakLooks  = flag.Int("soak.looks", 288, "looks at services with faults, one after another; at least 24")
	soakAway   = flag.Duration("soak.away", time.Minute, "how long the database is away at each step of a chain")
	soakLine   = flag.Int("soak.line", 100, "megabytes in each line of a claude that prints huge lines")
	soakSeed   = flag.Uint64("soak.seed", 0, "seed of the random moments; 0 chooses one")
)

// newDice returns a source of random moments, and the seed with which -soak.seed repeats them.
func newDice() (dice *rand.Rand, seed uint64) {
	if seed = *soakSeed; seed == 0 {
		seed = rand.Uint64() //nolint:gosec // moments, no secrets
	}
	return rand.New(rand.NewPCG(seed, 0)), seed //nolint:gosec // the same
}

// moment returns a random duration below limit.
func moment(dice *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(limit)))
}

const (
	// soakLimit limits a soak test. It is far more than a test needs with the default figures.
	soakLimit = 15 * time.Minute
	// shortestAgent is the minimum time that each agent of a fault site works.
	shortestAgent = 300 * time.Millisecond
)

// watchedSite is a fault site with a watcher that observes its agents from outside.
type watchedSite struct {
	*faultSite
	watch *watch
}

func newWatchedSite(t *testing.T, c client.Client, services int) *watchedSite {
	t.Helper()
	f := newFaultSite(t, c, services)
	return &watchedSite{f, startWatch(t, f.claude)}
}

// runAll starts all chains at the same time. It closes the channel over when they have ended.
func (f *watchedSite) runAll(t *testing.T, ids ...string) (chains *[]escalation.Chain, over <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soakLimit)
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

// requireAllUnharmed checks every chain with requireUnharmed. It also checks that no record is open and no process is
// left. It returns the figures.
func (f *watchedSite) requireAllUnharmed(t *testing.T, chains []escalation.Chain) (figures string) {
	t.Helper()
	seen := f.watch.stop(t)
	seen.requireAlone(t)
	sessions, unseen, again, most := 0, 0, 0, 0
	for _, chain := range chains {
		f.requireUnharmed(t, chain)
		for i := range chain.Sessions {
			sessions++
			again += chain.Sessions[i].Attempts - 1
			most = max(most, chain.Sessions[i].Attempts)
			if len(seen.of(chain.Sessions[i].SessionID)) == 0 {
				unseen++
			}
		}
	}
	open, err := f.records().Running(t.Context())
	require.NoError(t, err)
	require.Empty(t, open, "no record may be left open")
	var left []string
	require.Eventually(t, func() bool { left = seen.leftOver(t, f.mark); return len(left) == 0 },
		testTimeout, 100*time.Millisecond, "processes are left: %q", left)
	// The watcher may miss agents that begin and end while it is delayed itself.
	hidden := agentsAtOnce * int(seen.Blind/shortestAgent)
	require.LessOrEqual(t, unseen, hidden, "the watcher must have seen the sessions' agents")
	started := seen.requireAll(t, simtest.Starts(t, f.claude), hidden)
	return fmt.Sprintf("chains=%d chains_lost=0 sessions=%d sessions_unseen=%d repeated_attempts=%d most_attempts=%d agents_started=%d agents_seen=%d "+
		"at_once=0 acted_twice=0 not_acted=0 records_open=0 processes_left=0 looks=%d longest_blind=%s",
		len(chains), sessions, unseen, again, most, started, len(seen.Sightings), seen.Looks, seen.Blind.Round(time.Millisecond))
}

// requireAll fails unless the watcher saw the agents that started, and nothing else. hidden is the number of agents
// that the watcher may have missed. An agent that was killed before it could record its start is among those that
// started: its session was tried again. requireAll returns their number.
func (w *watched) requireAll(t *testing.T, starts []claudesim.Start, hidden int) (started int) {
	t.Helper()
	missed, sessions := map[string]bool{}, map[string]bool{}
	for _, start := range starts {
		if session := sessionIn(start.Args); session != "" {
			missed[fmt.Sprint(start.PID, session)], sessions[session] = true, true
		}
	}
	started = len(missed)
	for _, agent := range w.Sightings {
		key := fmt.Sprint(agent.PID, agent.Session)
		if !missed[key] {
			require.True(t, sessions[agent.Session], "it has no start, and no other agent of its session has one: %+v", agent)
			started++
		}
		delete(missed, key)
	}
	require.LessOrEqual(t, len(missed), hidden, "the watcher missed agents: %v", missed)
	return started
}
