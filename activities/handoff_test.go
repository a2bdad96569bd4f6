package activities_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

const handoffFile = `{
	"schema_version": 1, "recommended_tier": 2, "summary": "web is down", "services_affected": ["web"],
	"check_results": [{"service": "web", "check_type": "http", "status": "down"}], "cooldown_state": {"services": {"web": {"forged": true}}}
}`

// left returns a reply that completes, costs 0.10 US dollars and leaves a file with this content.
func left(content string) agentReply {
	reply := finished("", 0.1)
	reply.report.Handoff.Content = []byte(content)
	return reply
}

func writeHandoff(
	t *testing.T, agent *fakeAgent, input activities.WriteHandoffInput, past *activities.TierProgress,
) (activities.WriteHandoffResult, error) {
	t.Helper()
	texts, err := prompts.Load(prompts.Overrides{})
	require.NoError(t, err)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	tiers := &activities.Tiers{Agent: agent, Prompts: texts, Heartbeats: acceptingHeartbeats{}, Host: "host-1"}
	env.RegisterActivity(tiers)
	if past != nil {
		env.SetHeartbeatDetails(*past)
	}
	encoded, err := env.ExecuteActivity(tiers.WriteHandoff, input)
	if err != nil {
		return activities.WriteHandoffResult{}, err
	}
	var result activities.WriteHandoffResult
	require.NoError(t, encoded.Get(&result))
	return result, nil
}

func handoffInput() activities.WriteHandoffInput {
	return activities.WriteHandoffInput{
		ChainID: "../chain 1", SessionID: ownID, ParentSessionID: parentID, Tier: 1, Next: 2,
		Policy: tierInput(1, escalation.ContinuityFresh).Policy, Missing: []string{"check_results"},
		Cooldowns: []escalation.ServiceState{{Service: "web", Restarts: escalation.Use{Used: 2}}},
	}
}

func TestWriteHandoff(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{left(handoffFile)}}
	input := handoffInput()
	result, err := writeHandoff(t, agent, input, nil)
	require.NoError(t, err)
	require.Empty(t, result.Problem)
	require.Equal(t, "web is down", result.Handoff.Summary)
	require.Equal(t, escalation.NewCooldownState(input.Cooldowns), result.Handoff.Cooldowns, "as the supervisor knows them")
	require.InDelta(t, 0.1, result.Report.CostUSD, 1e-9)
	require.Equal(t, "host-1", result.Report.Host)
	require.Equal(t, 1, result.Report.Attempts)

	require.Len(t, agent.runs, 1)
	run := agent.runs[0]
	file := ".claudeops/" + activities.ChainDirName(input.ChainID) + "/handoff.json"
	require.Equal(t, parentID, run.Resume)
	require.Equal(t, ownID, run.SessionID)
	require.True(t, run.LeavesHandoff)
	require.Equal(t, input.Cooldowns, run.Cooldowns)
	require.Empty(t, run.Schema)
	require.Equal(t, "haiku", run.Policy.Model)
	require.Equal(t, []string{"Write"}, run.Policy.Tools)
	require.Equal(t, []string{"Edit(./" + file + ")"}, run.Policy.AllowedTools)
	require.Equal(t, escalation.Duration(3*time.Minute), run.Policy.Timeout)
	require.Equal(t, 6, run.Policy.MaxTurns)
	require.Contains(t, run.Prompt, "`"+file+"`")
	require.Contains(t, run.Prompt, "`check_results`")
}

func TestWriteHandoffThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	ended := func(status escalation.SessionStatus) agentReply {
		reply := finished("", 0.1)
		reply.report.Status, reply.report.Error = status, "the reason"
		return reply
	}
	unread := finished("", 0.1)
	unread.report.Handoff.Problem = "it is no regular file"
	for name, tt := range map[string]struct {
		reply agentReply
		want  string
	}{
		"nothing":         {finished("", 0.1), "tier 1 left no handoff"},
		"empty":           {left(""), "tier 1 left an invalid handoff: EOF"},
		"not JSON":        {left("# Handoff"), "tier 1 left an invalid handoff: invalid character"},
		"unknown version": {left(strings.ReplaceAll(handoffFile, `version": 1`, `version": 2`)), "tier 1 left an invalid handoff: schema_version is 2"},
		"missing fields":  {left(`{"schema_version": 1}`), "services_affected is missing or empty; check_results is missing or empty"},
		"too large":       {left(strings.Repeat("x", escalation.MaxHandoffBytes+1)), "more than 262144 bytes"},
		"a link":          {unread, "tier 1 left no handoff that can be used: it is no regular file"},
		"timed out":       {ended(escalation.SessionTimedOut), "tier 1 left no handoff; it ended timed_out: the reason"},
		"lost":            {ended(escalation.SessionTranscriptLost), "tier 1 left no handoff; it ended transcript_lost: the reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{replies: []agentReply{tt.reply}}
			result, err := writeHandoff(t, agent, handoffInput(), nil)
			require.NoError(t, err, "another attempt would not do better")
			require.Contains(t, result.Problem, tt.want)
			require.Nil(t, result.Handoff)
			require.Equal(t, tt.reply.report.Status, result.Report.Status)
			require.InDelta(t, 0.1, result.Report.CostUSD, 1e-9)
			require.Len(t, agent.runs, 1, "it is asked once")
		})
	}
}

func TestWriteHandoffOfASessionThatRanIntoALimitAfterwards(t *testing.T) {
	t.Parallel()
	reply := left(handoffFile)
	reply.report.Status = escalation.SessionBudgetExhausted
	result, err := writeHandoff(t, &fakeAgent{replies: []agentReply{reply}}, handoffInput(), nil)
	require.NoError(t, err)
	require.NotNil(t, result.Handoff, "the file is there")
}

func TestWriteHandoffFromTier2NeedsWhatWasTried(t *testing.T) {
	t.Parallel()
	input := handoffInput()
	input.Tier, input.Next = 2, 3
	result, err := writeHandoff(t, &fakeAgent{replies: []agentReply{left(handoffFile)}}, input, nil)
	require.NoError(t, err)
	require.Contains(t, result.Problem, "remediation_attempted is missing")
}

func TestWriteHandoffIsTriedAgain(t *testing.T) {
	t.Parallel()
	failure := finished("", 0.2)
	failure.err = errors.New("the API is overloaded")
	_, err := writeHandoff(t, &fakeAgent{replies: []agentReply{failure}}, handoffInput(), &activities.TierProgress{
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}},
	})
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.False(t, application.NonRetryable())
	require.InDelta(t, 0.7, activities.SpentBefore(err).CostUSD, 1e-9)

	_, err = writeHandoff(t, &fakeAgent{unreachable: errors.New("the archive is away")}, handoffInput(), nil)
	require.ErrorContains(t, err, "the archive is away")

	agent := &fakeAgent{replies: []agentReply{left(handoffFile)}, conversations: map[string]bool{ownID: true}}
	input := handoffInput()
	input.BudgetUSD = 2
	result, err := writeHandoff(t, agent, input, &activities.TierProgress{Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}}})
	require.NoError(t, err)
	require.NotNil(t, result.Handoff)
	require.Equal(t, ownID, agent.runs[0].Resume, "it goes on with its own conversation, whose id is taken")
	require.InDelta(t, 0.6, result.Report.CostUSD, 1e-9)
	require.InDelta(t, 1.5, agent.runs[0].Policy.BudgetUSD, 1e-9, "what is left of its budget")

	agent = &fakeAgent{}
	result, err = writeHandoff(t, agent, input, &activities.TierProgress{Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 2}}})
	require.NoError(t, err)
	require.Empty(t, agent.runs)
	require.Equal(t, escalation.SessionBudgetExhausted, result.Report.Status)
	require.Equal(t, "tier 1 left no handoff; it ended budget_exhausted: what the session may spend is spent ($2.00)", result.Problem)
}
