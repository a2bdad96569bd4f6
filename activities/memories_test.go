package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// fakeMemories returns one text, and stores for what it was asked.
type fakeMemories struct {
	asked []memory.Recall
	err   error
}

var _ activities.Memories = (*fakeMemories)(nil)

func (f *fakeMemories) RecallMemories(_ context.Context, recall memory.Recall) (memory.Brief, error) {
	f.asked = append(f.asked, recall)
	if f.err != nil {
		return memory.Brief{}, f.err
	}
	return memory.Brief{Markdown: "## What was learned before\n\n- `the mount is late`", IDs: []string{"memory-1"}}, nil
}

// TestRunTierRecallsMemories checks which memories a prompt gets, and that a tier works without them.
func TestRunTierRecallsMemories(t *testing.T) {
	t.Parallel()
	const text = "\n\n## What was learned before\n\n- `the mount is late`\n\n"
	look := tierInput(1, escalation.ContinuityFresh)
	look.FirstRunID, look.Services, look.Affected = "run-1", []string{"the shop"}, []string{"db"}
	look.Incidents = []escalation.Incident{{ID: "incident-1", Kind: "down", Summary: "it answers 502", Services: []string{"mail"}}}
	resumed := tierInput(2, escalation.ContinuityResume)
	resumed.ParentTier, resumed.ParentSessionID, resumed.Services = 1, parentID, nil
	continued := resumed
	continued.Continues = true
	for name, test := range map[string]struct {
		input activities.RunTierInput
		err   error
		want  []memory.Recall
		shown bool
	}{
		"a look": {look, nil, []memory.Recall{{
			ChainID: "chain-1", FirstRunID: "run-1", SessionID: ownID, Services: []string{"db", "web"},
			Text: " why is it slow  down it answers 502",
		}}, true},
		"a resumed conversation": {resumed, nil, []memory.Recall{{
			ChainID: "chain-1", SessionID: ownID, Text: " why is it slow ", ParentSessionID: parentID,
		}}, true},
		"a continued session": {continued, nil, nil, false},
		"records that cannot be read": {
			resumed, errors.New("the database is away"),
			[]memory.Recall{{ChainID: "chain-1", SessionID: ownID, Text: " why is it slow ", ParentSessionID: parentID}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, memories := &fakeAgent{replies: []agentReply{finished(healthy, 0.1)}}, &fakeMemories{err: test.err}
			tiers := newTiers(t, agent)
			tiers.Catalog, tiers.Memories = listed(t), memories
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivity(tiers)
			_, err := env.ExecuteActivity(tiers.RunTier, test.input)
			require.NoError(t, err)
			for i := range memories.asked {
				require.WithinDuration(t, time.Now(), memories.asked[i].At, time.Hour)
				memories.asked[i].At = time.Time{}
			}
			require.Equal(t, test.want, memories.asked)
			if test.shown {
				require.Contains(t, agent.runs[0].Prompt, text)
			} else {
				require.NotContains(t, agent.runs[0].Prompt, "learned before")
			}
		})
	}
}
