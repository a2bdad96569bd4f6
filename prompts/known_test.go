package prompts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// catalog returns a catalog of three services.
func catalog(t *testing.T) *escalation.Catalog {
	t.Helper()
	catalog, err := escalation.NewCatalog([]escalation.Service{
		{Name: "nas", Criticality: escalation.CriticalityHigh},
		{
			Name: "web", Aliases: []string{"the shop", "www"}, Look: "curl -fsS https://shop.example.org\nprints OK", DependsOn: []string{"db", "nas"},
			Owner: "anna", Runbook: "https://wiki.example.org/web",
		},
		{Name: "db", Criticality: escalation.CriticalityCritical, Runbook: "Never restart it at night."},
	})
	require.NoError(t, err)
	return catalog
}

// TestKnownServicesAreBounded checks the description of many services, and of services with long texts.
func TestKnownServicesAreBounded(t *testing.T) {
	t.Parallel()
	set, normal := load(t, prompts.Overrides{}), policy(t)
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"many":              {"", 40},
		"many with texts":   {"look closely ", 40},
		"many that are big": {strings.Repeat("x", 1_000), 8},
	} {
		var services []escalation.Service
		for i := range 100 {
			services = append(services, escalation.Service{
				Name: fmt.Sprintf("service %d", i), Look: tt.text, Runbook: tt.text, Owner: tt.text, DependsOn: []string{"service 99"},
			})
		}
		services[99].DependsOn = nil
		catalog, err := escalation.NewCatalog(services)
		require.NoError(t, err)
		text, err := set.Fresh(prompts.Launch{Tier: 1, Policy: normal, Catalog: catalog, Affected: []string{"service 50"}})
		require.NoError(t, err)
		_, known, found := strings.Cut(text, "## Known services\n")
		require.True(t, found)
		known, _, _ = strings.Cut(known, "\n## ")
		require.Less(t, len(known), 8_500, name)
		require.Equal(t, tt.want, strings.Count(known, "\n- `service "), name)
		require.Contains(t, known, fmt.Sprintf("\n- (%d more are not listed)", 100-tt.want), name)
		require.Less(t, strings.Index(known, "- `service 50`"), strings.Index(known, "- `service 99`"), name)
		require.Less(t, strings.Index(known, "- `service 99`"), strings.Index(known, "- `service 0`"), name)
	}
}

// TestResumedPromptsDescribeTheAffectedServices checks that the prompt for a resumed conversation does not repeat the
// conversation's content.
func TestResumedPromptsDescribeTheAffectedServices(t *testing.T) {
	t.Parallel()
	set := load(t, prompts.Overrides{})
	launch := prompts.Launch{Tier: 2, From: 1, Policy: policy(t), Catalog: catalog(t)}
	text, err := set.Resumed(launch)
	require.NoError(t, err)
	require.NotContains(t, text, "Known services")

	launch.Affected = []string{"DB", "tv"}
	text, err = set.Resumed(launch)
	require.NoError(t, err)
	require.Contains(t, text, "\n- `db` (critical); runbook: Never restart it at night.\n")
	require.NotContains(t, text, "`web`")

	launch.From = 0
	text, err = set.Resumed(launch)
	require.NoError(t, err)
	require.Contains(t, text, "- `web` (normal; also called `the shop`, `www`) depends on `db`, `nas`; look: curl", "nobody knows what it was told before")
}
