package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// continuedInput returns an input that continues an interrupted session of Tier 2, which had a call in flight.
func continuedInput() activities.RunTierInput {
	input := tierInput(2, escalation.ContinuityResume)
	input.ParentTier, input.ParentSessionID = 2, parentID
	input.Continues, input.Guidance = true, "the proxy was moved"
	input.InFlight = []activities.ToolCall{{Number: 4, Name: "Bash", Input: "docker restart web", State: activities.ToolRunning}}
	return input
}

// TestRunTierContinues checks that the interrupted conversation is forked, and that the prompt contains the person's
// guidance.
func TestRunTierContinues(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.02)}}
	report, err := runTier(t, agent, continuedInput(), nil)
	require.NoError(t, err)
	require.Equal(t, escalation.SessionCompleted, report.Status)
	run := agent.runs[0]
	require.Equal(t, parentID, run.Resume)
	require.Equal(t, ownID, run.SessionID, "the interrupted conversation is not written")
	require.Contains(t, run.Prompt, "Continue this session and complete all that is left of its work")
	require.Contains(t, run.Prompt, "docker restart web")
	require.Contains(t, run.Prompt, "its effect is unknown")
	require.Contains(t, run.Prompt, "the proxy was moved")
	require.NotContains(t, run.Prompt, "why is it slow", "the conversation knows that")
	require.NotContains(t, run.Prompt, "From here on you are the tier", "the role is the same")
}

// TestRunTierContinuesOnceMore lets the worker of a continuation die. The retry resumes the continuation's own
// conversation, not the interrupted one.
func TestRunTierContinuesOnceMore(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.02)}, conversations: map[string]bool{ownID: true, parentID: true}}
	past := activities.TierProgress{SessionID: ownID, Attempt: 1, Now: activities.AgentProgress{Turns: 3}}
	_, err := runTier(t, agent, continuedInput(), &past)
	require.NoError(t, err)
	require.Equal(t, ownID, agent.runs[0].Resume)
	require.Contains(t, agent.runs[0].Prompt, "The process that ran this session ended before its work was done")

	// An attempt that may not have read its prompt gets both texts.
	agent = &fakeAgent{replies: []agentReply{finished(healthy, 0.02)}}
	_, err = runTier(t, agent, continuedInput(), &activities.TierProgress{SessionID: ownID, Attempt: 1})
	require.NoError(t, err)
	require.Equal(t, parentID, agent.runs[0].Resume)
	require.Contains(t, agent.runs[0].Prompt, "Continue this session")
	require.Contains(t, agent.runs[0].Prompt, "This session was started before")
}

// TestRunTierTellsWhatWasInFlight checks that the result contains at most ten calls.
func TestRunTierTellsWhatWasInFlight(t *testing.T) {
	t.Parallel()
	var reply agentReply
	reply.report.Status, reply.report.ReportedSessionID = escalation.SessionTimedOut, ownID
	for i := range 12 {
		reply.report.InFlight = append(reply.report.InFlight, activities.ToolCall{Number: i + 1, Name: "Bash"})
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	tiers := newTiers(t, &fakeAgent{replies: []agentReply{reply}})
	env.RegisterActivity(tiers)
	encoded, err := env.ExecuteActivity(tiers.RunTier, tierInput(2, escalation.ContinuityFresh))
	require.NoError(t, err)
	var result activities.RunTierResult
	require.NoError(t, encoded.Get(&result))
	require.Equal(t, ownID, result.Report.ReportedSessionID, "a time-out carries its session")
	require.Len(t, result.InFlight, 10)
	require.Equal(t, 12, result.InFlight[9].Number)
}

func TestFindTranscript(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{conversations: map[string]bool{ownID: true}}
	find := func(sessionID string) (activities.FindTranscriptResult, error) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		tiers := newTiers(t, agent)
		env.RegisterActivity(tiers)
		var result activities.FindTranscriptResult
		encoded, err := env.ExecuteActivity(tiers.FindTranscript, activities.FindTranscriptInput{SessionID: sessionID})
		if err == nil {
			err = encoded.Get(&result)
		}
		return result, err
	}
	there, err := find(ownID)
	require.NoError(t, err)
	require.True(t, there.Reachable)
	gone, err := find(parentID)
	require.NoError(t, err)
	require.False(t, gone.Reachable)
	agent.unreachable = errors.New("the archive is away")
	_, err = find(ownID)
	require.ErrorContains(t, err, "look for the transcript of "+ownID+": the archive is away")
}
