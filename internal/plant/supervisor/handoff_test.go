package supervisor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// acceptingHeartbeats is a Temporal client that accepts every heartbeat.
type acceptingHeartbeats struct{}

func (acceptingHeartbeats) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// backend sets up a claude that plays a scenario. It returns the settings for it, and a function that returns its
// model calls.
type backend func(t *testing.T, scenario claudesim.Scenario) (environ []string, asked func() []claudesim.Request)

// backendsOf returns the stand-in of a release, and the real CLI of that release with a scripted API.
func backendsOf(version claudesim.Version) map[string]backend {
	return map[string]backend{
		"stand-in": func(t *testing.T, scenario claudesim.Scenario) ([]string, func() []claudesim.Request) {
			t.Helper()
			path := simtest.InstallAs(t, scenario, version)
			return []string{"CLAUDEOPS_CLAUDE=" + path}, func() []claudesim.Request { return simtest.Requests(t, path) }
		},
		"real": func(t *testing.T, scenario claudesim.Scenario) ([]string, func() []claudesim.Request) {
			t.Helper()
			path, api := simtest.RealCLI(t, version), simtest.StartAPI(t, scenario)
			return []string{"CLAUDEOPS_CLAUDE=" + path, "ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}, api.Requests
		},
	}
}

// tiersAt returns the activities of a worker whose settings come from environ, its configuration, and an environment
// in which to run the activities.
func tiersAt(t *testing.T, environ []string) (*activities.Tiers, config.Config, *testsuite.TestActivityEnvironment) {
	t.Helper()
	home := t.TempDir()
	environ = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"), "CLAUDEOPS_SANDBOX=off",
	}, environ...)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	s, err := New(t.Context(), cfg, Environment{Environ: environ, Host: "host-1", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.tiers.Heartbeats = acceptingHeartbeats{}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	env.RegisterActivity(&s.tiers)
	return &s.tiers, cfg, env
}

// TestContractHandoff lets a tier conclude without a field that a handoff requires, and then write its handoff. Under
// the built-in policy the agent can read its cooldowns, and can write its handoff and nothing else.
func TestContractHandoff(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.NewestVersions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			for name, start := range backendsOf(version) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					testHandoff(t, start)
				})
			}
		})
	}
}

func testHandoff(t *testing.T, start backend) {
	const chainID = "../a chain/(1)"
	dir := activities.ChainsDir + "/" + activities.ChainDirName(chainID) + "/"
	write := func(path string) claudesim.Reply {
		return claudesim.Call("Write", map[string]any{"file_path": path, "content": written})
	}
	scenario := claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "goes on from here"},
			write("canary"), write(dir+"handoff.json.bak"), write(".claudeops/other/handoff.json"),
			write(dir+"handoff.json"), claudesim.Say("done")),
		claudesim.Always(
			claudesim.Call("Read", map[string]any{"file_path": dir + "cooldown.json"}), claudesim.Bash("cat "+dir+"cooldown.json"),
			claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictEscalate, Summary: "web is down", Services: []string{"web"}})),
	)
	environ, asked := start(t, scenario)
	tiers, cfg, env := tiersAt(t, environ)
	cooldowns := []escalation.ServiceState{{Service: "web", Restarts: escalation.Use{Used: 41}}}
	parent, child := uuid.NewString(), uuid.NewString()

	var ran activities.RunTierResult
	value, err := env.ExecuteActivity(tiers.RunTier, activities.RunTierInput{
		ChainID: chainID, SessionID: parent, Tier: 1, Policy: cfg.Policy(), Continuity: escalation.ContinuityFresh, Cooldowns: cooldowns,
	})
	require.NoError(t, err)
	require.NoError(t, value.Get(&ran))
	require.Equal(t, escalation.SessionCompleted, ran.Report.Status, ran.Report.Error)
	missing := escalation.MissingFields(1, ran.Report.Verdict)
	require.Equal(t, []string{"check_results"}, missing)
	for _, result := range lastOf(asked()).ToolResults() {
		require.Contains(t, result, `"used": 41`)
	}
	require.Empty(t, leftIn(t, cfg), "the directory goes with the session")

	var result activities.WriteHandoffResult
	value, err = env.ExecuteActivity(tiers.WriteHandoff, activities.WriteHandoffInput{
		ChainID: chainID, SessionID: child, ParentSessionID: parent, Tier: 1, Next: 2, Policy: cfg.Policy(), Missing: missing, Cooldowns: cooldowns,
	})
	require.NoError(t, err)
	require.NoError(t, value.Get(&result))
	require.Empty(t, result.Problem)
	require.Equal(t, escalation.SessionCompleted, result.Report.Status, result.Report.Error)
	require.Equal(t, child, result.Report.ReportedSessionID)
	require.Positive(t, result.Report.CostUSD)
	require.Equal(t, "it answers 502", result.Handoff.Summary)
	require.Equal(t, 41, result.Handoff.Cooldowns.Services["web"].Restarts.Used)
	require.Empty(t, leftIn(t, cfg), "what was read is gone")
	require.NoFileExists(t, filepath.Join(cfg.Claude.WorkDir, "canary"))

	last := lastOf(asked())
	require.Equal(t, []string{"Write"}, last.Tools)
	require.Len(t, last.Prompts(), 2, "it goes on with the conversation that concluded")
	answers := last.ToolResults()
	answers = answers[len(answers)-4:]
	for _, refused := range answers[:3] {
		require.Contains(t, refused, "is outside of what Tier 1 may reach")
	}
	require.Contains(t, answers[3], "File created successfully")
}

const written = `{"schema_version": 1, "recommended_tier": 3, "summary": "it answers 502", "services_affected": ["web"],
	"check_results": [{"service": "web", "check_type": "http", "status": "down"}], "cooldown_state": {}}`

func lastOf(requests []claudesim.Request) claudesim.Request { return requests[len(requests)-1] }

// leftIn lists the entries of the directory for the chains' own directories, without .gitignore.
func leftIn(t *testing.T, cfg config.Config) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cfg.Claude.WorkDir, activities.ChainsDir))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if entry.Name() != ".gitignore" {
			names = append(names, entry.Name())
		}
	}
	return names
}
