package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// writeTree draws a chain that was not looked at while it runs.
func (a *app) writeTree(w io.Writer, chain escalation.Chain) { a.writeSight(w, sight{chain: chain}) }

// writeSight draws a chain: its sessions with their calls, where the one that runs stands, the gates, and
// the total.
func (a *app) writeSight(w io.Writer, now sight) {
	chain := now.chain
	_, _ = fmt.Fprintf(w, "Escalation chain %s", chain.ID)
	if len(chain.Services) > 0 {
		_, _ = fmt.Fprintf(w, " (%s)", printable(strings.Join(chain.Services, ", "), 80))
	}
	_, _ = fmt.Fprintln(w)
	if left := earlierOf(chain); left != "" {
		_, _ = fmt.Fprintln(w, left)
	}
	total := a.writeSessions(w, now)
	if effort := a.effort(now); effort != "" {
		_, _ = fmt.Fprintf(w, "    %s\n", effort)
	}
	for _, issue := range chain.Issues {
		_, _ = fmt.Fprintf(w, "    Issue %s  %s  %s  %s\n", cmp.Or(issue.ChainID, "without a chain"),
			printable(strings.Join(issue.Services, ", "), 80), dollars(issue.CostUSD), cmp.Or(string(issue.Outcome), "running"))
	}
	for _, gate := range chain.Gates {
		a.writeGate(w, chain.ID, gate)
	}
	if chain.Wait != nil {
		_, _ = fmt.Fprintf(w, "Waiting until %s: %s\n", a.moment(chain.Wait.Until), printable(chain.Wait.Reason, 300))
	}
	took := duration(total)
	if chain.Earlier.Sessions > 0 {
		took = "more than " + took
	}
	_, _ = fmt.Fprintf(w, "Total: %s  %s\n", dollars(now.costUSD()), took)
	if chain.Outcome != "" {
		_, _ = fmt.Fprintf(w, "Outcome: %s — %s\n", chain.Outcome, printable(chain.Reason, 300))
	}
}

// writeSessions draws a line for each session, its calls below it, and returns how long all of them took.
func (a *app) writeSessions(w io.Writer, now sight) (total time.Duration) {
	sessions := now.chain.Sessions
	var drawn bytes.Buffer
	columns := tabwriter.NewWriter(&drawn, 0, 0, 2, ' ', 0)
	for i := range sessions {
		session := &sessions[i]
		branch := "├──"
		if i == len(sessions)-1 {
			branch = "└──"
		}
		cost, took := now.figures(session, a.now())
		total += took
		_, _ = fmt.Fprintf(columns, "%s Session #%d\tTier %d\t%s\t%s\t%s\t%s %s\t%s\n",
			branch, session.ID, int(session.Tier), printable(session.Model, 80), cost,
			duration(took), mark(session.Status), printable(string(session.Status), 40), printable(contextOf(session), 200))
	}
	_ = columns.Flush()
	i, indent := 0, "│       "
	for line := range strings.Lines(drawn.String()) { // one for each session: no cell has a line break
		if i == len(sessions)-1 {
			indent = "        "
		}
		_, _ = io.WriteString(w, line)
		a.writeCalls(w, indent, ofSession(now.calls, sessions[i].SessionID), now.everyCall)
		i++
	}
	return total
}

// earlierOf says which sessions a chain has left out because it has gone on for very long; "" if none.
func earlierOf(chain escalation.Chain) string {
	left, noun := chain.Earlier, "sessions"
	if left.Sessions == 0 {
		return ""
	}
	if left.Sessions == 1 {
		noun = "session"
	}
	return fmt.Sprintf("… %d earlier %s, %s: in the records", left.Sessions, noun, dollars(left.CostUSD))
}

// writeGate writes why a gate was opened, and who closed it when, or how that can be done.
func (a *app) writeGate(w io.Writer, chainID string, gate escalation.Gate) {
	_, _ = fmt.Fprintf(w, "    Gate %s  %s  %s\n", gate.ID, gate.Tier, reasonOf(gate))
	if gate.Answer != nil {
		_, _ = fmt.Fprintf(w, "        %s\n", a.closingOf(*gate.Answer))
		return
	}
	_, _ = fmt.Fprintf(w, "        open since %s; answer with: %s\n", a.moment(gate.OpenedAt), answerCommand(chainID))
}

// contextOf says where a session got its context, and what it concluded.
func contextOf(session *escalation.Session) string {
	text := string(session.Continuity)
	if session.Purpose != escalation.PurposeTier {
		text = string(session.Purpose) + ", " + text
	}
	of := "of"
	if session.ContinuityReason == escalation.ReasonInterrupted {
		text, of = text+" (interrupted)", "after" // it resumed itself
	}
	if session.Forced {
		text += ", forced"
	}
	if session.ParentID != 0 {
		text += fmt.Sprintf(" %s #%d", of, session.ParentID)
	}
	if strings.HasPrefix(session.Sandbox, "none: ") {
		text += ", no sandbox"
	}
	if session.Verdict != nil {
		text += ", verdict " + string(session.Verdict.Status)
	}
	return text
}

// writeLineage writes sessions as a line of arrows.
func writeLineage(w io.Writer, title string, sessions []escalation.Session) {
	numbers := make([]string, len(sessions))
	for i := range sessions {
		numbers[i] = fmt.Sprintf("#%d", sessions[i].ID)
	}
	_, _ = fmt.Fprintf(w, "%s %s\n", title, strings.Join(numbers, " → "))
}

func mark(status escalation.SessionStatus) string {
	switch status {
	case escalation.SessionRunning:
		return "…"
	case escalation.SessionCompleted:
		return "✓"
	case escalation.SessionFailed, escalation.SessionTimedOut, escalation.SessionBudgetExhausted,
		escalation.SessionResumeFailed, escalation.SessionTranscriptLost, escalation.SessionStopped:
		return "✗"
	}
	return "?"
}

func durationOf(session *escalation.Session) time.Duration {
	return time.Duration(session.DurationMS) * time.Millisecond
}

// duration is short where it can be: "45s", "2m0s", and "0.3s" for what took no time.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// costOf is what a session has cost, and whether that is known.
func costOf(session *escalation.Session) string {
	switch {
	case session.CostUnknown() && session.BudgetUSD > 0:
		return "at most " + dollars(session.BudgetUSD)
	case session.CostUnknown():
		return "unknown"
	case session.CostEstimated:
		return "about " + dollars(session.CostUSD)
	default:
		return dollars(session.CostUSD)
	}
}

// dollars shows cents, and more digits only where cents would show nothing.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
