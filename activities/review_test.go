package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

const readyVerdict = `{"status":"ready","summary":"fine","findings":[]}`

func runReview(
	t *testing.T, agent *fakeAgent, input activities.RunReviewInput, before ...activities.TierProgress,
) activities.RunReviewResult {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	for _, progress := range before {
		env.SetHeartbeatDetails(progress)
	}
	tiers := newTiers(t, agent)
	env.RegisterActivity(tiers)
	encoded, err := env.ExecuteActivity(tiers.RunReview, input)
	require.NoError(t, err)
	var result activities.RunReviewResult
	require.NoError(t, encoded.Get(&result))
	return result
}

func reviewInput() activities.RunReviewInput {
	return activities.RunReviewInput{
		ChainID: "chain-1", SessionID: ownID, Policy: tierInput(1, escalation.ContinuityFresh).Policy, Problem: "web answers 502",
		Change: activities.Change{Branch: "claudeops/x", Commit: "c1", Patch: "+port: 8080", Checks: review.QualityNone},
	}
}

// TestRunReviewContinues checks that an interrupted review is forked, with a short prompt and the person's guidance.
func TestRunReviewContinues(t *testing.T) {
	t.Parallel()
	input := reviewInput()
	input.Continues, input.Guidance = parentID, "read compose.yaml first"
	agent := &fakeAgent{replies: []agentReply{finished(readyVerdict, 0.02)}, conversations: map[string]bool{parentID: true}}
	result := runReview(t, agent, input)
	require.Equal(t, review.Ready, result.Verdict.Status)
	run := agent.runs[0]
	require.Equal(t, []any{parentID, ownID, escalation.TierObserve, false}, []any{run.Resume, run.SessionID, run.Tier, run.Repairs})
	require.Contains(t, run.Prompt, "Continue this review of `c1` and complete it")
	require.Contains(t, run.Prompt, "read compose.yaml first")
	require.NotContains(t, run.Prompt, "port: 8080", "the conversation has the change")
	require.Less(t, len(run.Prompt), 300)

	// Another attempt continues the own conversation, which is a fork of the interrupted one.
	agent = &fakeAgent{replies: []agentReply{finished(readyVerdict, 0.02)}, conversations: map[string]bool{parentID: true, ownID: true}}
	runReview(t, agent, input)
	require.Equal(t, ownID, agent.runs[0].Resume)

	// An interrupted reviewer is told that it changes nothing.
	agent = &fakeAgent{replies: []agentReply{finished(readyVerdict, 0.02)}, conversations: map[string]bool{ownID: true}}
	runReview(t, agent, reviewInput(), activities.TierProgress{Spent: escalation.Report{Turns: 2}})
	require.Contains(t, agent.runs[0].Prompt, "this is still a dry run, so change nothing")
}

// TestRunReviewFresh checks that a new reviewer begins a conversation of its own, and gets the person's guidance.
func TestRunReviewFresh(t *testing.T) {
	t.Parallel()
	input := reviewInput()
	input.Guidance = "read compose.yaml first"
	agent := &fakeAgent{replies: []agentReply{finished(readyVerdict, 0.02)}}
	runReview(t, agent, input)
	require.Empty(t, agent.runs[0].Resume)
	require.Contains(t, agent.runs[0].Prompt, "port: 8080")
	require.Contains(t, agent.runs[0].Prompt, "read compose.yaml first")
	require.Nil(t, agent.runs[0].Shown, "a change with a secret has no fork")

	input.Change.Fork, input.Change.Pack = "b0", []byte("commits")
	agent = &fakeAgent{replies: []agentReply{finished(readyVerdict, 0.02)}}
	runReview(t, agent, input)
	require.Equal(t, activities.Checkpoint{Commit: "c1", Base: "b0", Pack: []byte("commits")}, agent.runs[0].Shown.Checkpoint)
	section, err := agent.runs[0].Shown.Describe("/tmp/commit-c1", "")
	require.NoError(t, err)
	require.Contains(t, section, "are in `/tmp/commit-c1`")
	section, err = agent.runs[0].Shown.Describe("", "it has too many files")
	require.NoError(t, err)
	require.Contains(t, section, "no directory with the files after the change: `it has too many files`")
}

// TestRunReviewBreaksOff checks that a review that is stopped by a limit keeps its conversation, and is no approval.
func TestRunReviewBreaksOff(t *testing.T) {
	t.Parallel()
	var reply agentReply
	reply.report.Status, reply.report.ReportedSessionID, reply.report.Error = escalation.SessionTimedOut, ownID, "it ran for 10m"
	result := runReview(t, &fakeAgent{replies: []agentReply{reply}}, reviewInput())
	require.Nil(t, result.Verdict)
	require.Equal(t, []any{escalation.SessionTimedOut, ownID}, []any{result.Report.Status, result.Report.ReportedSessionID})
	require.Equal(t, "the review ended timed_out: it ran for 10m", result.Problem)
}
