package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	watched, url := start(t, telemetry.Options{})
	requireAnswer := func(page string, status int, body string) {
		t.Helper()
		gotStatus, gotBody := get(t, url+page)
		require.Equal(t, status, gotStatus, gotBody)
		require.Equal(t, body+"\n", gotBody)
	}
	requireAnswer("/healthz", http.StatusOK, "ok")
	requireAnswer("/readyz", http.StatusServiceUnavailable, "not ready: the worker is starting or stopping")
	watched.SetProbe(func(context.Context) error { return errors.New("the database does not answer") })
	requireAnswer("/readyz", http.StatusServiceUnavailable, "not ready: the database does not answer")
	requireAnswer("/healthz", http.StatusOK, "ok")
	watched.SetProbe(func(context.Context) error { return nil })
	requireAnswer("/readyz", http.StatusOK, "ready")
	watched.SetProbe(nil)
	requireAnswer("/readyz", http.StatusServiceUnavailable, "not ready: the worker is starting or stopping")
}

func TestProfilesHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	watched, url := start(t, telemetry.Options{PprofAddress: "127.0.0.1:0"})
	profiles := fmt.Sprintf("http://127.0.0.1:%d", watched.Ports()[1])
	for page, want := range map[string]int{
		url + "/debug/pprof/":          http.StatusNotFound,
		url + "/debug/pprof/heap":      http.StatusNotFound,
		profiles + "/debug/pprof/":     http.StatusOK,
		profiles + "/debug/pprof/heap": http.StatusOK,
		profiles + "/metrics":          http.StatusNotFound,
	} {
		status, _ := get(t, page)
		require.Equal(t, want, status, page)
	}
}

func TestProfilesAreRefused(t *testing.T) {
	t.Parallel()
	watched, _ := start(t, telemetry.Options{
		PprofAddress:   "127.0.0.1:0",
		RefuseProfiles: func(net.Conn) error { return errors.New("an agent asks") },
	})
	status, body := get(t, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap", watched.Ports()[1]))
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, "profiles are not for agents\n", body)
}
