package daily

import (
	"fmt"
	"io"
	"slices"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// maxDenied limits how many denied calls a tree lists for one session. An agent can repeat a denied call for hours.
	maxDenied = 20
	// maxSubject limits how much of a call's subject a tree shows, in characters.
	maxSubject = 100
)

// listedCalls selects the calls that a tree lists.
type listedCalls bool

// The choices.
const (
	deniedCalls listedCalls = false // only denied calls, at most maxDenied for each session
	allCalls    listedCalls = true
)

// writeCalls writes the decisions on the calls of a session, with indent before each line. It writes how many calls
// were allowed and denied, and then the calls that list selects. For a session without calls, writeCalls writes
// nothing.
func writeCalls(w io.Writer, clock console.Clock, indent string, calls []escalation.CallDecision, list listedCalls) {
	if len(calls) == 0 {
		return
	}
	listed := slices.Clone(calls)
	if list == deniedCalls {
		listed = slices.DeleteFunc(listed, func(call escalation.CallDecision) bool { return call.Allowed })
	}
	denied := 0
	for i := range calls {
		if !calls[i].Allowed {
			denied++
		}
	}
	_, _ = fmt.Fprintf(w, "%scalls: %d allowed, %d denied\n", indent, len(calls)-denied, denied)
	for i := range listed {
		if i == maxDenied && list == deniedCalls {
			_, _ = fmt.Fprintf(w, "%s… %d more denied: --calls lists every call\n", indent, len(listed)-i)
			return
		}
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, callLine(clock, &listed[i]))
	}
}

// callLine describes a decision on one line: its time, the tool, the subject and, for a denied call, the reason. If the
// decision is on a program that a call started, the line has "starts" in place of the tool.
func callLine(clock console.Clock, call *escalation.CallDecision) string {
	decided, why := "allowed", ""
	if !call.Allowed {
		decided, why = "denied ", " — "+console.Printable(call.Reason, 300)
	}
	at, tool := clock.DateTime(call.At), call.Tool
	if call.OfProgram() {
		tool = "starts"
	}
	return fmt.Sprintf("%s  %s  %s  %s%s",
		decided, at, console.Printable(tool, 40), console.Printable(escalation.CallSubject(call.Input), maxSubject),
		why)
}

// ofSession returns the calls of one session.
func ofSession(calls []escalation.CallDecision, sessionID string) []escalation.CallDecision {
	var own []escalation.CallDecision
	for i := range calls {
		if calls[i].SessionID == sessionID {
			own = append(own, calls[i])
		}
	}
	return own
}
