package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// runCancelled runs a chain, cancels it after ten seconds, and returns the chain that the query returns.
func runCancelled(t *testing.T, w *world) escalation.Chain {
	t.Helper()
	return runCancelledWith(t, w, workflows.ChainInput{})
}

func runCancelledWith(t *testing.T, w *world, input workflows.ChainInput) escalation.Chain {
	t.Helper()
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 10*time.Second)
	_, err := w.run(t, input)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	encoded, err := w.env.QueryWorkflow(workflows.ChainQuery)
	require.NoError(t, err)
	var chain escalation.Chain
	require.NoError(t, encoded.Get(&chain))
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.NotEmpty(t, chain.Reason)
	require.False(t, chain.EndedAt.IsZero())
	events := slices.DeleteFunc(slices.Clone(chain.Events), func(event escalation.Event) bool { return event.Kind == escalation.EventSignal })
	require.Equal(t, escalation.EventChainEnded, events[len(events)-1].Kind, "only signals that are refused come later")
	requireDistinctKeys(t, chain.Events)
	return chain
}

func TestChainCancelledInATier(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ends(escalation.SessionStopped))
	w.tierTakes = time.Minute
	chain := runCancelled(t, w)
	require.Len(t, w.closed, 1, "the record must be closed")
	require.Equal(t, escalation.SessionStopped, w.closed[0].Report.Status)
	require.Equal(t, chain.Events, w.events)
}

func TestChainCancelledBeforeThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failPolicy = true
	chain := runCancelled(t, w)
	require.Empty(t, chain.Sessions)
	require.Empty(t, w.withdrawn, "there is nothing that could be recorded")
	require.Less(t, chain.EndedAt.Sub(chain.StartedAt), time.Minute)
}

// TestChainCancelledWhileItLooksForAConversation makes the database unavailable forever, and names a conversation to
// start from.
func TestChainCancelledWhileItLooksForAConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failFind = true
	chain := runCancelledWith(t, w, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: uuid.NewString()}})
	require.Empty(t, chain.Sessions)
	require.Equal(t, chain.Events, w.events)
	require.Less(t, chain.EndedAt.Sub(chain.StartedAt), time.Minute)
}

// TestChainCancelledWhileARecordIsOpened makes the database unavailable forever. The chain must still end.
func TestChainCancelledWhileARecordIsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failOpen = true
	w.signalAfter(5*time.Second, `{"to_tier":2}`) // nobody reads it before the end
	chain := runCancelled(t, w)
	requireRefusedSignal(t, chain, "the chain has ended")
	require.Empty(t, chain.Sessions)
	require.Empty(t, w.ran)
	require.Len(t, w.withdrawn, 1, "it is tried once")
	require.Equal(t, escalation.SessionStopped, w.withdrawn[0].Report.Status)
	require.NotEmpty(t, w.withdrawn[0].SessionID)
	require.Equal(t, chain.Events, w.events, "also those that the opening could not record")
	require.Less(t, chain.EndedAt.Sub(chain.StartedAt), time.Minute)
}

// TestChainCancelledBetweenTiers checks that a cancelled chain still records the end of Tier 1, which has cost money,
// and starts no other session.
func TestChainCancelledBetweenTiers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03))
	w.failClose = 8 // fails for a minute, at the intervals of the retry policy
	chain := runCancelled(t, w)
	require.Zero(t, w.failClose)
	require.Len(t, chain.Sessions, 1)
	require.InDelta(t, 0.03, chain.CostUSD, 1e-9)
	require.Len(t, w.closed, 1)
	require.Empty(t, w.opened[1:])
	require.Len(t, w.withdrawn, 1)
	require.Equal(t, chain.Events, w.events)
}

// TestChainCancelledWhileItsTierWaits cancels chains whose tier waits for its first attempt or for a retry. Temporal
// then drops the tier without a report, so the chain looks up the spending before.
func TestChainCancelledWhileItsTierWaits(t *testing.T) {
	t.Parallel()
	spent := escalation.Report{Cost: escalation.Cost{CostUSD: 3, CostEstimated: true}, Turns: 12, Attempts: 2, Host: "nas"}
	for name, tt := range map[string]struct {
		known   escalation.Report
		problem error
		want    escalation.Report
	}{
		"after two attempts":  {known: spent, want: spent},
		"before the first":    {},
		"and nobody can tell": {problem: errAway, want: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
		"of a lost attempt":   {known: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}, want: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
				return escalation.Report{}, temporal.NewCanceledError("ACTIVITY_ID_NOT_STARTED")
			})
			w.tierTakes = time.Minute
			w.spentSoFar = func() (escalation.Report, error) { return tt.known, tt.problem }
			chain := runCancelled(t, w)
			tt.want.Status, tt.want.Error = escalation.SessionStopped, "the chain was cancelled"
			require.Equal(t, tt.want, w.closed[0].Report)
			require.InDelta(t, tt.want.CostUSD, chain.CostUSD, 1e-9)
		})
	}
}

// TestChainCancelledWithAnUnreadSignal makes the database unavailable forever. A late signal does not keep the chain
// open.
func TestChainCancelledWithAnUnreadSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failOpen, w.failRecord = true, true
	w.signalAfter(5*time.Second, `{"to_tier":2}`)
	chain := runCancelled(t, w)
	requireRefusedSignal(t, chain, "the chain has ended")
	require.Less(t, w.env.Now().Sub(chain.StartedAt), time.Minute)
}
