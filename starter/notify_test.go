package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	var got string
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
	}))
	t.Cleanup(up.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	upURL := "generic+" + up.URL + "/hunter2"
	downURL := "apprise://ops:hunter2@" + strings.TrimPrefix(down.URL, "http://") + "/hunter2"

	well := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+upURL), "notify", "test")
	require.Equal(t, exitOK, well.code, well.stderr)
	require.Equal(t, "✓ 1 generic: notified\n", well.stdout)
	require.Contains(t, got, "Claude Ops: a test\n\nNotifications arrive here.")

	both := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+upURL), "notify", "test")
	require.Equal(t, exitFailure, both.code)
	require.Equal(t, "✗ 1 apprise: the API answered 404 Not Found\n✓ 2 generic: notified\n", both.stdout)
	require.Contains(t, both.stderr, "1 of 2 places were not notified")

	both = starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+upURL), "notify", "test", "-o", "json")
	var attempts []attempt
	require.NoError(t, json.Unmarshal([]byte(both.stdout), &attempts))
	require.Equal(t, []attempt{
		{Number: 1, Service: "apprise", Error: "apprise: the API answered 404 Not Found"}, {Number: 2, Service: "generic", OK: true},
	}, attempts)

	doctor := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+upURL), "doctor")
	require.Regexp(t, `✓ notifications +apprise, generic; try them with: starter notify test`, doctor.stdout)
	shown := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS="+downURL+" "+upURL), "config")
	require.Contains(t, shown.stdout, "CLAUDEOPS_NOTIFY_URLS=(2, not shown)")
	for _, printed := range []result{well, both, doctor, shown} {
		require.NotContains(t, printed.stdout+printed.stderr, "hunter2")
	}
}

func TestNotifyMisuse(t *testing.T) {
	t.Parallel()
	nobody := starter(t, bareEnvironment(t), "notify", "test")
	require.Equal(t, exitUsage, nobody.code)
	require.Contains(t, nobody.stderr, "CLAUDEOPS_NOTIFY_URLS names no place")
	unknown := starter(t, bareEnvironment(t, "CLAUDEOPS_NOTIFY_URLS=pigeon://hunter2"), "notify", "test")
	require.Equal(t, exitUsage, unknown.code)
	require.Contains(t, unknown.stderr, "URL 1 must begin with the scheme of a service, and pigeon:// is none")
	require.NotContains(t, unknown.stderr, "hunter2")
	require.Equal(t, exitUsage, starter(t, bareEnvironment(t), "notify").code)
}
