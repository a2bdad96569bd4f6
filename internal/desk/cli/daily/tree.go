package daily

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// WriteTree draws a chain. It does not show the status and calls of a running session.
func WriteTree(w io.Writer, clock console.Clock, chain escalation.Chain) {
	writeSnapshot(w, clock, operations.Snapshot{Chain: chain}, deniedCalls)
}

// writeSnapshot draws a chain: its sessions with their calls, the status of the running session, the gates, and the
// total.
func writeSnapshot(w io.Writer, clock console.Clock, now operations.Snapshot, listed listedCalls) {
	chain := now.Chain
	kind := "Escalation chain"
	if chain.Plan != nil {
		kind = "Plan " + string(chain.Plan.Task)
	}
	_, _ = fmt.Fprintf(w, "%s %s", kind, chain.ID)
	if len(chain.Services) > 0 {
		_, _ = fmt.Fprintf(w, " (%s)", console.Printable(strings.Join(chain.Services, ", "), 80))
	}
	_, _ = fmt.Fprintln(w)
	if chain.Plan != nil {
		_, _ = fmt.Fprintf(w, "%s\n", console.Printable(operations.PlanTitle(chain.Plan), 200))
	}
	if chain.DryRun {
		_, _ = fmt.Fprintln(w, "Dry run: it looks, and changes nothing.")
	}
	if unknown := chain.UnknownServices; len(unknown) > 0 {
		_, _ = fmt.Fprintf(w, "Not in the services file: %s\n", console.Printable(strings.Join(unknown, ", "), 200))
	}
	if left := earlierOf(chain); left != "" {
		_, _ = fmt.Fprintln(w, left)
	}
	total := writeSessions(w, clock, now, listed)
	if line := effort(clock, now); line != "" {
		_, _ = fmt.Fprintf(w, "    %s\n", line)
	}
	for _, issue := range chain.Issues {
		_, _ = fmt.Fprintf(w, "    Issue %s  %s  %s  %s\n", cmp.Or(issue.ChainID, "without a chain"),
			console.Printable(strings.Join(issue.Services, ", "), 80), issue.CostText(),
			cmp.Or(escalation.InWords(issue.Outcome), "running"))
	}
	for _, done := range chain.Reviews {
		writeReview(w, done)
	}
	if totals := chain.Reviewed.Describe(); totals != "" {
		_, _ = fmt.Fprintf(w, "    Reviews: %s\n", totals)
	}
	for _, gate := range chain.Gates {
		writeGate(w, clock, chain.ID, gate)
	}
	if chain.Wait != nil {
		_, _ = fmt.Fprintf(w, "Waiting until %s: %s\n", clock.Moment(chain.Wait.Until),
			console.Printable(chain.Wait.Reason, 300))
	}
	if now.Waits != "" {
		_, _ = fmt.Fprintf(w, "Waiting for %s\n", console.Printable(now.Waits, 1_000))
	}
	took := plaintext.Duration(total)
	if chain.Earlier.Sessions > 0 {
		took = "more than " + took
	}
	_, _ = fmt.Fprintf(w, "Total: %s  %s\n", now.CostText(), took)
	if chain.Plan != nil {
		writePhases(w, console.AnyWidth, chain.Plan)
		writeCommits(w, chain.Plan)
	}
	if chain.Outcome != "" {
		_, _ = fmt.Fprintf(w, "Outcome: %s — %s\n", escalation.InWords(chain.Outcome),
			console.Printable(chain.Reason, 300))
	}
}

// writeSessions draws a line for each session. Below this line, it draws the calls of the session. It returns the total
// duration of the sessions.
func writeSessions(
	w io.Writer, clock console.Clock, now operations.Snapshot, listed listedCalls,
) (total time.Duration) {
	sessions := now.Chain.Sessions
	var drawn bytes.Buffer
	columns := tabwriter.NewWriter(&drawn, 0, 0, 2, ' ', 0)
	for i := range sessions {
		session := &sessions[i]
		branch := "├──"
		if i == len(sessions)-1 {
			branch = "└──"
		}
		cost, took := figuresOf(now, session, clock())
		total += took
		_, _ = fmt.Fprintf(columns, "%s Session #%d\tTier %d\t%s\t%s\t%s\t%s %s\t%s\n",
			branch, session.ID, int(session.Tier), console.Printable(session.Model, 80), cost,
			plaintext.Duration(took), markOf(session.Status), console.Printable(escalation.InWords(session.Status), 40),
			console.Printable(operations.SessionContext(session), 200))
	}
	_ = columns.Flush()
	i, indent := 0, "│       "
	// one line for each session, because no cell contains a line break
	for line := range strings.Lines(drawn.String()) {
		if i == len(sessions)-1 {
			indent = "        "
		}
		_, _ = io.WriteString(w, line)
		writeFinding(w, indent, &sessions[i])
		writeCalls(w, clock, indent, ofSession(now.Calls, sessions[i].SessionID), listed)
		i++
	}
	return total
}

// maxFinding limits the summary of a verdict below its session, in characters.
const maxFinding = 200

// writeFinding writes what the session's agent has concluded, in its own words.
func writeFinding(w io.Writer, indent string, session *escalation.Session) {
	if session.Verdict != nil && session.Verdict.Summary != "" {
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, console.Printable(session.Verdict.Summary, maxFinding))
	}
}

// maxFindings limits the findings of a review that are shown.
const maxFindings = 5

// writeReview writes how a review has ended, and its findings.
func writeReview(w io.Writer, done escalation.Review) {
	what := cmp.Or(done.Subject(), done.Branch)
	if judged := done.Judgement(); judged != "" {
		what += " (" + judged + ")"
	}
	_, _ = fmt.Fprintf(w, "    Review of %s: %s\n", console.Printable(what, 160),
		console.Printable(done.Describe(), 300))
	for _, finding := range done.Findings[:min(len(done.Findings), maxFindings)] {
		_, _ = fmt.Fprintf(w, "        %s\n", console.Printable(finding, maxFinding))
	}
	if done.PullRequest != "" {
		_, _ = fmt.Fprintf(w, "        Pull request: %s\n", console.Printable(done.PullRequest, maxFinding))
	}
}

// earlierOf returns a line about the sessions that a very long chain has dropped; "" if the chain has dropped none.
func earlierOf(chain escalation.Chain) string {
	left := chain.Earlier
	if left.Sessions == 0 {
		return ""
	}
	return fmt.Sprintf("… %s, %s: in the records", plaintext.Count(left.Sessions, "earlier session"), left.CostText())
}

// writeGate writes a line that says why a gate was opened. If the gate is closed, the next line says who closed it and
// when. If the gate is open, the next line has the command that answers it.
func writeGate(w io.Writer, clock console.Clock, chainID string, gate escalation.Gate) {
	_, _ = fmt.Fprintf(w, "    Gate %s  %s  %s\n", gate.ID, operations.GatePlace(gate),
		console.Printable(gate.Headline(), 300))
	if gate.Answer != nil {
		_, _ = fmt.Fprintf(w, "        %s\n", closingOf(clock, *gate.Answer))
		return
	}
	_, _ = fmt.Fprintf(w, "        open since %s; answer with: %s\n", clock.Moment(gate.OpenedAt),
		console.AnswerCommand(chainID))
}

// WriteLineage writes the numbers of the sessions on one line, with arrows between them.
func WriteLineage(w io.Writer, title string, sessions []escalation.Session) {
	numbers := make([]string, len(sessions))
	for i := range sessions {
		numbers[i] = fmt.Sprintf("#%d", sessions[i].ID)
	}
	_, _ = fmt.Fprintf(w, "%s %s\n", title, strings.Join(numbers, " → "))
}

// markOf returns the symbol for the status of a session.
func markOf(status escalation.SessionStatus) string {
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

// figuresOf returns the cost and the duration of a session. For a running session, both are the values so far.
func figuresOf(
	snapshot operations.Snapshot, session *escalation.Session, now time.Time,
) (cost string, took time.Duration) {
	if session.Status == escalation.SessionRunning && snapshot.Live {
		return snapshot.SpentText(), max(now.Sub(session.StartedAt), 0)
	}
	return operations.SessionCost(session), durationOf(session)
}

func durationOf(session *escalation.Session) time.Duration {
	return time.Duration(session.DurationMS) * time.Millisecond
}
