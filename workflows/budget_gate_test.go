package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// spentToday returns facts of a day whose budget is spent for all sessions with the given purpose.
func spentToday(purpose escalation.Purpose) func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
	return func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
		if request.Purpose == purpose {
			return escalation.AdmissionFacts{DaySpentUSD: 10}
		}
		return escalation.AdmissionFacts{}
	}
}

// TestBudgetEndsAPlan lets a budget end in the middle of a plan. A person raises it and answers at the gate. The plan
// goes on where it was: no phase and no review runs twice. As long as nobody raises it, the next gate asks again.
func TestBudgetEndsAPlan(t *testing.T) {
	t.Parallel()
	raises := func(usd float64) func(*escalation.Policy) {
		return func(p *escalation.Policy) { p.ChainBudgetUSD = usd }
	}
	for name, c := range map[string]struct {
		change func(*planWorld)
		input  workflows.PlanInput
		// raise sets the higher budget. It happens before the first answer or, if late is set, before the second.
		raise  func(*escalation.Policy)
		late   bool
		action escalation.GateAction
		next   string
		turns  int
	}{
		"before the author of the second phase": {
			change: func(w *planWorld) { w.policy.ChainBudgetUSD = 0.65 }, raise: raises(5), action: escalation.GateFix, turns: 2,
			next: "the author starts fresh under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then",
		},
		"before the reviewer of the second phase": {
			change: func(w *planWorld) { w.policy.ChainBudgetUSD = 1.1 }, raise: raises(5), action: escalation.GateFix, turns: 2,
			next: "the reviewer starts fresh under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then",
		},
		"it is raised too late": {
			change: func(w *planWorld) { w.policy.ChainBudgetUSD = 1.1 }, raise: raises(5), late: true, action: escalation.GateFix, turns: 2,
			next: "the reviewer starts fresh under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then",
		},
		"its cap is removed": {
			change: func(w *planWorld) { w.policy.ChainBudgetUSD = 0.65 }, raise: raises(0), action: escalation.GateFix, turns: 2,
			next: "the author starts fresh under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then",
		},
		"the budget of the input": {
			change: func(w *planWorld) { w.policy.ChainBudgetUSD = 5 }, input: workflows.PlanInput{BudgetUSD: 0.65},
			raise: func(*escalation.Policy) {}, action: escalation.GateFix, turns: 2,
			next: "the author starts fresh with another $0.65, as far as the CLAUDEOPS_CHAIN_BUDGET_USD " +
				"permits that is set then",
		},
		"the day's, before an author": {
			change: func(w *planWorld) {
				w.policy.DayBudgetUSD, w.facts = 5, spentToday(escalation.PurposeAuthor)
			},
			raise: func(p *escalation.Policy) { p.DayBudgetUSD = 50 }, action: escalation.GateFix, turns: 2,
			next: "the author starts fresh under the CLAUDEOPS_DAY_BUDGET_USD that is set then",
		},
		"the day's, before a reviewer": {
			change: func(w *planWorld) {
				w.policy.DayBudgetUSD, w.facts = 5, spentToday(escalation.PurposeReview)
			},
			raise: func(p *escalation.Policy) { p.DayBudgetUSD = 50 }, action: escalation.GateFix, turns: 2,
			next: "the reviewer starts fresh under the CLAUDEOPS_DAY_BUDGET_USD that is set then",
		},
		"the author's own": {
			change: func(w *planWorld) {
				w.policy.Author.Role.BudgetUSD = 0.5
				w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
					result := w.commits(turn, input)
					if input.BudgetUSD < 1 {
						result.Report.Status, result.Report.Verdict, result.Work = escalation.SessionBudgetExhausted, nil, nil
						result.Problem = "the budget is spent"
					}
					return result
				}
			},
			raise: func(p *escalation.Policy) { p.Author.Role.BudgetUSD = 3 }, action: escalation.GateContinue, turns: 3,
			next: "goes on and keeps what it knows",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanWorld(t)
			w.policy.Gate.Remind = nil
			c.change(w)
			gate := w.gateAfter(t, time.Hour)
			raise := func() {
				w.policy.Tiers = append([]escalation.TierPolicy{}, w.policy.Tiers...)
				c.raise(&w.policy)
			}
			if c.late {
				w.env.RegisterDelayedCallback(raise, 150*time.Minute)
				w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateFix, ""))
			} else {
				w.env.RegisterDelayedCallback(raise, 90*time.Minute)
			}
			answered := w.answerAfter(2*time.Hour, said(c.action, ""))
			result, err := w.run(workflows.PhaseExecutionWorkflow, c.input)
			require.NoError(t, err)
			require.Contains(t, answered.resolution.Next, c.next)
			require.Contains(t, gate.Options, escalation.GateFix)
			require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
			require.Len(t, w.turns, c.turns, "no phase is carried out twice")
			require.Len(t, w.asked, 2, "no phase is reviewed twice")
			require.Len(t, w.pushed, 1)
			if c.late {
				require.Len(t, result.Gates, 2)
				require.Equal(t, gate.Reason, result.Gates[1].Reason)
			} else {
				require.Len(t, result.Gates, 1)
			}
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestBudgetEndsAReviewedChain lets a budget end between the states of a change. After a higher one is set, the chain
// goes on where it was, with the change and its findings.
func TestBudgetEndsAReviewedChain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget float64
		own    float64
		role   string
	}{
		"before the review":     {budget: 0.13, role: "reviewer"},
		"before the correction": {budget: 0.231, role: "author"},
		"of its input":          {own: 0.231, role: "author"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, finds(objection("wrong-port")), finds())
			w.policy.ChainBudgetUSD = c.budget
			gate := w.gateAfter(t, time.Hour)
			w.env.RegisterDelayedCallback(func() {
				if c.own == 0 {
					w.policy.ChainBudgetUSD = 5
				}
			}, 90*time.Minute)
			answered := w.answerAfter(2*time.Hour, said(escalation.GateFix, "quickly"))
			result, err := w.run(t, workflows.ChainInput{BudgetUSD: c.own})
			require.NoError(t, err)
			require.Equal(t, []string{c.role, "c2"}, []string{gate.Role, gate.Commit}, gate.Reason)
			require.Contains(t, answered.resolution.Next, "CLAUDEOPS_CHAIN_BUDGET_USD")
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.Len(t, result.Gates, 1)
			require.Equal(t, []escalation.Purpose{
				escalation.PurposeTier, escalation.PurposeTier, escalation.PurposeReview,
			}, []escalation.Purpose{result.Sessions[0].Purpose, result.Sessions[1].Purpose, result.Sessions[2].Purpose})
			require.Len(t, w.ran, 3, "the author has worked, and corrected once")
			correction := w.ran[2]
			require.Equal(t, "c2", correction.At.Commit)
			require.Equal(t, []review.Finding{opened(objection("wrong-port"))}, correction.Correction.Findings)
			require.Len(t, *asked, 2)
			require.Equal(t, []string{"c3"}, w.commits())
			requireRecorded(t, result.Events, w.events)
		})
	}
}
