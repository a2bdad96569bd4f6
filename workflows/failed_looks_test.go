package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// failedLook returns an incident of a look that failed, with which another chain waits.
func failedLook() escalation.Incident {
	incident := knownIncident(escalation.ChainWaiting)
	incident.Services, incident.Kind, incident.Summary = nil, escalation.KindLookFailed, "tier 1 ended without a verdict"
	return incident
}

// TestFailedLookIsKnown checks that a look without a verdict asks nobody while another chain waits because of such a
// look.
func TestFailedLookIsKnown(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{
		escalation.SessionFailed, escalation.SessionTimedOut, escalation.SessionBudgetExhausted,
	} {
		w := newWorld(t, ends(status))
		w.policy.Notify, w.policy.Gate.Timeout = true, escalation.Duration(time.Hour)
		w.incidents = []escalation.Incident{failedLook()}
		chain, err := w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled, Services: []string{"jellyfin"}})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
		require.Equal(t, fmt.Sprintf("tier 1 ended without a verdict (%s): what went wrong; incident-7 (all services: tier 1 ended "+
			"without a verdict) is with chain other, which waits: tier 3 asks for a person", escalation.InWords(status)), chain.Reason)
		require.Empty(t, w.compared[0].Services)
		require.Equal(t, escalation.KindLookFailed, w.compared[0].Kind)
		require.Equal(t, []string{"incident-7"}, w.closed[0].Progress.Leaves)
		w.env.AssertNotCalled(t, "Notify", mock.Anything, mock.Anything)
	}
}

// TestStoppedLookComparesNothing checks that a look that an operator cancels compares no incidents.
func TestStoppedLookComparesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ends(escalation.SessionStopped))
	w.incidents = []escalation.Incident{failedLook()}
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Empty(t, w.compared)
}

// atGateOfFailedLook returns a world whose chain waits at a gate, because Tier 1 failed to look. The tiers follow.
func atGateOfFailedLook(t *testing.T, tiers ...tierScript) *world {
	t.Helper()
	w := atGateWith(t, escalation.HealedClose)
	w.tiers = append([]tierScript{ends(escalation.SessionFailed)}, tiers...)
	w.policy.Notify = false
	w.brief.Incidents[0].Services, w.brief.Incidents[0].Kind = nil, escalation.KindLookFailed
	return w
}

// TestLookAnew checks that a chain whose look failed looks anew after a look of another chain had a result. The new
// look is no recheck: there is nothing to recheck, and it may find what the first look would have found.
func TestLookAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tiers []tierScript
		known []escalation.Incident
		want  escalation.Outcome
	}{
		"all is well": {[]tierScript{concludes(escalation.VerdictHealthy, 0.01)}, nil, escalation.OutcomeResolved},
		"it finds a fault": {
			[]tierScript{concludes(escalation.VerdictEscalate, 0.01), concludes(escalation.VerdictResolved, 0.4)}, nil, escalation.OutcomeResolved,
		},
		"it finds a known fault": {
			[]tierScript{concludes(escalation.VerdictEscalate, 0.01)},
			[]escalation.Incident{{ID: "incident-8", Services: []string{"jellyfin"}, Chains: knownIncident(escalation.ChainRepairing).Chains}},
			escalation.OutcomeKnown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := atGateOfFailedLook(t, tt.tiers...)
			w.incidents = tt.known
			w.news(10*time.Minute, escalation.IncidentGone)
			chain, err := w.run(t, workflows.ChainInput{Prompt: "look at jellyfin"})
			require.NoError(t, err)
			require.Equal(t, tt.want, chain.Outcome, chain.Reason)
			require.Len(t, chain.Gates, 1)
			require.Equal(t, escalation.GateRecheck, chain.Gates[0].Answer.Action)
			require.Equal(t, escalation.PurposeTier, chain.Sessions[1].Purpose)
			require.Equal(t, escalation.ContinuityFresh, chain.Sessions[1].Continuity)
			require.False(t, w.ran[1].Recheck)
			require.Equal(t, "look at jellyfin", w.ran[1].Request)
		})
	}
}

// TestLookAnewFails checks that a chain whose look fails whenever other looks succeed looks anew once for each of them,
// and stays at its gate in the end.
func TestLookAnewFails(t *testing.T) {
	t.Parallel()
	for others, gates := range map[int]int{1: 2, 2: 3, 5: 3} {
		w := atGateOfFailedLook(t, ends(escalation.SessionBudgetExhausted), ends(escalation.SessionTimedOut))
		for i := range others {
			w.news(time.Duration(10*(i+1))*time.Minute, escalation.IncidentGone)
		}
		chain, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, chain.Outcome, "nobody answered")
		require.Len(t, chain.Sessions, gates)
		require.Len(t, chain.Gates, gates)
		if others == 5 {
			require.Equal(t, escalation.GateTimedOut, chain.Gates[2].Source)
			require.Equal(t, escalation.IncidentGone, chain.Gates[2].News[0].Status, "people see that other looks succeed")
		}
	}
}
