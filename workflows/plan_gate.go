package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// refused handles the refusal of a session: the work waits, or a person decides.
func (p *planRun) refused(ctx workflow.Context, refusal escalation.Admission) error {
	decision := escalation.DecideRefused(refusal)
	if again, err := p.sessions.waits(ctx, decision); again || err != nil {
		return err
	}
	p.at.Loop, _ = p.at.Loop.Refused(refusal.Reason)
	p.at.Why = decision
	return p.show(ctx)
}

// openGate opens a gate, because the loop needs a person. Without gates the work ends.
func (p *planRun) openGate(ctx workflow.Context) error {
	if err := p.sessions.flush(ctx); err != nil {
		return err
	}
	decision := escalation.Gated(*p.policy, p.at.Why)
	if decision.Action == escalation.DecisionComplete {
		return p.end(ctx, decision)
	}
	p.log.decided(ctx, decision)
	stopped := review.StoppedAt(p.at.Ran, p.at.Loop.Resume, p.log.chain.Last())
	opened, err := p.gates.open(ctx, gateRequest{
		decision: decision, tier: p.policy.AuthorTier(), stopped: &stopped, commit: p.offered(), open: p.at.Loop.Unsolved(),
		noRemote: p.log.chain.Plan.NoRemote,
		phase:    cmp.Or(p.log.chain.Plan.Phase, escalation.PlanItself), // without a current phase, all of the plan could not be pushed
	})
	if err != nil {
		return err
	}
	if !opened {
		return p.end(ctx, escalation.Cancelled())
	}
	p.at.AtGate = true
	return nil
}

// offered returns the commit that a person would accept for the current phase; empty if there is none.
func (p *planRun) offered() string {
	if change := p.at.Change; change != nil && acceptable(*change) {
		return change.Commit
	}
	return ""
}

// waitAtGate waits at the open gate, and does what the answer says.
func (p *planRun) waitAtGate(ctx workflow.Context) error {
	closed, err := p.gates.wait(ctx, escalation.TierFullRepair) // a plan has no higher tier that a person could ask for
	if err != nil {
		return err
	}
	if !closed {
		return p.continueAsNew(ctx)
	}
	if err := p.gates.renewLimits(ctx); err != nil {
		return p.abortIfCancelled(ctx, err)
	}
	gate := p.gates.latest()
	answer := *gate.Answer
	p.at.AtGate = false
	if answer.Actor != "" {
		p.at.Unseen = nil
	}
	if decision, ends := gate.Ending(answer); ends {
		return p.end(ctx, decision)
	}
	if commit := p.offered(); answer.Action == escalation.GateOverride && commit != "" {
		p.at.Loop.Commit = commit
	}
	if answer.Action != escalation.GateOverride || p.at.Loop.Commit != "" { // a phase without a commit is passed over
		p.at.Loop, _ = p.at.Loop.AfterGate(answer.Action)
	}
	p.at.Guidance, p.at.Continues, p.at.GoesOn, p.at.Passes = answer.Guidance, nil, false, gate.Allows()
	p.at.Anew = answer.Action == escalation.GateFix && p.at.Loop.State.Role() == review.Author
	switch answer.Action {
	case escalation.GateOverride:
		return p.approvePhase(ctx, escalation.PhaseAccepted)
	case escalation.GateContinue:
		p.at.Continues = brief(*p.log.chain.Session(gate.Continuation.SessionID))
	case escalation.GateFix, escalation.GateAbort, escalation.GateRecheck:
	}
	return p.show(ctx)
}
