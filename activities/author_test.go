package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// TestRunAuthorAsksForTheReport lets an author end without a valid report. It is asked once more, without tools, in its
// own conversation. What it committed in its first run counts, whatever it then reports.
func TestRunAuthorAsksForTheReport(t *testing.T) {
	t.Parallel()
	const done = `{"status":"complete","summary":"the port is set"}`
	var stopped agentReply
	stopped.report.Status, stopped.report.CostUSD = escalation.SessionTimedOut, 0.1
	for name, c := range map[string]struct {
		first, second agentReply
		why           string // it is asked again
		problem       string // of the result; empty if the second report is valid
	}{
		"valid at last":  {finished("", 0.2), finished(done, 0.1), "it ended without its structured report", ""},
		"another status": {finished(`{"status":"done","summary":"x"}`, 0.2), finished(done, 0.1), `status is "done"`, ""},
		"never valid": {
			finished(`{"status":"complete","summary":" "}`, 0.2), finished("", 0.1), "summary is empty or too long",
			"the author gave no valid report, even when asked again: it ended without its structured report",
		},
		"no answer": {
			finished("", 0.2), stopped, "it ended without its structured report",
			"the author gave no valid report, even when asked again: it ended without its structured report; " +
				"asked again, the session ended timed_out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.first.report.Change = &activities.Change{Branch: "claudeops/x", Commit: "c1"}
			agent := &fakeAgent{replies: []agentReply{c.first, c.second}}
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			tiers := newTiers(t, agent)
			env.RegisterActivity(tiers)
			encoded, err := env.ExecuteActivity(tiers.RunAuthor, activities.RunAuthorInput{
				ChainID: "chain-1", SessionID: ownID, Tier: 2, Policy: tierInput(2, escalation.ContinuityFresh).Policy,
				Task: activities.PlanTask{File: "plan.md", Phase: review.Phase{Number: "1"}},
			})
			require.NoError(t, err)
			var result activities.RunAuthorResult
			require.NoError(t, encoded.Get(&result))

			require.Len(t, agent.runs, 2)
			first, again := agent.runs[0], agent.runs[1]
			require.Equal(t, []any{"", true, true}, []any{first.Resume, first.Repairs, first.Inspect})
			require.Equal(t, []any{ownID, false, false}, []any{again.Resume, again.Repairs, again.Inspect})
			require.Empty(t, again.Policy.Tools)
			require.Contains(t, again.Prompt, "The structured report of this session is missing, or cannot be used.")
			require.Contains(t, again.Prompt, c.why)
			require.Equal(t, c.problem, result.Problem)
			require.Equal(t, c.problem == "", result.Work != nil && result.Work.Status == review.WorkComplete)
			require.Equal(t, c.problem == "", result.Report.Verdict != nil)
			require.Equal(t, "c1", result.Change.Commit)
			require.Equal(t, escalation.SessionCompleted, result.Report.Status)
			require.InDelta(t, 0.3, result.Report.CostUSD, 1e-9, "both runs count")
		})
	}
}
