package chaintest

import (
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Planned returns a chain that carries out a plan. Its first phase is approved. The second one waits at a gate, because
// a finding of its reviewer needs a person: the author's correction is next, so the reviewer's session cannot be
// continued. A title comes from a hostile author.
func Planned() escalation.Chain {
	const wrongPort = "P1 wrong-port (compose.yaml:4): 8433 is not 8443"
	const openDoor = "P1 open-door (firewall.rules:7, for a person): the rule lets everybody in"
	second := planned(3, escalation.PurposeAuthor, "1", 0.24, "complete")
	second.ParentID, second.Continuity = 1, escalation.ContinuityResume
	chain := escalation.Chain{
		ID: "plan-run-ports", Trigger: escalation.TriggerPlan, Actor: "ada", MaxTier: escalation.TierSafeRepair,
		StartedAt: plannedAt, CostUSD: 1.34,
		Sessions: []escalation.Session{
			planned(1, escalation.PurposeAuthor, "1", 0.39, "complete"),
			planned(2, escalation.PurposeReview, "1", 0.11, "not_ready"),
			second,
			planned(4, escalation.PurposeReview, "1", 0.1, "ready"),
			planned(5, escalation.PurposeAuthor, "2", 0.38, "complete"),
			planned(6, escalation.PurposeReview, "2", 0.12, "not_ready"),
		},
		Reviews: []escalation.Review{
			plannedReview(2, "1", "not_ready", "corrections", "the author corrects: "+wrongPort),
			plannedReview(4, "1", "ready", "reviewed", "the reviewer approves 3f2a9c1d5e6f"),
			plannedReview(6, "2", "not_ready", "human_required", "a person must decide: "+openDoor),
		},
		Plan: &escalation.PlanState{
			Task: escalation.PlanRun, File: "docs/ports.md", Title: "Move the \x1b[31mproxy",
			Base:   "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
			Branch: "claudeops/plan-run-ports", Commit: plannedCommit, Phase: "2", State: "gate",
			Phases: []escalation.PlanPhase{
				{
					Number: "1", Title: "The port", Status: escalation.PhaseApproved, Commit: plannedCommit,
					Turns: 2, Reviews: 2, Cost: escalation.Cost{CostUSD: 0.84}, Checks: "passed", Verdict: "ready",
					ReviewTotals: escalation.ReviewTotals{Found: 3, Fixed: 3, ReviewCostUSD: 0.21, CostPerFixUSD: 0.07},
				},
				{
					Number: "2", Title: "The rule of the firewall", Status: escalation.PhaseRunning,
					Turns: 1, Reviews: 1, Cost: escalation.Cost{CostUSD: 0.5}, Checks: "passed", Verdict: "not_ready",
					ReviewTotals: escalation.ReviewTotals{Found: 1, ReviewCostUSD: 0.12},
				},
				{Number: "2.1", Title: "Its test", Status: escalation.PhaseWaiting},
				{Number: "3", Title: "Old ports", Status: escalation.PhaseSkipped},
			},
		},
	}
	chain.Reviews[0].Findings = []string{wrongPort}
	chain.Reviews[1].Approved, chain.Reviews[1].Commit = true, plannedCommit
	chain.Reviews[2].Findings = []string{openDoor}
	chain.Gates = []escalation.Gate{plannedGate(chain, &escalation.LoopGate{
		Role: "author", Resume: "auto_fix",
		NoContinuation: "the next step is a correction, and the last session was that of the reviewer",
	})}
	chain.Reason = chain.Gates[0].Reason
	return chain
}

// Resumable returns the chain of Planned, whose second phase waits because its author has timed out. The gate offers to
// continue the author's session.
func Resumable() escalation.Chain {
	chain := Planned()
	chain.Sessions, chain.Reviews = chain.Sessions[:5], chain.Reviews[:2]
	author := &chain.Sessions[4]
	author.Status, author.Error, author.CostUSD, author.Verdict = escalation.SessionTimedOut,
		"it ran for more than 5m0s", 0.5, nil
	phase := chain.Plan.Current()
	phase.Reviews, phase.Found, phase.ReviewCostUSD, phase.Checks, phase.Verdict = 0, 0, 0, "", ""
	chain.Reviews = append(chain.Reviews, escalation.Review{
		AuthorID: author.SessionID, Phase: "2", Rule: "author",
		Reason: "the author's session took too long: it ran for more than 5m0s",
	})
	chain.Gates = []escalation.Gate{plannedGate(chain, &escalation.LoopGate{
		Role: "author", Resume: "execute", Continuation: &escalation.Continuation{
			SessionID: author.SessionID, Tier: author.Tier, Role: "author", Resume: "execute", Status: author.Status,
		},
	})}
	chain.Reason = chain.Gates[0].Reason
	return chain
}

// plannedGate returns the gate that opens after the latest review of a chain of Planned. Its options are those that a
// workflow offers.
func plannedGate(chain escalation.Chain, loop *escalation.LoopGate) escalation.Gate {
	var tried []string
	for i := range chain.Sessions {
		one := &chain.Sessions[i]
		tried = append(tried, fmt.Sprintf("%s, phase %s (%s), $%.2f: %s", one.Purpose, one.Phase, one.Model,
			one.CostUSD, escalation.InWords(one.Status)))
	}
	policy := escalation.Policy{Gate: escalation.GatePolicy{Timeout: escalation.Duration(72 * time.Hour)}}
	return escalation.NewGate(policy, escalation.GateInput{
		Number: 1, At: Noon.Add(-125 * time.Minute),
		Decision: escalation.DecideReview(chain.Reviews[len(chain.Reviews)-1].Reason), Tier: escalation.TierSafeRepair,
		Last: chain.Last(), Loop: loop, SpentUSD: chain.CostUSD, Tried: tried, Phase: chain.Plan.Phase,
		Plan: chain.Plan.File,
	})
}

// plannedReview returns a review of the chain of Planned. Its number is that of the reviewer's session, after the
// author's.
func plannedReview(number byte, phase, status, rule, reason string) escalation.Review {
	return escalation.Review{
		AuthorID: Conversation(number - 1), ReviewerID: Conversation(number), Phase: phase,
		Branch: "claudeops/plan-run-ports", Base: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
		Commit: fmt.Sprintf("c%d", number), Files: 1, Lines: 3, Checks: "passed", Status: status, Rule: rule,
		Reason: reason,
	}
}

// plannedCommit is the approved commit of the first phase of Planned.
const plannedCommit = "3f2a9c1d5e6f708192a3b4c5d6e7f80912345678"

// plannedAt is the start of the chain of Planned.
var plannedAt = Noon.Add(-3 * time.Hour)

// planned returns a session of the chain of Planned.
func planned(
	number byte, purpose escalation.Purpose, phase string, costUSD float64, status escalation.VerdictStatus,
) escalation.Session {
	session := escalation.Session{
		ID: int64(number), SessionID: Conversation(number), ChainID: "plan-run-ports", Tier: escalation.TierSafeRepair,
		Model: "sonnet", Trigger: escalation.TriggerPlan, Continuity: escalation.ContinuityFresh, Purpose: purpose,
		Phase: phase, StartedAt: plannedAt.Add(time.Duration(number) * 10 * time.Minute),
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: costUSD}, DurationMS: 300_000,
			Attempts: 1,
		},
	}
	session.EndedAt = session.StartedAt.Add(5 * time.Minute)
	if purpose == escalation.PurposeReview {
		session.Tier, session.Model = escalation.TierObserve, "opus"
	}
	session.Verdict = &escalation.Verdict{Status: status, Summary: "It says so."}
	return session
}

// Amended returns a chain that has reviewed a plan, which its reviewer approves.
func Amended() escalation.Chain {
	chain := Planned()
	chain.ID, chain.Gates, chain.Sessions, chain.CostUSD = "plan-review-ports", nil, chain.Sessions[:2], 0.5
	chain.Reviews = chain.Reviews[:2]
	for i := range chain.Sessions {
		chain.Sessions[i].Phase, chain.Reviews[i].Phase = escalation.PlanItself, escalation.PlanItself
	}
	phase := chain.Plan.Phases[0]
	phase.Number, phase.Title, phase.Turns, phase.Reviews, phase.CostUSD, phase.ReviewCostUSD = escalation.PlanItself,
		"", 1, 1, 0.5, 0.11
	phase.CostPerFixUSD = 0.11 / 3
	phase.Checks = "" // those of a plan do not run
	plan := chain.Plan
	plan.Task, plan.Phase, plan.State, plan.Phases = escalation.PlanReviewed, "", "", []escalation.PlanPhase{phase}
	plan.Branch, plan.Pushed = "claudeops/plan-review-ports", "https://git.example.org/infra"
	plan.PullRequest = plan.Pushed + "/pulls/7"
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeApproved, "the reviewer approves the plan",
		Noon.Add(-2*time.Hour)
	return chain
}
