package systemtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestContractContinuity runs the chains of every case on the stand-in and on the real CLI, and requires the same
// results.
func TestContractContinuity(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for name, c := range continuityCases() {
			t.Run(simtest.Number(t, version)+"/"+name, func(t *testing.T) {
				t.Parallel()
				want := c.want(version)
				for _, start := range c.backends() {
					backend := start(t, version, c.scenario())
					s := startSite(t, temporalServer, c.environ(t, backend, fmt.Sprintf("%s-%s-%s", backend.name, version, name)))
					simtest.Compare(t, 0, want, c.run(t, s, backend))
					require.NoError(t, s.stop())
				}
			})
		}
	}
}

// backend is a claude that plays a scenario: the stand-in, or the real CLI with a scripted API.
type backend struct {
	name    string
	environ []string
	asked   func() []claudesim.Request
}

func (c continuityCase) backends() []func(*testing.T, claudesim.Version, claudesim.Scenario) backend {
	all := []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude}
	if c.compacts {
		return all[1:]
	}
	return all
}

func playedClaude(t *testing.T, version claudesim.Version, scenario claudesim.Scenario) backend {
	t.Helper()
	path := simtest.InstallAs(t, scenario, version)
	return backend{"played", []string{"CLAUDEOPS_CLAUDE=" + path}, func() []claudesim.Request { return simtest.Requests(t, path) }}
}

func realClaude(t *testing.T, version claudesim.Version, scenario claudesim.Scenario) backend {
	t.Helper()
	path, api := simtest.RealCLI(t, version), simtest.StartAPI(t, scenario)
	return backend{"real", []string{"CLAUDEOPS_CLAUDE=" + path, "ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}, api.Requests}
}

func (c continuityCase) scenario() claudesim.Scenario {
	tier2 := func(session int) claudesim.Reply {
		if session <= c.refused {
			return claudesim.Fail(400, claudesim.PromptTooLong)
		}
		return claudesim.Conclude(resolved())
	}
	summary := claudesim.Fail(400, claudesim.PromptTooLong)
	outgrown := claudesim.Match{Model: "sonnet"}
	if c.compacts {
		summary, outgrown.First = claudesim.Say("<summary>jellyfin answers 502</summary>"), "You look at infrastructure"
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: summingUp}, summary),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "left the report below"}, tier2(2)),
		claudesim.On(outgrown, tier2(1)), claudesim.Always(tier2(c.refused+1)))
}

func (c continuityCase) environ(t *testing.T, backend backend, queue string) []string {
	t.Helper()
	archive := "none"
	if c.archived {
		archive = "file://" + t.TempDir()
	}
	return environment(t, "", append(backend.environ, "CLAUDEOPS_TASK_QUEUE="+queue, "CLAUDEOPS_TRANSCRIPTS="+archive,
		"CLAUDEOPS_REPOSITORIES="+t.TempDir(), "CLAUDEOPS_TIER1_TOOLS=Bash",
		// On a busy machine a session that is repeated because its heartbeats are late would be no case of its own.
		"CLAUDEOPS_HEARTBEAT_INTERVAL=10s")...)
}

// run runs both chains and returns the result of the second one.
func (c continuityCase) run(t *testing.T, s *site, backend backend) continued {
	t.Helper()
	queue := s.cfg.Worker.TaskQueue
	input := map[string]any{"max_tier": 1}
	if c.foreign {
		input["repository"] = s.cfg.Claude.Repositories[0]
	}
	before, err := s.finish(s.startAs(queue+"-before", input))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, before.Outcome, "%s %+v", before.Reason, before.Last())
	parent := before.Sessions[0]
	if c.harm != nil {
		c.harm(t, conversationOf(s.cfg, parent.SessionID))
	}
	from := parent.SessionID
	if c.unknown {
		from, parent.ID = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11", 0
	}
	asked := len(backend.asked())
	chain, err := s.finish(s.startAs(queue, map[string]any{"start_tier": 2, "resume_from": map[string]any{"session_id": from}}))
	require.NoError(t, err)
	requireRecorded(t, s, chain)
	requireFallback(t, chain, parent)
	return continuedBy(chain, backend.asked()[asked:])
}

// requireFallback checks every session after the first. It must start from a handoff and have a record of its own,
// and a decision must give the reason.
func requireFallback(t *testing.T, chain escalation.Chain, parent escalation.Session) {
	t.Helper()
	var told []string
	for _, event := range chain.Events {
		if event.Kind == escalation.EventDecision && strings.HasPrefix(event.Message, "handoff (") {
			require.Equal(t, escalation.SeverityWarning, event.Severity)
			told = append(told, event.Message)
		}
	}
	require.Len(t, told, len(chain.Sessions)-1, "one decision for each session more")
	for i, session := range chain.Sessions {
		require.Equal(t, parent.ID, session.ParentID)
		require.NotEqual(t, parent.SessionID, session.SessionID)
		if i > 0 {
			require.NotEqual(t, chain.Sessions[i-1].SessionID, session.SessionID)
			require.Contains(t, told[i-1], escalation.InWords(session.ContinuityReason))
		}
	}
}

var uuidShape = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func continuedBy(chain escalation.Chain, asked []claudesim.Request) continued {
	got := continued{Outcome: chain.Outcome}
	for _, session := range chain.Sessions {
		got.Sessions = append(got.Sessions, continuedSession{
			Tier: session.Tier, Continuity: session.Continuity, Reason: session.ContinuityReason,
			Status: session.Status, Error: gistOf(session.Error),
		})
	}
	for i := range asked {
		if prompts := asked[i].Prompts(); !strings.Contains(prompts[len(prompts)-1], summingUp) {
			got.Prompts = append(got.Prompts, len(prompts))
		}
	}
	return got
}

// gistOf removes from an error the parts that differ between runs. It replaces IDs, and cuts off the figures that the
// CLI adds if a prompt was too long from the start.
func gistOf(problem string) string {
	gist, _, _ := strings.Cut(uuidShape.ReplaceAllString(problem, "ID"), " · ")
	return gist
}
