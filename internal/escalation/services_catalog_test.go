package escalation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

// catalogOf returns a catalog of services that are all right.
func catalogOf(t *testing.T, services ...escalation.Service) *escalation.Catalog {
	t.Helper()
	catalog, err := escalation.NewCatalog(services)
	require.NoError(t, err)
	return catalog
}

// shop returns a catalog of four services: web needs db and cache, and both need disk.
func shop(t *testing.T) *escalation.Catalog {
	t.Helper()
	return catalogOf(t,
		escalation.Service{Name: "cache", DependsOn: []string{"disk"}, Criticality: escalation.CriticalityLow},
		escalation.Service{Name: "Web", Aliases: []string{"the shop", "www"}, DependsOn: []string{"DB", "cache"}},
		escalation.Service{Name: "db", Aliases: []string{"Postgres  Main"}, DependsOn: []string{"disk"}, Criticality: escalation.CriticalityHigh},
		escalation.Service{Name: "disk"},
		escalation.Service{Name: "mail", Criticality: escalation.CriticalityCritical},
	)
}

func TestServiceKey(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"web", "Web", " WEB\t", "web\u200b"},
		{"postgres main", "Postgres  Main", " postgres\u00a0MAIN "},
		{"straße", "STRAßE"},
		{"\u212aafka", "kafka", "KAFKA"}, // the sign of kelvin
	} {
		for _, name := range same {
			require.True(t, escalation.SameService(same[0], name), "%q, %q", same[0], name)
		}
	}
	require.False(t, escalation.SameService("web", "we b"))
	require.False(t, escalation.SameService("web-1", "web_1"))
	require.Equal(t, []string{"Web", "db"}, escalation.UniqueServices([]string{"Web", "db", "web ", "DB"}))
	require.Nil(t, escalation.UniqueServices(nil))
	require.True(t, escalation.HasService([]string{"db", "Web"}, " web"))
}

// TestServiceKeyIsItsOwnKey checks with random names that a key does not change when its key is taken.
func TestServiceKeyIsItsOwnKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		key := escalation.ServiceKey(name)
		require.Equal(t, key, escalation.ServiceKey(key))
		require.True(t, escalation.SameService(name, strings.ToUpper(name)))
	})
}

func TestCatalogFindsServices(t *testing.T) {
	t.Parallel()
	catalog := shop(t)
	for name, want := range map[string]string{
		"Web": "Web", " web ": "Web", "WWW": "Web", "The  Shop": "Web", "postgres main": "db", "DB": "db",
		" not   listed ": "not listed", "Not Listed": "Not Listed",
	} {
		require.Equal(t, want, catalog.Canonical(name), "%q", name)
		require.Equal(t, !strings.Contains(strings.ToLower(name), "not"), catalog.Known(name), "%q", name)
	}
	require.Equal(t, []string{"db", "Web", "tv"}, catalog.CanonicalAll([]string{"Postgres Main", "www", "db", "tv", "web", "TV"}))
	require.Equal(t, []string{"tv"}, catalog.Unknown([]string{"web", "tv", "TV", "disk"}))

	var none *escalation.Catalog
	require.Equal(t, "Web 1", none.Canonical(" Web  1 "))
	require.Equal(t, []string{"Web"}, none.CanonicalAll([]string{"Web", " web"}))
	require.False(t, none.Known("web"))
	require.Empty(t, none.Unknown([]string{"web"}), "without a list no name is missing from it")
	require.Empty(t, none.Services())
	require.Empty(t, none.ByRelevance([]string{"web"}))
}

func TestCatalogOrdersServices(t *testing.T) {
	t.Parallel()
	names := func(services []escalation.Service) string {
		var list []string
		for _, service := range services {
			list = append(list, service.Name)
		}
		return strings.Join(list, " ")
	}
	catalog := shop(t)
	require.Equal(t, "cache Web db disk mail", names(catalog.Services()))
	require.Equal(t, "Web db cache disk", names(catalog.Around([]string{"www", "tv", "WEB"})))
	require.Equal(t, "db disk mail Web cache", names(catalog.ByRelevance([]string{"db"})))
	require.Equal(t, "mail db Web disk cache", names(catalog.ByRelevance(nil)))
	require.Equal(t, []string{"db", "cache"}, catalog.Around([]string{"web"})[0].DependsOn, "under their names")
	require.Equal(t, escalation.CriticalityNormal, catalog.Around([]string{"disk"})[0].Criticality)
}

func TestCatalogRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", escalation.MaxServiceName+1)
	type list = []escalation.Service
	for want, services := range map[string]list{
		"service 2 has a blank name":                                                                      {{Name: "web"}, {Name: " "}},
		"service 1 has a name of more than 100 characters":                                                {{Name: long}},
		"service 1 has a name with characters that cannot":                                                {{Name: "we\x1bb"}},
		`service "web": alias 2 has a name of more than 100`:                                              {{Name: "web", Aliases: []string{"w", long}}},
		`service "web": "WEB" is there twice, and case`:                                                   {{Name: "web", Aliases: []string{"WEB"}}},
		`service "WEB": "WEB" is already a name of service "web", and case and blanks make no difference`: {{Name: "web"}, {Name: "WEB"}},
		`service "db": "the  Shop" is already a name of service "web"`: {
			{Name: "web", Aliases: []string{"The shop"}}, {Name: "db", Aliases: []string{"the  Shop"}},
		},
		`service "web": criticality is "urgent", and must be low, normal, high or critical`: {{Name: "web", Criticality: "urgent"}},
		`service "web": runbook has more than 1000 characters`:                              {{Name: "web", Runbook: strings.Repeat("x", 1_001)}},
		`service "web": depends_on names "dbx", and no service has that name`:               {{Name: "web", DependsOn: []string{"db", "dbx"}}, {Name: "db"}},
		`service "web": depends_on leads back to it: web → web`:                             {{Name: "web", DependsOn: []string{"Web"}}},
		`service "db": depends_on leads back to it: db → disk → db`: {
			{Name: "web", DependsOn: []string{"db"}},
			{Name: "db", DependsOn: []string{"disk"}},
			{Name: "disk", Aliases: []string{"nas"}, DependsOn: []string{"DB"}},
		},
		"1001 services, and at most 1000 are allowed": make(list, 1_001),
	} {
		catalog, err := escalation.NewCatalog(services)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Nil(t, catalog)
	}
}

func TestCatalogNamesTheServicesOfAVerdict(t *testing.T) {
	t.Parallel()
	catalog := shop(t)
	given := escalation.Verdict{
		Services: []string{"www", "WEB", "tv"},
		Checks:   []escalation.CheckResult{{Service: "Postgres main"}, {Service: "host"}},
		Actions:  []escalation.Action{{Kind: escalation.ActionRestart, Service: "DB"}},
		Issues:   []escalation.Issue{{Services: []string{"The Shop"}}, {Services: []string{"radio ", "radio"}}},
	}
	verdict := catalog.Verdict(given)
	require.Equal(t, escalation.Verdict{
		Services: []string{"Web", "tv"},
		Checks:   []escalation.CheckResult{{Service: "db"}, {Service: "host"}},
		Actions:  []escalation.Action{{Kind: escalation.ActionRestart, Service: "db"}},
		Issues:   []escalation.Issue{{Services: []string{"Web"}}, {Services: []string{"radio"}}},
	}, verdict)
	require.Equal(t, "DB", given.Actions[0].Service, "the verdict itself stays as it is")
	require.Equal(t, []string{"tv", "radio"}, catalog.Unknown(verdict.AllServices()), "a check of the host is no service")
	require.Equal(t, escalation.Verdict{Status: escalation.VerdictHealthy}, catalog.Verdict(escalation.Verdict{Status: escalation.VerdictHealthy}))

	handoff := catalog.Handoff(escalation.Handoff{Services: given.Services, Checks: given.Checks, Actions: given.Actions})
	require.Equal(t, escalation.Handoff{Services: verdict.Services, Checks: verdict.Checks, Actions: verdict.Actions}, handoff)
}

func TestCatalogNamesTheServicesWithLimits(t *testing.T) {
	t.Parallel()
	often := limit("4/30h")
	own := map[string]escalation.ServiceCooldowns{"WWW": {Restarts: &often}, "tv": {}}
	cooldowns := shop(t).Cooldowns(escalation.Cooldowns{Services: own})
	require.Equal(t, map[string]escalation.ServiceCooldowns{"Web": {Restarts: &often}, "tv": {}}, cooldowns.Services)
	require.Equal(t, escalation.Cooldowns{}, shop(t).Cooldowns(escalation.Cooldowns{}))

	// Two services have become one while a chain runs. What one of them forbade stays forbidden.
	never, none := limit("0/24h"), limit("none")
	merged := shop(t).Cooldowns(escalation.Cooldowns{Services: map[string]escalation.ServiceCooldowns{
		"WWW": {Restarts: &often, Redeployments: &never}, "Web": {Restarts: &none, Redeployments: &often},
	}})
	require.Equal(t, map[string]escalation.ServiceCooldowns{"Web": {Restarts: &often, Redeployments: &never}}, merged.Services)
}
