package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestWaitLeavesNotificationsOnTheirWay follows a chain whose notifications arrive at once. It then follows a chain
// whose notifications cannot be delivered for a while.
func TestWaitLeavesNotificationsOnTheirWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	const onTheirWay = "The notifications of chain %s are still on their way. What becomes of them: claudeops chain %s\n"
	people := notifytest.Start(t)
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
	}))))
	environ := startInstalled(t, claude, "CLAUDEOPS_NOTIFY_URLS="+people.Generic())

	told := 0
	for waited := false; !waited; {
		told++
		require.LessOrEqual(t, told, 5, "it does not wait for notifications that take a moment")
		prompt := starter(t, environ, "run", "--id", fmt.Sprintf("prompt-%d", told), "--wait")
		require.Equal(t, console.ExitNeedsPerson, prompt.Code, prompt.Stderr)
		waited = !strings.Contains(prompt.Stdout, "on their way") // a busy machine may deliver too late; then the test tries again
		if waited {
			require.Len(t, people.Received(), told)
		}
		require.Eventually(t, func() bool { return len(people.Received()) == told }, clitest.Timeout, clitest.Look)
	}

	people.Leave()
	late := starter(t, environ, "run", "--id", "late", "--wait", "-o", "json")
	require.Equal(t, console.ExitNeedsPerson, late.Code, late.Stderr)
	require.Contains(t, late.Stderr, fmt.Sprintf(onTheirWay, "late", "late"))
	var chain escalation.Chain
	require.NoError(t, json.Unmarshal([]byte(late.Stdout), &chain))
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)
	require.False(t, chain.Sessions[0].EndedAt.IsZero())

	people.ComeBack()
	require.Eventually(t, func() bool { return len(people.Received()) == told+1 }, 2*time.Minute, 100*time.Millisecond, "they arrive without a spectator, too")
}
