package activities_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// pendingAgents is a PendingReader with fixed results.
type pendingAgents struct {
	agents []activities.PendingAgent
	err    error
}

var _ activities.PendingReader = pendingAgents{}

func (p pendingAgents) PendingAgents(context.Context, string, string) ([]activities.PendingAgent, error) {
	return p.agents, p.err
}

func TestSpentSoFar(t *testing.T) {
	t.Parallel()
	heard := activities.TierProgress{
		SessionID: ownID, Host: "nas", Attempt: 2,
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 1}, Turns: 5}, Now: activities.AgentProgress{CostUSD: 0.5, Turns: 2},
	}
	other := heard
	other.SessionID = parentID
	unknown := escalation.Report{Cost: escalation.Cost{CostEstimated: true}}
	for name, tt := range map[string]struct {
		agents []activities.PendingAgent
		want   escalation.Report
	}{
		"heard of": {
			[]activities.PendingAgent{{Begun: true, Last: heard}},
			escalation.Report{Cost: escalation.Cost{CostUSD: 1.5, CostEstimated: true}, Turns: 7, Attempts: 2, Host: "nas"},
		},
		"never taken":              {[]activities.PendingAgent{{}}, escalation.Report{}},
		"taken, and not heard of":  {[]activities.PendingAgent{{Begun: true}}, unknown},
		"only of another session":  {[]activities.PendingAgent{{Begun: true, Last: other}}, unknown},
		"it has ended in between":  {nil, escalation.Report{}},
		"of two, the one that was": {[]activities.PendingAgent{{Begun: true, Last: other}, {Last: heard}}, heard.Total()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := spentSoFar(pendingAgents{agents: tt.agents})
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, reflect.DeepEqual(tt.want, unknown), (&escalation.Session{Report: got}).CostUnknown())
		})
	}
	_, err := spentSoFar(pendingAgents{err: errors.New("Temporal is away")})
	require.ErrorContains(t, err, "Temporal is away")
}

func spentSoFar(reader activities.PendingReader) (report escalation.Report, err error) {
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	attempts := &activities.Attempts{Reader: reader}
	env.RegisterActivity(attempts)
	encoded, err := env.ExecuteActivity(attempts.SpentSoFar, activities.SpentSoFarInput{SessionID: ownID})
	if err != nil {
		return report, err
	}
	err = encoded.Get(&report)
	return report, err
}

// TestAgentActivitiesAreThose checks that each name is the name of a method of Tiers. Temporal takes the activity types
// from these methods.
func TestAgentActivitiesAreThose(t *testing.T) {
	t.Parallel()
	tiers := reflect.TypeFor[*activities.Tiers]()
	for _, name := range activities.AgentActivities() {
		_, known := tiers.MethodByName(name)
		require.True(t, known, name)
	}
}
