//go:build soak

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoakHostLost runs chains on two hosts that share the records and the archive. One host is lost twice at a random
// moment while it runs agents, with all that is in its state directory. The other one must continue its chains. With
// -postgres, the hosts share nothing but PostgreSQL and the archive.
func TestSoakHostLost(t *testing.T) {
	const hostChains, losses = 40, 2
	c, address := startTemporalAt(t)
	f := newWatchedSite(t, c, hostChains)
	archive := t.TempDir()
	start := func(home string) *roleProcess {
		worker := startWorker(t, append(slices.Clone(f.environ), "HOME="+home, "CLAUDEOPS_STATE_DIR="+filepath.Join(home, "state"),
			"CLAUDEOPS_DATABASE_URL="+f.cfg.State.DatabaseURL, "CLAUDEOPS_TRANSCRIPTS=file://"+archive), address)
		worker.awaitReady(t)
		return worker
	}
	require.NoError(t, f.cfg.MakeDirs())
	dice, seed := newDice()
	began := time.Now()
	var ids []string
	for i := range hostChains {
		id := fmt.Sprintf("chain-%d", i)
		if i%3 == 1 {
			id = longChain + id
		}
		ids = append(ids, id)
	}
	stays := start(t.TempDir())
	chains, over := f.runAll(t, ids...)
	for range losses {
		home := t.TempDir()
		lost := start(home)
		require.Eventually(t, func() bool { return runsAgent(home) }, testTimeout, 10*time.Millisecond)
		time.Sleep(moment(dice, 3*time.Second))
		lost.kill(t)
		require.NoError(t, os.RemoveAll(home))
	}
	<-over
	stays.drain(t)
	figures := f.requireAllUnharmed(t, *chains)
	kind, _, _ := strings.Cut(f.cfg.State.DatabaseURL, ":")
	t.Logf("soak: host lost: records=%s losses=%d %s took=%s seed=%d", kind, losses, figures, time.Since(began).Round(time.Second), seed)
}

// runsAgent reports whether a worker on a host without any other worker holds a lease.
func runsAgent(home string) bool {
	leases, err := filepath.Glob(filepath.Join(home, "state", "running", "*", "lease-*"))
	return err == nil && len(leases) > 0
}
