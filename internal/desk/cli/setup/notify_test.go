package setup

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
)

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	up := notifytest.Start(t)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	downURL := "apprise://ops:" + notifytest.Secret + "@" + strings.TrimPrefix(down.URL, "http://") + "/" + notifytest.Secret

	well := starter(t, clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS="+up.Generic()), "notify", "test")
	require.Equal(t, program.ExitOK, well.Code, well.Stderr)
	require.Regexp(t, `^✓ 1 generic at 127\.0\.0\.1:\d+: notified\n$`, well.Stdout)
	require.Len(t, up.Received(), 1)
	require.Contains(t, up.Received()[0], "Claude Ops: a test\n\nNotifications arrive here.")

	both := starter(t, clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "notify", "test")
	require.Equal(t, program.ExitFailure, both.Code)
	place := "apprise at " + strings.TrimPrefix(down.URL, "http://")
	require.Contains(t, both.Stdout, "✗ 1 "+place+": answered 404 Not Found\n✓ 2 generic at 127.0.0.1:")
	require.Contains(t, both.Stderr, "1 of 2 places were not notified")

	both = starter(t, clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "notify", "test", "-o", "json")
	var attempts []attempt
	require.NoError(t, json.Unmarshal([]byte(both.Stdout), &attempts))
	require.Equal(t, []attempt{
		{Number: 1, Service: "apprise", Place: place, Error: place + ": answered 404 Not Found"},
		{Number: 2, Service: "generic", Place: attempts[1].Place, OK: true},
	}, attempts)

	environ := clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic())
	doctor := starter(t, environ, "doctor")
	require.Regexp(t, `! notifications +apprise, generic: nobody has tried them here; run: claudeops notify test\n`, doctor.Stdout)
	starter(t, environ, "notify", "test")
	doctor = starter(t, environ, "doctor")
	require.Regexp(t, `✗ notifications +apprise, generic: the test of \d{4}-\d\d-\d\d failed: apprise at .* answered 404 Not Found; correct`, doctor.Stdout)
	environ = append(environ, "CLAUDEOPS_NOTIFY_URLS="+up.Generic())
	require.Regexp(t, `! notifications +generic: nobody has tried`, starter(t, environ, "doctor").Stdout, "the test was of other places")
	starter(t, environ, "notify", "test")
	require.Regexp(t, `✓ notifications +generic; the test of \d{4}-\d\d-\d\d was taken\n`, starter(t, environ, "doctor").Stdout)
	shown := starter(t, clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+up.Generic()), "config")
	require.Contains(t, shown.Stdout, "CLAUDEOPS_NOTIFY_URLS=(2, not shown)")
	for _, printed := range []clitest.Result{well, both, doctor, shown} {
		require.NotContains(t, printed.Stdout+printed.Stderr, notifytest.Secret)
	}
}

func TestNotifyMisuse(t *testing.T) {
	t.Parallel()
	nobody := starter(t, clitest.Environment(t), "notify", "test")
	require.Equal(t, program.ExitUsage, nobody.Code)
	require.Contains(t, nobody.Stderr, "CLAUDEOPS_NOTIFY_URLS names no place")
	unknown := starter(t, clitest.Environment(t, "CLAUDEOPS_NOTIFY_URLS=pigeon://hunter2"), "notify", "test")
	require.Equal(t, program.ExitUsage, unknown.Code)
	require.Contains(t, unknown.Stderr, "URL 1 must begin with the scheme of a service, and pigeon:// is none")
	require.NotContains(t, unknown.Stderr, "hunter2")
	require.Equal(t, program.ExitUsage, starter(t, clitest.Environment(t), "notify").Code)
}
