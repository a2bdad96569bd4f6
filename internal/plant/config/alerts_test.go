package config

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

func TestAlertsOfTheServicesFile(t *testing.T) {
	t.Parallel()
	setting, file := servicesAt(t, `version: 1
services:
  - {name: shop, aliases: [web], alerts: [{alertname: "~Shop.*"}]}
alerts:
  wait: 5s
  default: web
  max_tier: {Info: 1}
  sources:
    - {name: grafana, kind: grafana, secret_file: grafana.secret}
`)
	services := load(t, setting).Services
	require.Equal(t, []escalation.AlertMatcher{{"alertname": "~Shop.*"}}, services.Catalog.Services()[0].Alerts)
	require.Equal(t, alert.Rules{
		Wait: 5 * time.Second, Again: 24 * time.Hour, Resolved: alert.ClaimLook, Default: "shop", PerHour: 20, PerDay: 100,
		PerDelivery: 1_000, MaxTier: map[string]escalation.Tier{"info": 1}, Urgent: []string{"critical"},
		Sources: []alert.Source{{Name: "grafana", Kind: alert.Grafana, SecretFile: filepath.Join(filepath.Dir(file), "grafana.secret")}},
	}, services.Alerts)
	require.Empty(t, load(t).Services.Alerts.Sources, "without a services file there are none")

	const head = "version: 1\nservices: [{name: shop}]\nalerts:\n"
	for want, text := range map[string]string{
		`in line 4: unknown field "delay".`: head + "  delay: 5s\n",
		`in line 4: unknown field "title".`: head + "  sources: [{name: a, kind: template, template: {identity: [id], title: x}}]\n",
		`alerts: default names "tv"`:        head + "  default: tv\n",
		`service "shop": alerts: a matcher`: "version: 1\nservices: [{name: shop, alerts: [{}]}]\n",
	} {
		setting, _ := servicesAt(t, text)
		problems := problemsOf(t, setting)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].Sentence, want)
	}
}
