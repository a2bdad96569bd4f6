package daily

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// stateOf describes the state of a chain in a few words.
func stateOf(now operations.Snapshot) string {
	switch {
	case now.Chain.Outcome != "":
		return escalation.InWords(now.Chain.Outcome)
	case !now.Live:
		return "ended without an outcome"
	case now.Chain.OpenGate() != nil:
		return "waits for a person"
	case now.Chain.Wait != nil:
		return "waits"
	}
	return "running"
}

// writeStartedPlan writes the phases that were found in a plan, and what to know before the work on it begins.
func writeStartedPlan(w io.Writer, width int, started operations.PlanStarted) {
	plan := started.Plan
	if plan == nil {
		_, _ = fmt.Fprintln(w, "No worker has read the plan yet.")
		return
	}
	if started.Warning != "" {
		console.WriteLabelled(w, "Warning: ", started.Warning, width)
	}
	if plan.Task == escalation.PlanReviewed {
		return
	}
	for _, phase := range plan.Phases {
		status := ""
		if phase.Status == escalation.PhaseSkipped {
			status = " (not carried out)"
		}
		_, _ = fmt.Fprintln(w, console.Cut("  "+console.Printable(phase.Name(), 200)+status, width))
	}
}

// writePlan writes the state of a plan: its phases, its open gate, and where its commits are.
func writePlan(w io.Writer, clock console.Clock, width int, now operations.Snapshot) {
	chain, plan := now.Chain, now.Chain.Plan
	_, _ = fmt.Fprintf(w, "Plan %s\n", console.Printable(operations.PlanTitle(plan), 200))
	_, _ = fmt.Fprintf(w, "%s %s  %s  %s\n\n",
		taskName(plan.Task), console.PrintableID(chain.ID), stateOf(now), now.CostText())
	writePhases(w, width, plan)
	_, _ = fmt.Fprintln(w)
	writeCommits(w, plan)
	if gate := chain.OpenGate(); gate != nil && chain.Outcome == "" {
		writeGate(w, clock, chain.ID, *gate)
	}
	if chain.Outcome != "" {
		_, _ = fmt.Fprintf(w, "Outcome: %s — %s\n", escalation.InWords(chain.Outcome),
			console.Printable(chain.Reason, 300))
	}
}

func taskName(task escalation.PlanTask) string {
	if task == escalation.PlanReviewed {
		return "Review"
	}
	return "Run"
}

// phaseTableWidth is the minimum width of the table in columns. On a narrower terminal, each phase has lines of its
// own.
const phaseTableWidth = 100

// writePhases writes the phases of a plan.
func writePhases(w io.Writer, width int, plan *escalation.PlanState) {
	switch {
	case len(plan.Phases) == 0:
		_, _ = fmt.Fprintln(w, "Its phases are not read yet.")
	case width == console.AnyWidth || width >= phaseTableWidth:
		writePhaseTable(w, width, plan)
	default:
		for _, phase := range plan.Phases {
			writePhaseBlock(w, width, plan, phase)
		}
	}
}

func writePhaseTable(w io.Writer, width int, plan *escalation.PlanState) {
	rows := [][]string{{"PHASE", "STATUS", "COMMIT", "TURNS", "REVIEWS", "FIXED", "COST", "REVIEW COST", "PER FIX"}}
	for _, phase := range plan.Phases {
		fixed, perFix := operations.PhaseFixes(phase)
		row := []string{
			phaseName(phase), phaseProgress(plan, phase), operations.ShortCommit(phase.Commit), "", "", fixed, "", "",
			perFix,
		}
		if phase.Turns > 0 {
			row[3], row[6] = strconv.Itoa(phase.Turns), phase.CostText()
		}
		if phase.Reviews > 0 {
			row[4], row[7] = strconv.Itoa(phase.Reviews), phase.ReviewCostText()
		}
		rows = append(rows, row)
	}
	console.CutTable(w, rows, width)
}

func writePhaseBlock(w io.Writer, width int, plan *escalation.PlanState, phase escalation.PlanPhase) {
	line := phaseName(phase) + "  " + phaseProgress(plan, phase)
	if phase.Commit != "" {
		line += "  " + operations.ShortCommit(phase.Commit)
	}
	_, _ = fmt.Fprintln(w, console.Cut(line, width))
	if phase.Turns+phase.Reviews == 0 {
		return
	}
	facts := []string{plaintext.Count(phase.Turns, "turn"), plaintext.Count(phase.Reviews, "review"), phase.CostText()}
	if totals := phase.ReviewTotals.Describe(); totals != "" {
		facts = append(facts, totals)
	}
	console.WriteLabelled(w, "  ", strings.Join(facts, ", "), width)
}

func phaseName(phase escalation.PlanPhase) string {
	return console.Printable(operations.PhaseName(phase), 40)
}

func phaseProgress(plan *escalation.PlanState, phase escalation.PlanPhase) string {
	return console.Printable(operations.PhaseProgress(plan, phase), 40)
}

// writeCommits writes where the commits of a plan are.
func writeCommits(w io.Writer, plan *escalation.PlanState) {
	if plan.Branch != "" {
		_, _ = fmt.Fprintf(w, "Branch %s", console.Printable(plan.Branch, 200))
		if plan.Commit != "" {
			_, _ = fmt.Fprintf(w, ", approved up to %s", operations.ShortCommit(plan.Commit))
		}
		if plan.Pushed != "" {
			_, _ = fmt.Fprintf(w, ", pushed to %s", console.Printable(plan.Pushed, 200))
		}
		_, _ = fmt.Fprintln(w)
	}
	if plan.PullRequest != "" {
		_, _ = fmt.Fprintf(w, "Pull request %s\n", console.Printable(plan.PullRequest, 300))
	}
}
