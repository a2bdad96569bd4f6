package operations

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestOverviewWithoutTemporal checks that the records are shown while Temporal cannot be reached.
func TestOverviewWithoutTemporal(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1", "CLAUDEOPS_DAY_BUDGET_USD=2")
	s.close(s.open("look", chaintest.Noon.Add(-time.Hour), nil), fault("web"))
	s.open("works", chaintest.Noon.Add(-time.Minute), func(session *escalation.Session) { session.Scope = []string{"db"} })
	until := chaintest.Noon.Add(time.Hour)
	require.NoError(t, s.records.RecordProgress(t.Context(), escalation.ChainRun{ChainID: "chain-look"}, escalation.ChainProgress{
		Status: escalation.ChainWaiting, Rule: escalation.RuleCooldown, Reason: "web was restarted twice", Until: until, At: chaintest.Noon,
	}))
	now := s.operations.Overview.Now(t.Context())
	for _, problem := range []string{now.Gates.Problem, now.Work.Problem, now.Waits.Problem, now.Cycles.Problem} {
		require.Contains(t, problem, "connect to Temporal at 127.0.0.1:1")
	}
	require.Empty(t, now.Incidents.Problem+now.Day.Problem)
	require.Contains(t, now.Work.Problem, "the rest is from the records")
	require.Len(t, now.Incidents.Incidents, 1)
	require.Len(t, now.Work.Chains, 1)
	require.Equal(t, "tier 1 runs", now.Work.Chains[0].Doing)
	require.Equal(t, []WaitingChain{{
		ChainID: "chain-look", Services: []string{"web"}, Cost: escalation.Cost{CostUSD: 0.1}, Kind: WaitCooldown, Rule: escalation.RuleCooldown,
		Reason: "web was restarted twice", Since: chaintest.Noon, Until: until,
	}}, now.Waits.Chains)
	require.Equal(t, [4]float64{0.1, 0.5, 2, 1.4}, [4]float64{now.Day.SpentUSD, now.Day.ReservedUSD, now.Day.BudgetUSD, now.Day.LeftUSD})
}

// TestWaits checks because of what chains wait.
func TestWaits(t *testing.T) {
	t.Parallel()
	locks := []store.ServiceLock{
		{Service: "", ChainID: "all"}, {Service: "jellyfin", ChainID: "own"}, {Service: "Jellyfin", ChainID: "other"}, {Service: "db", ChainID: "db"},
	}
	pausing, working := chaintest.Pausing(), chaintest.Working()
	busy := chaintest.Pausing()
	busy.Wait.Rule = escalation.RuleServiceBusy
	limit := chaintest.Pausing()
	limit.Wait.Rule = escalation.RuleEscalationLimit
	gate := chaintest.Waiting(chaintest.OpenedGate())
	place := chaintest.ToolsInFlight()
	place.Now.Waiting = "for the directory"
	for name, tt := range map[string]struct {
		live liveChain
		want WaitKind
	}{
		"ended":             {liveChain{ended: true, chain: &pausing}, ""},
		"works":             {liveChain{chain: &working, attempt: &Attempt{State: AttemptStarted}}, ""},
		"between two steps": {liveChain{chain: &escalation.Chain{}}, ""},
		"gate":              {liveChain{chain: &gate}, WaitGate},
		"cooldown":          {liveChain{chain: &pausing}, WaitCooldown},
		"service":           {liveChain{chain: &busy}, WaitService},
		"another rule":      {liveChain{chain: &limit}, WaitOther},
		"retry":             {liveChain{chain: &working, attempt: &Attempt{State: AttemptScheduled, Number: 2}}, WaitRetry},
		"queued":            {liveChain{chain: &working, attempt: &Attempt{State: AttemptQueued, Number: 1}}, WaitWorker},
		"paused":            {liveChain{chain: &working, attempt: &Attempt{State: AttemptPaused, Number: 1}}, WaitPaused},
		"place":             {liveChain{chain: &working, attempt: &Attempt{State: AttemptStarted}, progress: place}, WaitPlace},
		"no worker":         {liveChain{queue: "claudeops"}, WaitWorker},
		"no worker, works":  {liveChain{attempt: &Attempt{State: AttemptStarted}}, ""},
	} {
		tt.live.row.ID = "own"
		wait := tt.live.wait(locks, chaintest.Noon)
		if tt.want == "" {
			require.Nil(t, wait, name)
			continue
		}
		require.Equal(t, tt.want, wait.Kind, name)
		require.NotEmpty(t, wait.Reason, name)
	}
	live := liveChain{row: Row{ID: "own"}, chain: &busy}
	require.Equal(t, []ServiceHolder{{ChainID: "all"}, {Service: "Jellyfin", ChainID: "other"}}, live.wait(locks, chaintest.Noon).Holders)
	require.Nil(t, (&liveChain{ended: true}).working())
}

func TestWaitsAreSorted(t *testing.T) {
	t.Parallel()
	waits := []WaitingChain{
		{ChainID: "never", Kind: WaitWorker},
		{ChainID: "later", Kind: WaitCooldown, Until: chaintest.Noon.Add(time.Hour)},
		{ChainID: "gate", Kind: WaitGate, Until: chaintest.Noon.Add(9 * time.Hour)},
		{ChainID: "soon", Kind: WaitRetry, Until: chaintest.Noon},
	}
	slices.SortFunc(waits, byWait)
	var ids []string
	for _, wait := range waits {
		ids = append(ids, wait.ChainID)
	}
	require.Equal(t, []string{"gate", "soon", "later", "never"}, ids)
}
