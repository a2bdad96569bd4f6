//go:build soak

package systemtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestSoakClaudePrintsHugeLines runs a claude whose every line of text is huge. The worker is a separate process, so
// that its memory can be measured.
func TestSoakClaudePrintsHugeLines(t *testing.T) {
	line := *soakLine << 20
	temporalServer, address := startTemporalAt(t)
	claude := simtest.Install(t, claudesim.Play(
		claudesim.Always(claudesim.Bash("echo looked").Saying("x"), claudesim.Conclude(allWell()).Saying("y")).
			Failing(claudesim.Fault{PadLines: line})))
	environ := environment(t, claude, toolsAllowed()...)
	s := siteOf(t, temporalServer, environ)
	worker := startWorker(t, environ, address)
	require.Eventually(t, exists(s.cfg.State.DatabaseFile()), testTimeout, 20*time.Millisecond)
	before := peakMemory(t, worker.Process.Pid)
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	after := peakMemory(t, worker.Process.Pid)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Empty(t, processesOf(t, chain.ID))
	requireRecorded(t, s, chain)
	t.Logf("soak: claude prints lines of %d MB: worker's peak %.0f MB, before %.0f MB", line>>20, after, before)
	// The stream, its text and the garbage collector's slack take six to seven times the size of a line. The race
	// detector triples that.
	require.Less(t, after-before, 200+25*float64(line>>20))
}
