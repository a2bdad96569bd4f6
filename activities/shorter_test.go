package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// TestEveryRoleIsAskedOnceForAShorterAnswer lets the answer of each role be too long, once or for ever.
func TestEveryRoleIsAskedOnceForAShorterAnswer(t *testing.T) {
	t.Parallel()
	tooLong := agentReply{report: activities.AgentReport{Report: escalation.Report{
		Status: escalation.SessionFailed, Ending: escalation.EndingTooLong, Error: "the answer was longer than the model may write", Cost: escalation.Cost{CostUSD: 0.2}, Turns: 1,
	}}}
	policy := tierInput(2, escalation.ContinuityFresh).Policy
	run := func(t *testing.T, agent *fakeAgent, pick func(*activities.Tiers) (any, any)) converter.EncodedValue {
		t.Helper()
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		tiers := newTiers(t, agent)
		env.RegisterActivity(tiers)
		activity, input := pick(tiers)
		result, err := env.ExecuteActivity(activity, input)
		require.NoError(t, err)
		return result
	}
	for role, tt := range map[string]struct {
		good agentReply
		run  func(t *testing.T, agent *fakeAgent) escalation.Report
	}{
		"tier": {finished(`{"status":"healthy","summary":"all is well"}`, 0.1), func(t *testing.T, agent *fakeAgent) escalation.Report {
			t.Helper()
			report, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), nil)
			require.NoError(t, err)
			return report
		}},
		"talk": {finished(yes, 0.1), func(t *testing.T, agent *fakeAgent) escalation.Report {
			t.Helper()
			result, err := runTalk(t, &talkBook{}, agent, activities.RunTalkInput{}, nil)
			require.NoError(t, err)
			return result.Report
		}},
		"review": {finished(readyVerdict, 0.1), func(t *testing.T, agent *fakeAgent) escalation.Report {
			t.Helper()
			return runReview(t, agent, reviewInput()).Report
		}},
		"author": {finished(`{"status":"complete","summary":"done"}`, 0.1), func(t *testing.T, agent *fakeAgent) escalation.Report {
			t.Helper()
			var result activities.RunAuthorResult
			require.NoError(t, run(t, agent, func(tiers *activities.Tiers) (any, any) {
				return tiers.RunAuthor, activities.RunAuthorInput{
					ChainID: "chain-1", SessionID: ownID, Tier: 2, Policy: policy, Task: activities.PlanTask{File: "plan.md", Phase: review.Phase{Number: "1"}},
				}
			}).Get(&result))
			return result.Report
		}},
		"handoff": {left(handoffFile), func(t *testing.T, agent *fakeAgent) escalation.Report {
			t.Helper()
			result, err := writeHandoff(t, agent, handoffInput(), nil)
			require.NoError(t, err)
			return result.Report
		}},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{replies: []agentReply{tooLong, tt.good}}
			report := tt.run(t, agent)
			require.Equal(t, escalation.SessionCompleted, report.Status, report.Error)
			require.Equal(t, escalation.EndingNone, report.Ending)
			require.InDelta(t, 0.3, report.CostUSD, 1e-9, "both were paid for")
			require.Len(t, agent.runs, 2)
			again := agent.runs[1]
			require.Equal(t, agent.runs[0].SessionID, again.Resume, "in the same conversation")
			require.Contains(t, again.Prompt, "asks once for a shorter one")
			require.Equal(t, agent.runs[0].Policy.Tools, again.Policy.Tools, "it may go on with its work")

			agent = &fakeAgent{replies: []agentReply{tooLong, tooLong, tt.good}}
			report = tt.run(t, agent)
			require.Equal(t, []any{escalation.SessionFailed, escalation.EndingTooLong}, []any{report.Status, report.Ending})
			require.Len(t, agent.runs, 2, "once")
			require.InDelta(t, 0.4, report.CostUSD, 1e-9)
		})
	}
}
