package chaintest

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Planned returns a chain that carries out a plan. Its first phase is approved, and the second one waits at a gate. A title comes
// from a hostile author.
func Planned() escalation.Chain {
	gate := BareGate()
	gate.Source, gate.Phase, gate.CostUSD, gate.Tried = escalation.GateNeedsHuman, "2", 1.34, nil
	gate.Reason, gate.NoContinuation = "the same finding came for the third time: wrong-port (compose.yaml:4)", ""
	second := planned(3, escalation.PurposeAuthor, "1", 0.24, escalation.VerdictResolved)
	second.ParentID, second.Continuity = 1, escalation.ContinuityResume
	return escalation.Chain{
		ID: "plan-run-ports", Trigger: escalation.TriggerPlan, Actor: "ada", MaxTier: escalation.TierSafeRepair,
		StartedAt: plannedAt, CostUSD: 1.34,
		Sessions: []escalation.Session{
			planned(1, escalation.PurposeAuthor, "1", 0.39, escalation.VerdictResolved),
			planned(2, escalation.PurposeReview, "1", 0.11, ""),
			second,
			planned(4, escalation.PurposeReview, "1", 0.1, ""),
			planned(5, escalation.PurposeAuthor, "2", 0.5, escalation.VerdictResolved),
		},
		Gates: []escalation.Gate{gate},
		Plan: &escalation.PlanState{
			Task: escalation.PlanRun, File: "docs/ports.md", Title: "Move the \x1b[31mproxy",
			Base:   "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
			Branch: "claudeops/plan-run-ports", Commit: "3f2a9c1d5e6f708192a3b4c5d6e7f80912345678", Phase: "2", State: "review",
			Phases: []escalation.PlanPhase{
				{
					Number: "1", Title: "The port", Status: escalation.PhaseApproved, Commit: "3f2a9c1d5e6f708192a3b4c5d6e7f80912345678",
					Turns: 2, Reviews: 2, Found: 3, Fixed: 3, CostUSD: 0.84, ReviewCostUSD: 0.21,
				},
				{Number: "2", Title: "The rule of the firewall", Status: escalation.PhaseRunning, Turns: 1, CostUSD: 0.5},
				{Number: "2.1", Title: "Its test", Status: escalation.PhaseWaiting},
				{Number: "3", Title: "Old ports", Status: escalation.PhaseSkipped},
			},
			Pushed: "https://git.example.org/infra", PullRequest: "https://git.example.org/infra/pulls/7",
		},
	}
}

// plannedAt is the start of the chain of Planned.
var plannedAt = Noon.Add(-3 * time.Hour)

// planned returns a session of the chain of Planned. Without a status it has no verdict.
func planned(number byte, purpose escalation.Purpose, phase string, costUSD float64, status escalation.VerdictStatus) escalation.Session {
	session := escalation.Session{
		ID: int64(number), SessionID: Conversation(number), ChainID: "plan-run-ports", Tier: escalation.TierSafeRepair, Model: "sonnet",
		Trigger: escalation.TriggerPlan, Continuity: escalation.ContinuityFresh, Purpose: purpose, Phase: phase,
		StartedAt: plannedAt.Add(time.Duration(number) * 10 * time.Minute),
		Report:    escalation.Report{Status: escalation.SessionCompleted, CostUSD: costUSD, DurationMS: 300_000, Attempts: 1},
	}
	session.EndedAt = session.StartedAt.Add(5 * time.Minute)
	if purpose == escalation.PurposeReview {
		session.Tier, session.Model = escalation.TierObserve, "opus"
	}
	if status != "" {
		session.Verdict = &escalation.Verdict{Status: status, Summary: "It says so."}
	}
	return session
}

// Amended returns a chain that has reviewed a plan, which its reviewer approves.
func Amended() escalation.Chain {
	chain := Planned()
	chain.ID, chain.Gates, chain.Sessions, chain.CostUSD = "plan-review-ports", nil, chain.Sessions[:2], 0.5
	for i := range chain.Sessions {
		chain.Sessions[i].Phase = escalation.PlanItself
	}
	phase := chain.Plan.Phases[0]
	phase.Number, phase.Title, phase.Turns, phase.Reviews, phase.CostUSD, phase.ReviewCostUSD = escalation.PlanItself, "", 1, 1, 0.5, 0.11
	chain.Plan.Task, chain.Plan.Phase, chain.Plan.State, chain.Plan.PullRequest = escalation.PlanReviewed, "", "", ""
	chain.Plan.Branch = "claudeops/plan-review-ports"
	chain.Plan.Phases = []escalation.PlanPhase{phase}
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeApproved, "the reviewer approves the plan", Noon.Add(-2*time.Hour)
	return chain
}
