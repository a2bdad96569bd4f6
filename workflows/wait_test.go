package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// coolingUntil returns facts that forbid restarts and redeployments until the given time.
func coolingUntil(until func() time.Time) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
	return func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		use := escalation.Use{Free: !now.Before(until()), FreeAt: until()}
		var facts escalation.AdmissionFacts
		for _, service := range request.Services {
			facts.Services = append(facts.Services, escalation.ServiceState{Service: service, Restarts: use, Redeployments: use})
		}
		return facts
	}
}

// patient lets chains wait for at most a day.
func patient(w *world) *world {
	w.policy.Cooldowns.MaxWait = escalation.Duration(24 * time.Hour)
	return w
}

// TestChainWaitsForTheCooldown waits for the 24-hour cooldown of a redeployment, on the test environment's clock. The
// chain then rechecks at low cost, and only then runs the more expensive model.
func TestChainWaitsForTheCooldown(t *testing.T) {
	t.Parallel()
	recheck := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		require.True(t, input.Recheck)
		require.Equal(t, escalation.TierObserve, input.Tier)
		require.Equal(t, []string{"jellyfin"}, input.Services)
		return concludes(escalation.VerdictEscalate, 0.02)(t, input)
	}
	w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03), recheck, concludes(escalation.VerdictResolved, 0.50)))
	start := w.env.Now()
	slot := start.Add(24 * time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	var waiting escalation.Chain
	w.env.RegisterDelayedCallback(func() { waiting = w.query(t) }, time.Hour)

	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, escalation.RuleCooldown, waiting.Wait.Rule)
	require.Equal(t, slot.UTC(), waiting.Wait.Until.UTC())
	require.Len(t, waiting.Sessions, 1, "nothing ran while it waited")
	require.Nil(t, result.Wait)

	require.Len(t, result.Sessions, 3)
	looked, repaired := result.Sessions[1], result.Sessions[2]
	require.Equal(t, escalation.PurposeRecheck, looked.Purpose)
	require.Equal(t, "haiku", looked.Model)
	require.Equal(t, result.Sessions[0].ID, looked.ParentID)
	require.False(t, looked.StartedAt.Before(slot))
	require.Equal(t, escalation.TierSafeRepair, repaired.Tier)
	require.Equal(t, looked.ID, repaired.ParentID)
	require.Equal(t, result.Events, w.events)
	require.Subset(t, kinds(result.Events), []escalation.EventKind{escalation.EventWaitStarted, escalation.EventWaitEnded})
	require.True(t, w.recorded[0].Release, "what waits repairs nothing, and holds nobody up")
}

func TestChainThatIsWellAfterTheWait(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictHealthy, 0.02)))
	slot := w.env.Now().Add(time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, "something was wrong, and has healed")
	require.Len(t, result.Sessions, 2, "the better model is not paid for")
}

// TestChainKeepsTheTierThatWaited checks that a chain runs the tier that waited even if the recheck does not recommend
// it.
func TestChainKeepsTheTierThatWaited(t *testing.T) {
	t.Parallel()
	asks := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.Verdict.RecommendedTier = escalation.TierFullRepair
		return report, err
	}
	w := patient(newWorld(t, asks, concludes(escalation.VerdictEscalate, 0.02), concludes(escalation.VerdictResolved, 0.5)))
	slot := w.env.Now().Add(time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.TierFullRepair, result.Sessions[2].Tier)
}

func TestChainThatCannotWaitAsksForAPerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts  func(w *world) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts
		change func(*escalation.Policy)
		rule   escalation.Rule
	}{
		"the slot is too far away": {
			facts: func(w *world) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
				slot := w.env.Now().Add(25 * time.Hour)
				return coolingUntil(func() time.Time { return slot })
			},
			rule: escalation.RuleCooldown,
		},
		"too many chains have escalated": {
			facts: func(*world) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
				return func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
					return escalation.AdmissionFacts{Escalations: 3}
				}
			},
			change: func(p *escalation.Policy) {
				p.EscalationLimit = escalation.Limit{Max: 3, Window: escalation.Duration(time.Hour)}
			},
			rule: escalation.RuleEscalationLimit,
		},
		"the chain's budget is spent": {
			change: func(p *escalation.Policy) { p.ChainBudgetUSD = 0.03 },
			rule:   escalation.RuleChainBudget,
		},
		"the day's budget is spent": {
			facts: func(*world) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
				return func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
					return escalation.AdmissionFacts{DaySpentUSD: 9.5 + 20*request.ChainSpentUSD}
				}
			},
			change: func(p *escalation.Policy) { p.DayBudgetUSD = 10 },
			rule:   escalation.RuleDayBudget,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03)))
			if tt.facts != nil {
				w.facts = tt.facts(w)
			}
			if tt.change != nil {
				tt.change(&w.policy)
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
			require.Len(t, result.Sessions, 1)
			require.Len(t, w.ran, 1)
			require.Equal(t, result.Events, w.events, "what explains the end is recorded")
			decided := result.Events[len(result.Events)-2]
			require.Equal(t, escalation.EventDecision, decided.Kind)
			require.Contains(t, decided.Message, "end ("+escalation.InWords(tt.rule)+"): ")
		})
	}
}

// TestChainThatMayNotEvenBegin refuses the first session. The chain ends without any session.
func TestChainThatMayNotEvenBegin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy.DayBudgetUSD = 10
	w.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
		return escalation.AdmissionFacts{DaySpentUSD: 10}
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	require.Empty(t, result.Sessions)
	require.Contains(t, result.Reason, "$10.00 is spent")
	require.Equal(t, result.Events, w.events)
}

// TestChainWaitsForAnotherChain lets another chain lock the service. The chain tries again until the other chain has
// ended.
func TestChainWaitsForAnotherChain(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictHealthy, 0.02)))
	released := w.env.Now().Add(40 * time.Minute)
	w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		if len(request.Services) == 0 || !now.Before(released) {
			return escalation.AdmissionFacts{}
		}
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "other"}}}
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	looked := result.Sessions[1].StartedAt.Sub(released)
	require.GreaterOrEqual(t, looked, time.Duration(0))
	require.LessOrEqual(t, looked, 15*time.Minute)
	require.Less(t, len(w.requests), 20, "asked less and less often")
}

func TestChainCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03)))
	slot := w.env.Now().Add(20 * time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := w.query(t)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Nil(t, chain.Wait)
	require.Equal(t, chain.Events, w.events)
}

// TestChainCancelledWhileTheDatabaseIsAway cancels chains whose wait, or whose decision on a refused step, is being
// recorded. They end at once: no session of theirs runs, and the sweep settles what is not recorded.
func TestChainCancelledWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for name, maxWait := range map[string]time.Duration{"a wait": 24 * time.Hour, "a decision": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03))
			w.policy.Cooldowns.MaxWait = escalation.Duration(maxWait)
			start := w.env.Now()
			w.facts = coolingUntil(func() time.Time { return start.Add(20 * time.Hour) })
			w.failRecord = true
			w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 2*time.Second)
			_, err := w.run(t, workflows.ChainInput{})
			if maxWait > 0 {
				require.True(t, temporal.IsCanceledError(err), "got %v", err)
			} else {
				require.NoError(t, err, "the chain had already decided to end")
			}
			require.Nil(t, w.query(t).Wait)
			require.Less(t, w.env.Now().Sub(start), 5*time.Second, "on the environment's clock")
		})
	}
}

// TestChainStartedAtATierWaitsWithoutLookingAgain starts a chain at Tier 2, which must wait. There is no recheck after
// the wait, because no session ran before it.
func TestChainStartedAtATierWaitsWithoutLookingAgain(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictResolved, 0.50)))
	slot := w.env.Now().Add(time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	result, err := w.run(t, workflows.ChainInput{StartTier: 2, Services: []string{"jellyfin"}})
	require.NoError(t, err)
	require.Len(t, result.Sessions, 1)
	require.Equal(t, escalation.TierSafeRepair, result.Sessions[0].Tier)
	require.False(t, result.Sessions[0].StartedAt.Before(slot))
}

func TestChainForcedAtTheStart(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictResolved, 0.50)))
	start := w.env.Now()
	w.facts = coolingUntil(func() time.Time { return start.Add(time.Hour) })
	result, err := w.run(t, workflows.ChainInput{StartTier: 2, Services: []string{"jellyfin"}, Force: true})
	require.NoError(t, err)
	require.Less(t, result.Sessions[0].StartedAt.Sub(start), time.Minute)
}

// TestLookWaitsForReservations runs a look while running sessions have reserved the rest of the day's budget.
func TestLookWaitsForReservations(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictHealthy, 0.01)))
	w.policy.DayBudgetUSD = 10
	start := w.env.Now()
	w.facts = func(_ escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		if now.Sub(start) < 10*time.Minute {
			return escalation.AdmissionFacts{DaySpentUSD: 1, DayReservedUSD: 9}
		}
		return escalation.AdmissionFacts{DaySpentUSD: 2}
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome, result.Reason)
	require.Len(t, result.Sessions, 1)
}

// TestScheduledLookEndsQuietlyIfTheDayIsSpent runs cycles of a schedule, and a chain that a person starts, on a day
// whose budget is spent.
func TestScheduledLookEndsQuietlyIfTheDayIsSpent(t *testing.T) {
	t.Parallel()
	for trigger, want := range map[escalation.Trigger]escalation.Outcome{
		escalation.TriggerScheduled: escalation.OutcomeSuppressed, escalation.TriggerManual: escalation.OutcomeNeedsHuman,
	} {
		t.Run(string(trigger), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.policy.DayBudgetUSD = 10
			w.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
				return escalation.AdmissionFacts{DaySpentUSD: 10}
			}
			people := w.listen()
			result, err := w.run(t, workflows.ChainInput{Trigger: trigger})
			require.NoError(t, err)
			require.Equal(t, want, result.Outcome, result.Reason)
			require.Len(t, people.got, 1)
			require.Equal(t, escalation.NotifyBudgetSpent, people.got[0].Kind)
			today := "budget_spent/" + result.StartedAt.UTC().Format(time.DateOnly)
			require.Equal(t, trigger == escalation.TriggerScheduled, people.got[0].Key == today, "one key for all chains of the day")
		})
	}
}

func (w *world) query(t *testing.T) escalation.Chain {
	t.Helper()
	encoded, err := w.env.QueryWorkflow(workflows.ChainQuery)
	require.NoError(t, err)
	var chain escalation.Chain
	require.NoError(t, encoded.Get(&chain))
	return chain
}
