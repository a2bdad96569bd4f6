package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/cli/setup"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/notify/notifytest"
	"github.com/claudeops/claudeops/internal/program"
)

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	up := notifytest.Start(t)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	downURL := "apprise://ops:" + notifytest.Secret + "@" + strings.TrimPrefix(down.URL, "http://") + "/" + notifytest.Secret

	well := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+up.Generic()), "notify", "test")
	require.Equal(t, program.ExitOK, well.code, well.stderr)
	require.Equal(t, "✓ 1 generic: notified\n", well.stdout)
	require.Len(t, up.Received(), 1)
	require.Contains(t, up.Received()[0], "Claude Ops: a test\n\nNotifications arrive here.")

	both := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "notify", "test")
	require.Equal(t, program.ExitFailure, both.code)
	require.Equal(t, "✗ 1 apprise: the API answered 404 Not Found\n✓ 2 generic: notified\n", both.stdout)
	require.Contains(t, both.stderr, "1 of 2 places were not notified")

	both = starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "notify", "test", "-o", "json")
	var attempts []setup.Attempt
	require.NoError(t, json.Unmarshal([]byte(both.stdout), &attempts))
	require.Equal(t, []setup.Attempt{
		{Number: 1, Service: "apprise", Error: "apprise: the API answered 404 Not Found"}, {Number: 2, Service: "generic", OK: true},
	}, attempts)

	doctor := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "doctor")
	require.Regexp(t, `✓ notifications +apprise, generic; try them with: starter notify test`, doctor.stdout)
	shown := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "config")
	require.Contains(t, shown.stdout, "CLAUDEOPS_NOTIFY_URLS=(2, not shown)")
	for _, printed := range []result{well, both, doctor, shown} {
		require.NotContains(t, printed.stdout+printed.stderr, notifytest.Secret)
	}
}

func TestNotifyMisuse(t *testing.T) {
	t.Parallel()
	nobody := starter(t, bareEnvironment(t), "notify", "test")
	require.Equal(t, program.ExitUsage, nobody.code)
	require.Contains(t, nobody.stderr, "CLAUDEOPS_NOTIFY_URLS names no place")
	unknown := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS=pigeon://hunter2"), "notify", "test")
	require.Equal(t, program.ExitUsage, unknown.code)
	require.Contains(t, unknown.stderr, "URL 1 must begin with the scheme of a service, and pigeon:// is none")
	require.NotContains(t, unknown.stderr, "hunter2")
	require.Equal(t, program.ExitUsage, starter(t, bareEnvironment(t), "notify").code)
}

// TestWaitLeavesNotificationsOnTheirWay follows a chain whose notifications arrive at once. It then follows a chain
// whose notifications cannot be delivered for a while.
func TestWaitLeavesNotificationsOnTheirWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	const onTheirWay = "The notifications of chain %s are still on their way. What becomes of them: starter chain %s\n"
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
		require.Equal(t, console.ExitNeedsPerson, prompt.code, prompt.stderr)
		waited = !strings.Contains(prompt.stdout, "on their way") // a busy machine may deliver too late; then the test tries again
		if waited {
			require.Len(t, people.Received(), told)
		}
		require.Eventually(t, func() bool { return len(people.Received()) == told }, screenTimeout, screenLook)
	}

	people.Leave()
	late := starter(t, environ, "run", "--id", "late", "--wait", "-o", "json")
	require.Equal(t, console.ExitNeedsPerson, late.code, late.stderr)
	require.Contains(t, late.stderr, fmt.Sprintf(onTheirWay, "late", "late"))
	var chain escalation.Chain
	require.NoError(t, json.Unmarshal([]byte(late.stdout), &chain))
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)
	require.False(t, chain.Sessions[0].EndedAt.IsZero())

	people.ComeBack()
	require.Eventually(t, func() bool { return len(people.Received()) == told+1 }, 2*time.Minute, 100*time.Millisecond, "they arrive without a spectator, too")
}
