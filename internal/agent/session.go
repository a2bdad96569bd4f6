package agent

import (
	"context"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Records stores the decisions on calls, and counts repairs in the ledger.
type Records interface {
	// AppendDecisions records decisions on calls, with secrets masked.
	AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error
	// Charge adds the actions of a call to the ledger. If the call is refused, Charge returns the refusal.
	Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error)
	// ReturnCharge removes the charge of a call that was not made.
	ReturnCharge(ctx context.Context, sessionID, call string) error
}

// session supervises the cell of one run: what it does goes to the activity and to the records.
type session struct {
	records Records
	catalog *escalation.Catalog
	run     activities.AgentRun
	observe func(activities.AgentProgress)
}

var _ cell.Supervisor = session{}

// Progress implements cell.Supervisor.
func (s session) Progress(p claude.Progress) { s.observe(progressOf(p)) }

// Decided implements cell.Supervisor.
func (s session) Decided(ctx context.Context, entries []cell.Entry) error {
	decisions := make([]escalation.CallDecision, len(entries))
	for i, entry := range entries {
		decisions[i] = escalation.CallDecision{
			ChainID: s.run.ChainID, SessionID: entry.Session, Tier: escalation.Tier(entry.Tier), At: entry.At,
			Call: entry.Call, Tool: entry.Tool, Input: string(entry.Input), Allowed: entry.Decision.Allowed,
			Rule: entry.Decision.Rule, Reason: entry.Decision.Reason, Actions: s.actions(entry.Decision.Actions),
		}
	}
	return s.records.AppendDecisions(ctx, decisions)
}

// Charge implements cell.Supervisor. The limits get canonical names as the actions do, because their chain may have
// begun before a service was renamed.
func (s session) Charge(ctx context.Context, act string, actions []guard.Action) (refusal string, err error) {
	refused, err := s.records.Charge(ctx, escalation.Charge{
		ChainID: s.run.ChainID, SessionID: s.run.SessionID, Call: act, At: s.run.Now(),
		Actions: s.actions(actions), Cooldowns: s.catalog.Cooldowns(s.run.Limits),
	})
	if err != nil || refused == nil {
		return "", err
	}
	return refused.Reason(), nil
}

// Return implements cell.Supervisor.
func (s session) Return(ctx context.Context, act string) error {
	return s.records.ReturnCharge(ctx, s.run.SessionID, act)
}

// actions converts the actions that the guard found in a call. Services get their canonical names, as in a verdict.
func (s session) actions(found []guard.Action) []escalation.CallAction {
	var actions []escalation.CallAction
	for _, action := range found {
		actions = append(actions, escalation.CallAction{
			Kind: escalation.ActionKind(action.Kind), Service: s.catalog.Canonical(action.Service),
		})
	}
	return actions
}
