package daily

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

const alertServices = `version: 1
services: [{name: shop, alerts: [{alertname: "~Shop.*"}]}]
alerts: {sources: [{name: am, kind: alertmanager}], max_tier: {warning: 2}}
`

const alertPayload = `{"version":"4","alerts":[
{"status":"firing","labels":{"alertname":"ShopDown","severity":"warning"},"annotations":{"summary":"\u001b[31mdown"},"startsAt":"2026-03-01T12:00:00Z","fingerprint":"a1"},
{"status":"firing","labels":{"alertname":"Watchdog"},"annotations":{},"startsAt":"2026-03-01T12:00:00Z","fingerprint":"b2"}]}`

func TestAlerts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	services, payload := filepath.Join(dir, "services.yaml"), filepath.Join(dir, "payload.json")
	require.NoError(t, os.WriteFile(services, []byte(alertServices), 0o600))
	require.NoError(t, os.WriteFile(payload, []byte(alertPayload), 0o600))
	environ := clitest.Environment(t, "CLAUDEOPS_SERVICES_FILE="+services)
	s := clitest.OpenRecords(t, environ)

	tested := starter(t, environ, "alerts", "test", payload, "--source", "am")
	require.Equal(t, program.ExitOK, tested.Code, tested.Stderr)
	require.Contains(t, tested.Stdout, "Alert       ShopDown\n")
	require.Contains(t, tested.Stdout, "Service     shop\n")
	require.Contains(t, tested.Stdout, "Tiers       up to tier 2, by its severity\nOutcome     waiting\n")
	require.Contains(t, tested.Stdout, "Reason      no service has its labels, and there is no default\n")
	require.NotContains(t, tested.Stdout, "\x1b")
	require.Equal(t, "No alerts.\n", starter(t, environ, "alerts").Stdout, "a test executes nothing")

	o := operations.New(operations.Options{Environ: environ, Clock: time.Now, Masked: func() {}})
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	_, err := o.Alerts.Receive(t.Context(), operations.Delivery{Source: "am", Body: []byte(alertPayload)})
	require.NoError(t, err)
	listed := starter(t, environ, "alerts", "list")
	require.Regexp(t, `(?m)^1 .* 1 +ShopDown +firing +shop +am +waiting`, listed.Stdout)
	require.Regexp(t, `(?m)^2 .* 1 +Watchdog +firing +- +am +unmapped +no service`, listed.Stdout)
	only := starter(t, environ, "alerts", "--outcome", "unmapped", "-o", "json")
	var list operations.AlertList
	require.NoError(t, json.Unmarshal([]byte(only.Stdout), &list))
	require.Len(t, list.Alerts, 1)
	require.Equal(t, alert.OutcomeUnmapped, list.Alerts[0].Outcome)
	shown := starter(t, environ, "alerts", "show", "1")
	require.Contains(t, shown.Stdout, "Received    1 time, first at ")
	require.Contains(t, shown.Stdout, "Labels      alertname=ShopDown\n            severity=warning\n")
	recorded, err := s.Alert(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, recorded.MaxTier)

	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"alerts", "--outcome", "lost"}, "it must be waiting, started,"},
		{[]string{"alerts", "show", "x"}, "x is not the number of an alert"},
		{[]string{"alerts", "show", "9"}, "there is no alert 9"},
		{[]string{"alerts", "test", payload, "--source", "tv"}, "names no such source"},
		{[]string{"alerts", "test", services, "--source", "am"}, "it is not the JSON of Alertmanager's webhook_configs"},
		{[]string{"alerts", "test", filepath.Join(dir, "none"), "--source", "am"}, "no such file"},
	} {
		refused := starter(t, environ, wrong.args...)
		require.NotEqual(t, program.ExitOK, refused.Code, wrong.args)
		require.Contains(t, refused.Stderr, wrong.says)
		require.Equal(t, 1, strings.Count(refused.Stderr, "\n"), "one sentence")
	}
}
