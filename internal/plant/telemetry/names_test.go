package telemetry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

// root is the module's directory, as seen from this package.
const root = "../../.."

// metricsPage is the path of docs/telemetry.md.
var metricsPage = filepath.Join(root, "docs", "telemetry.md")

// rule is an alert of deploy/prometheus/rules.yaml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "rules.yaml"))
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// dashboardQueries returns the queries of the Grafana dashboard by the titles of their panels.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "claude-ops.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	queries, ids := map[string][]string{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		require.False(t, ids[panel.ID], "panel %d exists twice", panel.ID)
		ids[panel.ID] = true
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
		for _, target := range panel.Targets {
			queries[panel.Title] = append(queries[panel.Title], target.Expr)
		}
	}
	require.Greater(t, len(queries), 10)
	return queries
}

var (
	metricName = regexp.MustCompile(`\b(?:claudeops|temporal|process|go)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`\b((?:claudeops|temporal)_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	suffix     = regexp.MustCompile(`_(?:bucket|sum|count)$`)
)

// TestQueriesAskForMetricsThatExist checks that the metrics in the alert rules and the dashboard exist in this program,
// or in the Temporal SDK that it uses.
func TestQueriesAskForMetricsThatExist(t *testing.T) {
	t.Parallel()
	watched, url := start(t, telemetry.Options{})
	watched.Metrics().SessionEnded(escalation.Session{Tier: 1, Model: "haiku", Report: escalation.Report{Status: escalation.SessionCompleted}})
	own, sdk := scrape(t, url), sdkMetrics(t)
	queries := dashboardQueries(t)
	for _, alert := range alerts(t) {
		queries[alert.Alert] = []string{alert.Expr}
	}
	asked := map[string]bool{}
	for where, all := range queries {
		for _, query := range all {
			for _, name := range metricName.FindAllString(query, -1) {
				asked[suffix.ReplaceAllString(name, "")] = true
				known := sdk[name] || own[name] != nil
				if family := own[suffix.ReplaceAllString(name, "")]; family.GetType() == dto.MetricType_HISTOGRAM {
					known = true
				}
				require.True(t, known, "%s asks for %s", where, name)
			}
			requireLabels(t, own, where, query)
		}
	}
	for name := range own {
		if strings.HasPrefix(name, "claudeops_") && name != "claudeops_open_sessions" { // Oldest session tells more
			require.True(t, asked[name], "neither an alert nor the dashboard shows %s", name)
		}
	}
}

// requireLabels checks that this program's metrics in a query have the labels that the query uses.
func requireLabels(t *testing.T, own map[string]*dto.MetricFamily, where, query string) {
	t.Helper()
	for _, found := range selector.FindAllStringSubmatch(query, -1) {
		family := own[suffix.ReplaceAllString(found[1], "")]
		if family == nil {
			continue // a metric of the SDK
		}
		labels := []string{"job", "instance"} // added by Prometheus
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
			require.Contains(t, labels, label[1], "%s: %s", where, found[0])
		}
	}
}

// sdkMetrics returns the names under which Prometheus gets the metrics of the Temporal SDK. It reads them from the
// source of the SDK, because most appear only when something fails.
func sdkMetrics(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.temporal.io/sdk").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal", "common", "metrics", "constants.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`TemporalMetricsPrefix \+ "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		name := "temporal_" + found[1]
		names[name], names[name+"_total"], names[name+"_seconds_bucket"] = true, true, true
	}
	require.Greater(t, len(names), 60)
	return names
}

// TestAlertsHaveRunbooks checks that each alert says what to do, in a runbook with the sections of all runbooks.
func TestAlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	var used []string
	for _, alert := range alerts(t) {
		require.Contains(t, []string{"warning", "critical"}, alert.Labels["severity"], alert.Alert)
		require.NotEmpty(t, alert.Annotations["summary"], alert.Alert)
		require.NotEmpty(t, alert.Annotations["description"], alert.Alert)
		page, ours := strings.CutPrefix(alert.Annotations["runbook_url"], "https://github.com/claudeops/claudeops/blob/main/docs/runbooks/")
		require.True(t, ours, alert.Alert)
		text, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", page))
		require.NoError(t, err, alert.Alert)
		require.Contains(t, string(text), "`"+alert.Alert+"`", "%s does not name its alert", page)
		for _, section := range []string{"\n## Symptom\n", "\n## Check\n", "\n## Do\n"} {
			require.Contains(t, string(text), section, page)
		}
		used = append(used, page)
	}
	requireRunbooks(t, used)
}

// requireRunbooks checks that the list of runbooks has every page, and that pages to which no alert leads say when to
// use them and how to check the result.
func requireRunbooks(t *testing.T, withAlert []string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	list, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", "README.md"))
	require.NoError(t, err)
	for _, page := range pages {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		require.Contains(t, string(list), "("+name+")")
		if slices.Contains(withAlert, name) {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, section := range []string{"\n## When\n", "\n## Check\n", "\n## Do\n", "\n## Check afterwards\n"} {
			require.Contains(t, string(text), section, "no alert leads to %s", name)
		}
	}
}

// TestMetricsAreDocumented checks that docs/telemetry.md lists exactly the metrics of this program.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	watched, url := start(t, telemetry.Options{})
	watched.Metrics().SessionEnded(escalation.Session{Tier: 1, Model: "haiku"})
	var own, documented []string
	for name := range scrape(t, url) {
		if strings.HasPrefix(name, "claudeops_") {
			own = append(own, name)
		}
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `(claudeops_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, found[1])
	}
	slices.Sort(own)
	slices.Sort(documented)
	require.Equal(t, own, documented)
}
