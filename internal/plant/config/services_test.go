package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// servicesAt writes a services file and returns the setting that names it.
func servicesAt(t *testing.T, text string) (setting, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "services.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return "CLAUDEOPS_SERVICES_FILE=" + file, file
}

func TestServicesFile(t *testing.T) {
	t.Parallel()
	require.Nil(t, load(t).Services.Catalog)

	setting, file := servicesAt(t, `version: 1
services:
  - {name: web, aliases: [The Shop], criticality: high, depends_on: [DB], look: "curl https://shop", owner: anna, runbook: restart it}
  - name: db
`)
	cfg := load(t, setting, "CLAUDEOPS_COOLDOWN_OVERRIDES=the shop:restart=4/4h; The  SHOP:redeployment=0/1h; tv:restart=none")
	require.Equal(t, file, cfg.Services.File)
	require.Equal(t, []escalation.Service{
		{
			Name: "web", Aliases: []string{"The Shop"}, Criticality: escalation.CriticalityHigh, DependsOn: []string{"db"},
			Look: "curl https://shop", Owner: "anna", Runbook: "restart it",
		},
		{Name: "db", Criticality: escalation.CriticalityNormal},
	}, cfg.Services.Catalog.Services())
	own := cfg.Policy().Cooldowns.Services
	require.Len(t, own, 2)
	require.Equal(t, "4/4h", own["web"].Restarts.String(), "limits are those of the service, not of the name")
	require.Equal(t, "0/1h", own["web"].Redeployments.String())
	require.Contains(t, own, "tv")
}

func TestServicesFileRefused(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nservices:\n"
	for want, text := range map[string]string{
		"version must be 1, and is 2.":                     "version: 2\nservices: [{name: web}]\n",
		"version must be 1, and is 0.":                     "",
		"there are no services: list at least one.":        "version: 1\n",
		`in line 3: unknown field "alias".`:                head + "- {name: web, alias: [www]}\n",
		"there is a second document, and only one is read": head + "- name: web\n---\nservices: []\n",
		`in line 3: string was used where sequence is`:     head + "- {name: web, aliases: www}\n",
		`in line 5: mapping key "name" already defined`:    head + "- name: web\n  look: x\n  name: db\n",
		"service 2 has a blank name.":                      head + "- name: web\n- look: there\n",
		`service "db": "WEB" is already a name of service "web", and case and blanks make no difference.`: head + "- name: web\n- {name: db, aliases: [WEB]}\n",
		`service "web": depends_on names "dbx", and no service has that name.`:                            head + "- {name: web, depends_on: [dbx]}\n",
		`service "web": depends_on leads back to it: web → db → web.`:                                     head + "- {name: web, depends_on: [db]}\n- {name: db, depends_on: [web]}\n",
	} {
		setting, file := servicesAt(t, text)
		problems := problemsOf(t, setting)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].Sentence, `CLAUDEOPS_SERVICES_FILE is "`+file+`"; it must name a list of services that can be used: `)
		require.Contains(t, problems[0].Sentence, want)
		require.NotContains(t, problems[0].Sentence, "\n")
	}
	missing := problemsOf(t, "CLAUDEOPS_SERVICES_FILE=/none/services.yaml")
	require.Contains(t, missing[0].Sentence, "can be used: open /none/services.yaml: no such file or directory.")
	near := problemsOf(t, "CLAUDEOPS_SERVICES_FILE=services.yaml")
	require.Equal(t, `CLAUDEOPS_SERVICES_FILE is "services.yaml"; it must be an absolute path.`, near[0].Sentence)
}

func TestOverridesOfOneService(t *testing.T) {
	t.Parallel()
	twice := problemsOf(t, "CLAUDEOPS_COOLDOWN_OVERRIDES=web:restart=4/4h;WEB :restart=1/1h")
	require.Contains(t, twice[0].Sentence, `"WEB :restart=1/1h" comes twice for its service`)

	setting, _ := servicesAt(t, "version: 1\nservices: [{name: web, aliases: [shop]}]\n")
	aliased := problemsOf(t, setting, "CLAUDEOPS_COOLDOWN_OVERRIDES=shop:restart=4/4h;web:restart=1/1h")
	require.Contains(t, aliased[0].Sentence, `it must name each service once, and "shop" and "web" are the same one (CLAUDEOPS_SERVICES_FILE).`)
}
