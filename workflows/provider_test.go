package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestOfEachModelsLimitPeopleAreTold checks that the limits of two models are told on the same day.
func TestOfEachModelsLimitPeopleAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	people := w.listen()
	cut := func(model string) tierScript {
		return func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			report := w.limited(input.SessionID)
			report.LimitedModel, report.LimitedUntil = model, w.env.Now().Add(2*time.Minute)
			return report, nil
		}
	}
	w.tiers = []tierScript{cut(""), cut("haiku"), concludes(escalation.VerdictHealthy, 0.1)}
	_, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, told := range people.got {
		keys[told.Key] = true
	}
	require.Len(t, keys, 2)
}

// TestANeedForAPersonIsToldAfterALimit checks that a chain which was told of a limit still tells that it needs a
// person, for another reason.
func TestANeedForAPersonIsToldAfterALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	people := w.listen()
	w.tiers = []tierScript{
		concludes(escalation.VerdictEscalate, 0.1),
		func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			return w.limited(input.SessionID), nil
		},
		concludes(escalation.VerdictEscalate, 0.1), concludes(escalation.VerdictNeedsHuman, 0.1),
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	var told []escalation.NotificationKind
	for _, notification := range people.got {
		told = append(told, notification.Kind)
	}
	require.Equal(t, []escalation.NotificationKind{escalation.NotifyLimited, escalation.NotifyNeedsHuman}, told)
}

// TestATierGoesOnAfterTheLimit checks that a tier that a limit has cut off in its work continues its conversation after
// the limit, and knows the calls without a result. If that conversation is refused, the new session is told of them.
func TestATierGoesOnAfterTheLimit(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"continued": false, "refused": true, "limited again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
			again := name == "limited again"
			var ids []string
			w.inFlight = []activities.ToolCall{{Number: 3, Name: "Bash", Input: "redeploy web", State: activities.ToolRunning}}
			w.tiers = []tierScript{concludes(escalation.VerdictEscalate, 0.1), func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
				report := w.limited(input.SessionID)
				report.ContextTokens, report.Turns = 20_000, 4
				ids = append(ids, input.SessionID)
				return report, nil
			}}
			if refused {
				w.tiers = append(w.tiers, func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
					w.inFlight = nil
					return refusedAs(unusable())(t, input)
				})
			}
			if again { // before it has begun
				w.tiers = append(w.tiers, func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
					w.inFlight = nil
					report := w.limited(input.SessionID)
					report.ReportedSessionID = ""
					return report, nil
				})
			}
			w.tiers = append(w.tiers, concludes(escalation.VerdictResolved, 0.1))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.True(t, w.requests[2].Correction, "its own repairs have begun the cooldown")
			goesOn := w.ran[2]
			if again {
				require.Equal(t, goesOn.InFlight, w.ran[3].InFlight)
				require.Equal(t, goesOn.ParentSessionID, w.ran[3].ParentSessionID)
			}
			require.True(t, goesOn.Continues)
			require.Equal(t, ids[0], goesOn.ParentSessionID)
			require.Equal(t, "redeploy web", goesOn.InFlight[0].Input)
			require.Equal(t, escalation.ReasonInterrupted, result.Sessions[2].ContinuityReason)
			require.Equal(t, escalation.PurposeContinuation, result.Sessions[2].Purpose)
			if refused {
				require.Equal(t, escalation.ReasonResumeFailed, result.Sessions[3].ContinuityReason)
				require.Contains(t, w.ran[3].Handoff.Remediation, ids[0])
				require.Contains(t, w.ran[3].Handoff.Remediation, "redeploy web")
				require.True(t, w.requests[len(w.requests)-1].Correction, "nor is its new conversation delayed")
			}
		})
	}
}

// limitedForHours returns facts in which the limit of the account is used up for ten hours. Nobody knows that the
// worker has another key.
func limitedForHours(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
	if request.Purpose != escalation.PurposeReview && request.Purpose != escalation.PurposeAuthor && request.Tier == escalation.TierObserve {
		return escalation.AdmissionFacts{}
	}
	return escalation.AdmissionFacts{LimitedUntil: now.Add(10 * time.Hour)}
}

// TestAPersonPassesALimit checks that a person who has given the worker another key can have the work go on at the
// gate, also where nobody may force it. The limit of escalations is not passed with it.
func TestAPersonPassesALimit(t *testing.T) {
	t.Parallel()
	answers := func(w *world) {
		w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
		w.policy.Gate.Approvers = []string{"anna"}
		w.facts = limitedForHours
		w.answerAfter(time.Hour, said(escalation.GateFix, ""))
	}
	t.Run("of a tier", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.1), concludes(escalation.VerdictResolved, 0.1))
		answers(w)
		gate := w.gateAfter(t, time.Minute)
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.RuleAccountLimit, gate.Rule)
		require.Contains(t, gate.Next(escalation.GateClosing{Action: escalation.GateFix, Actor: "anna"}), "before the end of the limit")
		require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
		require.Len(t, result.Gates, 1)
		last := w.requests[len(w.requests)-1]
		require.Equal(t, []escalation.Rule{escalation.RuleAccountLimit, escalation.RuleAccountLimit}, last.Passes)
		require.False(t, last.Force, "no cooldown is passed")
	})
	t.Run("of a reviewer", func(t *testing.T) {
		t.Parallel()
		w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.1))
		answers(w)
		w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
			if request.Purpose != escalation.PurposeReview {
				return escalation.AdmissionFacts{}
			}
			return limitedForHours(request, now)
		}
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
		require.Len(t, result.Gates, 1)
	})
	t.Run("of an author", func(t *testing.T) {
		t.Parallel()
		w := newPlanWorld(t)
		answers(w.world)
		w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
			if request.Purpose != escalation.PurposeAuthor || len(w.turns) > 0 { // it has answered: the limit is lifted
				return escalation.AdmissionFacts{}
			}
			return limitedForHours(request, now)
		}
		result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{Prompt: "quickly", Actor: "anna"})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
		require.Len(t, result.Gates, 1)
	})
}

// TestAPersonCorrectsTheModel checks that a session after a wrong model, which a person has corrected, has the new one,
// as the gate says.
func TestAPersonCorrectsTheModel(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.1), refusedAs(escalation.Report{Ending: escalation.EndingRequest}),
		concludes(escalation.VerdictResolved, 0.1))
	w.env.RegisterDelayedCallback(func() {
		w.policy.Tiers = append([]escalation.TierPolicy{}, w.policy.Tiers...)
		w.policy.Tiers[1].Model = "sonnet-9"
	}, 90*time.Minute)
	answered := w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Contains(t, answered.resolution.Next, "under the CLAUDEOPS_TIER2_MODEL that is set then")
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, []string{"sonnet", "sonnet-9"}, []string{result.Sessions[1].Model, result.Sessions[2].Model})
	require.NotContains(t, result.Gates[0].Next(escalation.GateClosing{ToTier: escalation.TierFullRepair}), "TIER2", "it is not about tier 2")
	require.Equal(t, "sonnet-9", w.ran[2].Policy.For(escalation.TierSafeRepair).Model)
}

// TestChosenModelsStay checks that the models of an input outlast a gate after which limits are renewed.
func TestChosenModelsStay(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.1), ends(escalation.SessionBudgetExhausted),
		concludes(escalation.VerdictResolved, 0.1))
	w.policy.ChainBudgetUSD = 0.15
	w.env.RegisterDelayedCallback(func() { w.policy.ChainBudgetUSD = 5 }, 90*time.Minute)
	w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(t, workflows.ChainInput{Models: map[escalation.Tier]string{2: "claude-special"}})
	require.NoError(t, err)
	require.Len(t, result.Gates, 1)
	require.NotEmpty(t, result.Gates[0].Budget)
	require.Equal(t, "claude-special", result.Sessions[2].Model)
}

// TestAReviewersLimitKeepsNobodyOut checks that a chain which waits for a person because its reviewer met a passing
// limit holds the fault until that limit ends, and not after its own end.
func TestAReviewersLimitKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]escalation.Ending{
		"limited": escalation.EndingLimited, "the provider away": escalation.EndingProvider, "no gates": escalation.EndingProvider,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newLimitWorld(t, 99)
			if name == "no gates" {
				w.policy.Gate.Timeout = 0
			}
			limited := w.review
			var until time.Time
			w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
				result, err := limited(input)
				result.Report.Ending, until = ending, w.env.Now()
				if ending == escalation.EndingLimited {
					until = result.Report.LimitedUntil
				}
				return result, err
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			var last escalation.ChainProgress
			for _, closed := range w.closed {
				if closed.Progress != nil {
					last = *closed.Progress
				}
			}
			if name == "no gates" {
				require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
				incident := escalation.Incident{Chains: []escalation.IncidentChain{{ChainID: result.ID, ChainProgress: last}}}
				_, known := incident.Handler(escalation.ChainRun{ChainID: "another"}, last.At.Add(time.Minute))
				require.False(t, known, "the next look repairs")
				return
			}
			require.Equal(t, escalation.OutcomeAborted, result.Outcome, "nobody has answered")
			require.NotEqual(t, escalation.RuleGateExpired, result.Rule, "the next look repairs")
			require.Equal(t, escalation.ChainWaiting, last.Status)
			require.WithinDuration(t, until, last.Until, time.Minute)
		})
	}
}

// TestTheProviderAwayKeepsNobodyOut checks what the records say when tier 2 got no answer of the model's provider: a
// gate holds the fault for a short time only, or some hours if the account was refused, because each attempt costs a
// look. A chain without a gate does not hold it.
func TestTheProviderAwayKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	for ending, holds := range map[escalation.Ending]time.Duration{
		escalation.EndingProvider: time.Hour, escalation.EndingAccount: 6 * time.Hour,
	} {
		for name, gate := range map[string]time.Duration{"gate": 72 * time.Hour, "no gate": 0} {
			t.Run(string(ending)+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.1), refusedAs(escalation.Report{Ending: ending}))
				w.policy.Gate.Timeout = escalation.Duration(gate)
				result, err := w.run(t, workflows.ChainInput{})
				require.NoError(t, err)
				require.Equal(t, escalation.RuleProviderAway, result.Rule)
				var last *escalation.ChainProgress
				for _, closed := range w.closed {
					if closed.SessionID == result.Sessions[1].SessionID {
						last = closed.Progress
					}
				}
				require.NotNil(t, last)
				incident := escalation.Incident{Chains: []escalation.IncidentChain{{ChainID: result.ID, ChainProgress: *last}}}
				_, known := incident.Handler(escalation.ChainRun{ChainID: "another"}, last.At.Add(holds+time.Minute))
				require.False(t, known, "the next look repairs")
				_, known = incident.Handler(escalation.ChainRun{ChainID: "another"}, last.At.Add(holds-45*time.Minute))
				require.Equal(t, gate > 0, known, "the gate is new")
			})
		}
	}
}
