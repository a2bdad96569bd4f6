package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// overlapping runs two chains at the same time, and returns their results.
func overlapping(ctx workflow.Context) ([]workflows.ChainResult, error) {
	var running []workflow.ChildWorkflowFuture
	for i := range 2 {
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: fmt.Sprintf("look-%d", i+1)})
		input := workflows.ChainInput{Trigger: escalation.TriggerScheduled}
		running = append(running, workflow.ExecuteChildWorkflow(child, workflows.ChainWorkflow, input))
	}
	results := make([]workflows.ChainResult, len(running))
	for i, chain := range running {
		if err := chain.Get(ctx, &results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// TestOverlappingLooks runs two looks that find the same fault before either of their chains begins to repair it. Only
// one of the chains repairs it and opens a gate. The other chain waits, looks again, and ends as known. This holds if
// one chain waits for the other's repair. It also holds if both wait for a third chain and look again at the same time.
func TestOverlappingLooks(t *testing.T) {
	t.Parallel()
	for name, third := range map[string]bool{"one waits for the other": false, "both wait for a third chain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, records := newMonth(t, false)
			m.env.RegisterWorkflow(overlapping)
			m.faults = []*monthFault{{service: "web", severity: escalation.SeverityCritical}}
			m.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
			if third {
				occupy(t, m, records)
			}
			compared := 0
			m.env.OnActivity("KnownIncidents", mock.Anything, mock.Anything).Return(
				func(ctx context.Context, input escalation.KnownIncidents) ([]escalation.Incident, error) {
					m.mu.Lock()
					defer m.mu.Unlock()
					compared++
					if compared <= 2 { // both compare before the other one has recorded anything
						return nil, nil
					}
					return records.KnownIncidents(ctx, input)
				})
			m.env.ExecuteWorkflow(overlapping)
			require.NoError(t, m.env.GetWorkflowError())

			var chains []workflows.ChainResult
			require.NoError(t, m.env.GetWorkflowResult(&chains))
			gates, known := 0, 0
			for _, chain := range chains {
				gates += len(chain.Gates)
				if chain.Outcome == escalation.OutcomeKnown {
					known++
					require.Equal(t, escalation.PurposeRecheck, chain.Last().Purpose)
				}
			}
			require.Equal(t, 1, gates)
			require.Equal(t, 1, known)
			require.Len(t, m.climbs["web"], 1)
		})
	}
}

// occupy lets a third chain repair web for half an hour.
func occupy(t *testing.T, m *month, records *store.Store) {
	t.Helper()
	_, err := records.OpenSession(t.Context(), escalation.Session{
		ChainID: "third", SessionID: "third/repair", Tier: escalation.TierSafeRepair, StartedAt: m.begin,
	}, escalation.AdmissionRequest{Services: []string{"web"}}, m.policy)
	require.NoError(t, err)
	m.env.RegisterDelayedCallback(func() {
		require.NoError(t, records.ReleaseServices(t.Context(), "third"))
	}, 30*time.Minute)
}
