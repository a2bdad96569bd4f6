package activities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// listed returns a catalog of two services.
func listed(t *testing.T) *escalation.Catalog {
	t.Helper()
	catalog, err := escalation.NewCatalog([]escalation.Service{
		{Name: "web", Aliases: []string{"The Shop"}, DependsOn: []string{"db"}, Look: "curl -fsS https://shop"}, {Name: "db"},
	})
	require.NoError(t, err)
	return catalog
}

func TestLoadPolicyNamesServices(t *testing.T) {
	t.Parallel()
	settings := &activities.Settings{Catalog: listed(t), Windows: fakeWindows{}}
	loaded, err := settings.LoadPolicy(t.Context(), activities.LoadPolicyInput{Services: []string{"the shop", "TV", "WEB"}})
	require.NoError(t, err)
	require.Equal(t, []string{"web", "TV"}, loaded.Services)
	require.Equal(t, []string{"TV"}, loaded.Unknown)

	settings.Catalog = nil
	loaded, err = settings.LoadPolicy(t.Context(), activities.LoadPolicyInput{Services: []string{"The  Shop", "the shop"}})
	require.NoError(t, err)
	require.Equal(t, []string{"The Shop"}, loaded.Services)
	require.Empty(t, loaded.Unknown)
}

// TestRunTierNamesServices checks the names of services in a verdict, and the services in the agent's prompt.
func TestRunTierNamesServices(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{finished(`{"status":"escalate","summary":"down","services_affected":["THE SHOP","tv"],
		"check_results":[{"service":"host","check_type":"disk","status":"healthy"}],
		"actions":[{"kind":"restart","service":"Web","succeeded":true}]}`, 0.1)}}
	tiers := newTiers(t, agent)
	tiers.Catalog = listed(t)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(tiers)
	input := tierInput(1, escalation.ContinuityFresh)
	input.Affected = []string{"db"}
	encoded, err := env.ExecuteActivity(tiers.RunTier, input)
	require.NoError(t, err)
	var result activities.RunTierResult
	require.NoError(t, encoded.Get(&result))
	require.Equal(t, []string{"web", "tv"}, result.Report.Verdict.Services)
	require.Equal(t, "web", result.Report.Verdict.Actions[0].Service)
	require.Equal(t, []string{"tv"}, result.Unknown)
	prompt := agent.runs[0].Prompt
	require.Contains(t, prompt, "curl -fsS https://shop")
	require.Less(t, strings.Index(prompt, "- `db` (normal)"), strings.Index(prompt, "- `web` (normal; also called `The Shop`)"))
}

func TestWriteHandoffNamesServices(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{left(strings.ReplaceAll(handoffFile, `"web"`, `"the shop"`))}}
	tiers := newTiers(t, agent)
	tiers.Catalog = listed(t)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(tiers)
	encoded, err := env.ExecuteActivity(tiers.WriteHandoff, handoffInput())
	require.NoError(t, err)
	var result activities.WriteHandoffResult
	require.NoError(t, encoded.Get(&result))
	require.Empty(t, result.Problem)
	require.Equal(t, []string{"web"}, result.Handoff.Services)
	require.Equal(t, "web", result.Handoff.Checks[0].Service)
}
