package systemtest

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestFaultWindowIsFullAfterAnInterruption kills Tier 2 while it works. After that, Tier 2's conversation no longer
// fits the model's window. The tier must start again from Tier 1's verdict, and its prompt must mention the earlier
// session.
func TestFaultWindowIsFullAfterAnInterruption(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "repaired")
	claude := simtest.Install(t, claudesim.Play(
		concluding("haiku", asksFor(2)),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: startedAgain}, claudesim.Fail(http.StatusBadRequest, claudesim.PromptTooLong)),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "## Handoff"}, claudesim.Conclude(resolved())),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash("echo >> "+marker)).
			Failing(claudesim.Fault{Crash: &claudesim.Crash{After: 1, Code: claudesim.KilledBySelf}})))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_TIER2_TOOLS=Bash"))
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 3)
	cutOff, again := chain.Sessions[1], chain.Sessions[2]
	require.Equal(t, escalation.SessionResumeFailed, cutOff.Status)
	require.Equal(t, 2, cutOff.Attempts)
	require.Equal(t, escalation.ContinuityHandoff, again.Continuity)
	require.Equal(t, escalation.ReasonResumeFailed, again.ContinuityReason)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 4)
	require.Contains(t, launches[3].Stdin, asksFor(2).Summary, "what Tier 1 concluded")
	require.Contains(t, launches[3].Stdin, "An earlier session of tier 2, "+cutOff.SessionID, "and that somebody was at work")
	requireRecorded(t, s, chain)
	t.Logf("faults: window full after an interruption: session %s after %d attempts, then %s (%s), chain %s",
		cutOff.Status, cutOff.Attempts, again.Continuity, again.ContinuityReason, chain.Outcome)
}
