package plan

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows/parts"
)

// refused handles the refusal of a session: the work waits, or a person decides.
func (p *planRun) refused(ctx workflow.Context, refusal escalation.Admission) error {
	decision := escalation.DecideRefused(refusal)
	if again, err := p.Sessions.Waits(ctx, decision); again || err != nil {
		return err
	}
	p.at.Loop, _ = p.at.Loop.Refused(refusal.Reason)
	p.at.Why = decision
	return p.show(ctx)
}

// openGate opens a gate, because the loop needs a person. Without gates the work ends.
func (p *planRun) openGate(ctx workflow.Context) error {
	if err := p.Sessions.Flush(ctx); err != nil {
		return err
	}
	decision := escalation.Gated(*p.Policy, p.at.Why)
	if decision.Action == escalation.DecisionComplete {
		return p.end(ctx, decision)
	}
	p.Log.Decided(ctx, decision)
	stopped := review.StoppedAt(p.at.Ran, p.at.Loop.Resume, p.Log.Chain.Last())
	opened, err := p.Gates.Open(ctx, parts.GateRequest{
		Decision: decision, Tier: p.Policy.AuthorTier(), Stopped: &stopped, Commit: p.offered(),
		Open: p.at.Loop.Unsolved(), NoRemote: p.Log.Chain.Plan.NoRemote,
		// without a current phase, all of the plan could not be pushed
		Phase: cmp.Or(p.Log.Chain.Plan.Phase, escalation.PlanItself),
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
	if change := p.at.Change; change != nil && parts.Acceptable(*change) {
		return change.Commit
	}
	return ""
}

// waitAtGate waits at the open gate, and does what the answer says.
func (p *planRun) waitAtGate(ctx workflow.Context) error {
	closed, err := p.Gates.Wait(ctx, escalation.TierFullRepair) // a plan has no higher tier that a person could ask for
	if err != nil {
		return err
	}
	if !closed {
		return p.continueAsNew(ctx)
	}
	if err := p.Gates.RenewLimits(ctx); err != nil {
		return p.abortIfCancelled(ctx, err)
	}
	gate := p.Gates.Latest()
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
		p.at.Continues = parts.Brief(*p.Log.Chain.Session(gate.Continuation.SessionID))
	case escalation.GateFix, escalation.GateAbort, escalation.GateRecheck:
	}
	return p.show(ctx)
}
