package operations

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// SessionCost returns the cost of a session as text, which marks estimates, upper bounds and unknown costs.
func SessionCost(session *escalation.Session) string {
	switch {
	case session.CostUnknown() && session.BudgetUSD > 0:
		return "at most " + plaintext.Dollars(session.BudgetUSD)
	case session.CostUnknown():
		return "unknown"
	default:
		return session.CostText()
	}
}

// SessionTask names the purpose of a session, and the phase of a plan on which it works; empty for the usual work of
// its tier.
func SessionTask(session *escalation.Session) string {
	return taskOf(session.Purpose, session.Phase)
}

func taskOf(purpose escalation.Purpose, phase string) string {
	text := escalation.InWords(purpose)
	if phase == "" || phase == escalation.PlanItself {
		return text
	}
	return strings.TrimPrefix(text+", phase "+phase, ", ")
}

// SessionContext describes where the context of a session comes from, and the verdict of the session.
func SessionContext(session *escalation.Session) string {
	text := string(session.Continuity)
	if task := SessionTask(session); task != "" {
		text = task + ", " + text
	}
	of := "of"
	if session.ContinuityReason == escalation.ReasonInterrupted {
		text, of = text+" (interrupted)", "after" // the session resumed its own conversation
	}
	if session.Forced {
		text += ", forced"
	}
	if session.ParentID != 0 {
		text += fmt.Sprintf(" %s #%d", of, session.ParentID)
	}
	if strings.Contains(session.Sandbox, "none: ") {
		text += ", no sandbox"
	}
	if session.Worktree != nil && session.Worktree.Kept {
		text += ", work left on " + session.Worktree.Branch
	}
	if session.Verdict != nil {
		text += ", " + escalation.InWords(session.Verdict.Status)
	}
	return text
}

// GatePlace names the tier of a gate, or the phase of a plan at which it is.
func GatePlace(gate escalation.Gate) string {
	return line(gate.Place(), 60)
}

// GateSubject names the tier of a gate, or the phase and the plan at which it is.
func GateSubject(gate escalation.Gate) string {
	switch {
	case gate.Phase == "" || gate.Plan == "":
		return GatePlace(gate)
	case gate.Phase == escalation.PlanItself:
		return "the plan " + line(gate.Plan, 200)
	}
	return GatePlace(gate) + " of " + line(gate.Plan, 200)
}
