package sources_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/sources"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func payload(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return body
}

func sourceOf(t testing.TB, settings alert.Source) sources.Source {
	t.Helper()
	source, err := sources.New(settings, clock)
	require.NoError(t, err)
	return source
}

// templates are those of deploy/services.example.yaml and docs/alerts.md.
var (
	gatus = alert.Source{Name: "gatus", Kind: alert.Templated, Template: &alert.Template{
		Identity: []string{"group", "name"}, Name: "name", Status: "status", Resolved: []string{"RESOLVED"},
		Labels: map[string]string{"service": "name"}, Annotations: map[string]string{"errors": "errors"},
	}}
	healthchecks = alert.Source{Name: "healthchecks", Kind: alert.Templated, Template: &alert.Template{
		Identity: []string{"code"}, Name: "name", Status: "status", Resolved: []string{"up"}, StartsAt: "now",
		Labels: map[string]string{"service": "name", "exit": "exit_status"},
	}}
)

func TestRecordedPayloads(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 11, 58, 0, 0, time.UTC)
	for file, c := range map[string]struct {
		source alert.Source
		want   []alert.Alert
	}{
		"alertmanager.json": {alert.Source{Kind: alert.Alertmanager}, []alert.Alert{
			{
				Identity: "1f5a6ae2ff1d4a5b", Name: "ShopDown", Status: alert.Firing,
				Labels:      map[string]string{"alertname": "ShopDown", "instance": "shop:8080", "job": "shop", "severity": "critical"},
				Annotations: map[string]string{"summary": "shop does not answer", "source": "http://prom:9090/graph?g0.expr=up+%3D%3D+0&g0.tab=1"},
				StartsAt:    start.Add(30113 * time.Millisecond),
			},
			{
				Identity: "aa00", Name: "DiskFull", Status: alert.Resolved, Annotations: map[string]string{},
				Labels: map[string]string{"alertname": "DiskFull", "instance": "nas", "severity": "warning"}, StartsAt: start.Add(-118 * time.Minute),
			},
		}},
		"alertmanager-0.34.json": {alert.Source{Kind: alert.Alertmanager}, []alert.Alert{{
			Identity: "1f5a", Name: "ShopDown", Status: alert.Firing, Labels: map[string]string{"alertname": "ShopDown", "job": "shop"},
			Annotations: map[string]string{}, StartsAt: start.Add(30 * time.Second),
		}}},
		"grafana.json": {alert.Source{Kind: alert.Grafana}, []alert.Alert{
			{
				Identity: "2c1f", Name: "Shop errors (DatasourceNoData)", Status: alert.Firing, StartsAt: start,
				Labels: map[string]string{
					"alertname": "DatasourceNoData", "datasource_uid": "prom", "grafana_folder": "ops", "ref_id": "A",
					"rulename": "Shop errors", "service": "shop",
				},
				Annotations: map[string]string{
					"summary": "too many errors", "source": "https://grafana/alerting/grafana/x/view", "dashboard": "https://grafana/d/1",
					"values": `{"B":22.5,"C":1}`,
				},
			},
			{
				Identity: "3d", Name: "Shop slow", Status: alert.Resolved, Labels: map[string]string{"alertname": "Shop slow", "service": "shop"},
				Annotations: map[string]string{"grafana_state_reason": "MissingSeries"}, StartsAt: start.Add(-58 * time.Minute),
				Doubt: "Grafana gives MissingSeries as its reason",
			},
		}},
		"uptime-kuma.json": {alert.Source{Kind: alert.UptimeKuma}, []alert.Alert{{
			Identity: "7", Name: "Shop", Status: alert.Firing, Labels: map[string]string{"monitor": "Shop", "type": "http"},
			Annotations: map[string]string{
				"heartbeat": "connect ECONNREFUSED", "message": "[Shop] [🔴 Down] connect ECONNREFUSED", "url": "https://shop",
			},
		}}},
		"uptime-kuma-test.json": {alert.Source{Kind: alert.UptimeKuma}, []alert.Alert{{
			Identity: "message", Name: "message", Status: alert.Firing, Test: true,
			Annotations: map[string]string{"message": "claudeops Testing"},
		}}},
		"pagerduty.json": {alert.Source{Kind: alert.PagerDuty}, []alert.Alert{{
			Identity: "PGR0VU2", Name: "Shop is on fire", Status: alert.Firing, Severity: "high", StartsAt: start,
			Labels:      map[string]string{"service": "shop", "alertname": "Shop is on fire", "priority": "P1"},
			Annotations: map[string]string{"url": "https://acme.pagerduty.com/incidents/PGR0VU2"},
		}}},
		"gatus.json": {gatus, []alert.Alert{{
			Identity: "core/shop", Name: "shop", Status: alert.Firing, Labels: map[string]string{"service": "shop"},
			Annotations: map[string]string{"errors": "connect: connection refused"},
		}}},
		"healthchecks.json": {healthchecks, []alert.Alert{{
			Identity: "0c8983c9-9d73-446f-adb5-0641fdacc9d4", Name: "nightly backup", Status: alert.Firing,
			Labels: map[string]string{"service": "nightly backup", "exit": "1"}, Annotations: map[string]string{}, StartsAt: start,
		}}},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got, err := sourceOf(t, c.source).Decode(http.Header{}, payload(t, file))
			require.NoError(t, err)
			for i := range got {
				got[i].StartsAt = got[i].StartsAt.UTC()
				if got[i].StartsAt.IsZero() {
					got[i].StartsAt = time.Time{}
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestUptimeKumaForms(t *testing.T) {
	t.Parallel()
	source, body := sourceOf(t, alert.Source{Kind: alert.UptimeKuma}), string(payload(t, "uptime-kuma.json"))
	want, err := source.Decode(http.Header{}, []byte(body))
	require.NoError(t, err)

	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	require.NoError(t, writer.WriteField("data", body))
	require.NoError(t, writer.Close())
	got, err := source.Decode(http.Header{"Content-Type": {writer.FormDataContentType()}}, form.Bytes())
	require.NoError(t, err)
	require.Equal(t, want, got)

	got, err = source.Decode(http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(url.Values{"data": {body}}.Encode()))
	require.NoError(t, err)
	require.Equal(t, want, got)

	up, err := source.Decode(http.Header{}, []byte(strings.Replace(body, `"status":0`, `"status":1`, 1)))
	require.NoError(t, err)
	require.Equal(t, alert.Resolved, up[0].Status)
	for _, status := range []string{"2", "3"} {
		none, err := source.Decode(http.Header{}, []byte(strings.Replace(body, `"status":0`, `"status":`+status, 1)))
		require.NoError(t, err)
		require.Empty(t, none, "pending and maintenance are no alerts")
	}
}

func sign(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("very secret\n"), 0o600))
	g, p := string(payload(t, "grafana.json")), string(payload(t, "pagerduty.json"))
	plain := alert.Source{Kind: alert.Grafana, SecretFile: secret}
	timed := alert.Source{Kind: alert.Grafana, SecretFile: secret, SignatureHeader: "X-Sign", TimestampHeader: "X-Time"}
	duty := alert.Source{Kind: alert.PagerDuty, SecretFile: secret}
	now, old := "1795953600", "1795950000"
	for name, c := range map[string]struct {
		source alert.Source
		body   string
		header map[string]string
		want   string // of the error
	}{
		"of the body":                {plain, g, map[string]string{"X-Grafana-Alerting-Signature": sign("very secret", g)}, ""},
		"none":                       {plain, g, nil, "it has no signature in the header X-Grafana-Alerting-Signature"},
		"by another secret":          {plain, g, map[string]string{"X-Grafana-Alerting-Signature": sign("another one", g)}, "its signature is wrong"},
		"of another body":            {plain, g + " ", map[string]string{"X-Grafana-Alerting-Signature": sign("very secret", g)}, "its signature is wrong"},
		"of time and body":           {timed, g, map[string]string{"X-Sign": sign("very secret", now+":"+g), "X-Time": now}, ""},
		"of an old delivery":         {timed, g, map[string]string{"X-Sign": sign("very secret", old+":"+g), "X-Time": old}, "not within 5m0s"},
		"without the time":           {timed, g, map[string]string{"X-Sign": sign("very secret", g)}, "the time in the header X-Time is missing"},
		"one of several":             {duty, p, map[string]string{"X-PagerDuty-Signature": "v1=00,v1=" + sign("very secret", p)}, ""},
		"of PagerDuty, and none":     {duty, p, nil, "it has no right signature"},
		"of PagerDuty, by an empty ": {duty, p, map[string]string{"X-PagerDuty-Signature": "v1=" + sign("", p)}, "it has no right signature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			for key, value := range c.header {
				header.Set(key, value)
			}
			alerts, err := sourceOf(t, c.source).Decode(header, []byte(c.body))
			if c.want == "" {
				require.NoError(t, err)
				require.NotEmpty(t, alerts)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Empty(t, alerts)
		})
	}
	require.EqualValues(t, 1795953600, noon.Unix())

	empty := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(empty, []byte(" \n"), 0o600))
	_, err := sources.New(alert.Source{Kind: alert.Grafana, SecretFile: empty}, clock)
	require.ErrorContains(t, err, "has fewer than 8 characters", "an empty secret is no open door")
}

func TestRefusedPayloads(t *testing.T) {
	t.Parallel()
	items := alert.Source{Kind: alert.Templated, Template: &alert.Template{Items: "data.items", Identity: []string{"id"}, StartsAt: "start"}}
	for body, c := range map[string]struct {
		source alert.Source
		want   string
	}{
		`{"text":"ShopDown"}`:                            {alert.Source{Kind: alert.Alertmanager}, `its version is "", and only "4"`},
		`Shop is down`:                                   {alert.Source{Kind: alert.Alertmanager}, "leave out custom templates"},
		`{"version":"4","alerts":{"a":1}}`:               {alert.Source{Kind: alert.Alertmanager}, "it is not the JSON"},
		`{"version":"4"}`:                                {alert.Source{Kind: alert.Alertmanager}, `its version is "4"`},
		`{"version":"2","alerts":[]}`:                    {alert.Source{Kind: alert.Grafana}, `its version is "2", and only "1"`},
		`{"heartbeat":{},"monitor":{}}`:                  {alert.Source{Kind: alert.UptimeKuma}, "it is not what Uptime Kuma's webhook sends"},
		`{"event":{"data":[]}}`:                          {alert.Source{Kind: alert.PagerDuty}, "it is not what a webhook of PagerDuty"},
		`{"group":"core","status":"TRIGGERED"}`:          {gatus, "alert 1: there is nothing at name, which tells alerts apart"},
		`{"group":"core","name":"shop"}`:                 {gatus, "alert 1: there is nothing at status"},
		`{"name":"a "quoted" error"}`:                    {gatus, "it is not one JSON document"},
		`{} {}`:                                          {gatus, "it is not one JSON document"},
		`{"data":{}}`:                                    {items, "there is no list at data.items"},
		`{"data":{"items":[{"id":1,"start":"monday"}]}}`: {items, "alert 1: what is at start is no time"},
	} {
		_, err := sourceOf(t, c.source).Decode(http.Header{}, []byte(body))
		require.ErrorContains(t, err, c.want, body)
		require.NotContains(t, err.Error(), "\n")
	}
	many, err := sourceOf(t, items).Decode(http.Header{}, []byte(`{"data":{"items":[{"id":1700000000,"start":1795953480},{"id":"b","start":1795953480000}]}}`))
	require.NoError(t, err)
	require.Equal(t, "1700000000", many[0].Identity)
	require.True(t, many[0].StartsAt.Equal(many[1].StartsAt))
}

// FuzzDecode checks that no body makes a source panic, and that what it returns can be bounded and recorded.
func FuzzDecode(f *testing.F) {
	settings := []alert.Source{{Kind: alert.Alertmanager}, {Kind: alert.Grafana}, {Kind: alert.UptimeKuma}, {Kind: alert.PagerDuty}, gatus, healthchecks}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		for kind := range settings {
			f.Add(kind, "application/json", payload(f, filepath.Base(file)))
		}
	}
	f.Add(2, "multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{}\r\n--x--"))
	f.Add(4, "", []byte(strings.Repeat("[", 10_000)))
	f.Add(0, "", []byte(`{"version":"4","alerts":[{"labels":{"a":1}}]}`))
	f.Fuzz(func(t *testing.T, kind int, contentType string, body []byte) {
		source := sourceOf(t, settings[uint(kind)%uint(len(settings))])
		alerts, err := source.Decode(http.Header{"Content-Type": {contentType}}, body)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 1_000)
			return
		}
		for _, a := range alerts {
			bounded := a.Bounded(noon)
			require.NotEmpty(t, bounded.Identity)
			require.NotEmpty(t, bounded.Name)
			text, err := json.Marshal(bounded)
			require.NoError(t, err)
			require.Less(t, len(text), 500_000)
		}
	})
}
