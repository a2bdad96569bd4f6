package systemtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestChainWithAServicesFile lets agents use several names of a service. The guard, the records and the chain must
// treat them as one service.
func TestChainWithAServicesFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "services.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`version: 1
services:
  - {name: Jellyfin, aliases: [media, jellyfin-app-1], look: curl http://nas:8096/health, runbook: restart it once}
`), 0o600))
	observed, repaired := asksFor(2), resolved()
	observed.Services = []string{"MEDIA", "radio"}
	repaired.Services = []string{"jellyfin-app-1"}
	repaired.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "the media ", Succeeded: true}}
	tools := installPrograms(t, "docker")
	claude := simtest.Install(t, claudesim.Play(
		concluding("haiku", observed),
		claudesim.On(claudesim.Match{Model: "sonnet"},
			claudesim.Bash("docker restart jellyfin-app-1"), claudesim.Bash("docker restart media"), claudesim.Conclude(repaired))))
	s := startSite(t, startTemporal(t), environment(t, claude, append(tools.settings(),
		"CLAUDEOPS_SERVICES_FILE="+file, "CLAUDEOPS_RESTART_LIMIT=1/4h", "CLAUDEOPS_ESCALATION_LIMIT=none")...))
	run := s.start(map[string]any{"services": []string{" media", "jellyfin"}})
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Equal(t, []string{"Jellyfin"}, chain.Services)
	require.Equal(t, []string{"Jellyfin", "radio"}, chain.Sessions[0].Verdict.Services)
	require.Equal(t, []string{"radio", "the media"}, chain.UnknownServices)
	requireRecorded(t, s, chain)

	require.Equal(t, []string{"docker restart jellyfin-app-1"}, tools.called(), "the second restart is one of the same service")
	decisions, err := s.records().Decisions(t.Context(), chain.ID)
	require.NoError(t, err)
	decisions = slices.DeleteFunc(decisions, func(decision escalation.CallDecision) bool { return decision.Tool != "Bash" })
	require.Len(t, decisions, 4, "two calls, and an act of each")
	require.Equal(t, []escalation.CallAction{{Kind: escalation.ActionRestart, Service: "Jellyfin"}}, decisions[1].Actions)
	require.Contains(t, decisions[3].Reason, "the cooldown of Jellyfin does not allow a restart now")

	for _, launch := range simtest.Launches(t, claude) {
		require.Contains(t, launch.Stdin, "- `Jellyfin` (normal; also called `media`, `jellyfin-app-1`); look: curl http://nas:8096/health; "+
			"runbook: restart it once")
	}
	described, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	services, found := described.TypedSearchAttributes.GetKeywordList(workflows.ServicesAttribute)
	require.True(t, found)
	require.Equal(t, []string{"Jellyfin"}, services)
}
