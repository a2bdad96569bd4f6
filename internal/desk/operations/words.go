package operations

import (
	"encoding/json"
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
	text := strings.ReplaceAll(string(purpose), "_", " ")
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
		text += ", verdict " + string(session.Verdict.Status)
	}
	return text
}

// AnswerMeaning says what an answer at a gate does.
func AnswerMeaning(action escalation.GateAction, gate escalation.Gate) string {
	if gate.Phase != "" {
		return phaseAnswer(action, gate)
	}
	switch action {
	case escalation.GateContinue:
		return fmt.Sprintf("continue session: %s goes on in its conversation", gate.NextRunner())
	case escalation.GateFix:
		return fmt.Sprintf("fix: %s starts over in a new session", gate.NextRunner())
	case escalation.GateOverride:
		if gate.Commit != "" {
			return "override: " + gate.Next(escalation.GateClosing{Action: action}) +
				"; the incident stays open, and looks leave it"
		}
		return "override: accept the state; the incident stays open, and looks leave it"
	case escalation.GateAbort:
		if gate.Commit != "" {
			return "abort: " + gate.Next(escalation.GateClosing{Action: action}) +
				"; the incident stays open, and a look may repair it"
		}
		return "abort: end the chain; the incident stays open, and a look may repair it"
	case escalation.GateRecheck: // people cannot choose this action
	}
	return line(string(action), 60)
}

// phaseAnswer says what an answer at the gate of a phase does.
func phaseAnswer(action escalation.GateAction, gate escalation.Gate) string {
	what := GatePlace(gate)
	switch action {
	case escalation.GateContinue:
		return fmt.Sprintf("continue session: %s goes on in its conversation", gate.NextRunner())
	case escalation.GateFix:
		if again := gate.Repeats(); again != "" {
			return "fix: " + again
		}
		return fmt.Sprintf("fix: %s works on %s in a new session", gate.NextRunner(), what)
	case escalation.GateOverride, escalation.GateAbort:
		return string(action) + ": " + gate.Next(escalation.GateClosing{Action: action})
	case escalation.GateRecheck: // people cannot choose this action
	}
	return line(string(action), 60)
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

// CallSubject returns the most informative field of a call's input. If the input has no known field, CallSubject
// returns the whole input.
func CallSubject(input string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(input), &fields) == nil {
		for _, key := range []string{"command", "file_path", "pattern", "url", "path", "description", "summary"} {
			if text, ok := fields[key].(string); ok && text != "" {
				return text
			}
		}
	}
	return input
}
