package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Reviewed is the result of a reviewer's turn.
type Reviewed struct {
	// Commit is the commit that the reviewer has seen.
	Commit string
	// Verdict is nil if the reviewer gave no valid one. Problem then says why.
	Verdict *Verdict
	Problem string
}

// AfterReview returns the loop after a review. Without a valid verdict on the author's latest commit, the change is not
// reviewed, and a person decides.
func (l Loop) AfterReview(turn Reviewed) (Loop, Decision) {
	switch {
	case turn.Verdict == nil:
		return l.ask(StateReview, RuleNotReviewed, "the change is not reviewed: %s", turn.Problem)
	case len(turn.Verdict.problems()) > 0:
		return l.ask(StateReview, RuleNotReviewed, "the change is not reviewed: the verdict is invalid")
	case turn.Commit == "" || turn.Commit != l.Commit:
		return l.ask(StateReview, RuleNotReviewed,
			"the change is not reviewed: the review is about %s, and the commit is %s",
			short(turn.Commit), short(l.Commit))
	}
	sorted := l.sort(*turn.Verdict)
	next := l
	next.Reviewed, next.Open = turn.Commit, sorted.blocking
	for i := range next.Open {
		next.Named = max(next.Named, next.Open[i].Number)
	}
	var decision Decision
	status := turn.Verdict.Status
	named := len(turn.Verdict.Findings) > 0
	accepted := named && !slices.ContainsFunc(turn.Verdict.Findings, func(f Finding) bool { return !l.accepted(f) })
	if len(next.Open) == 0 && (status == NotReady && !accepted || status != Ready && !named) {
		next, decision = next.ask(StateAutoFix, RuleNoFindings,
			"the reviewer says %s, and names no finding that blocks: %s",
			status, plaintext.Cut(plaintext.Compact(turn.Verdict.Summary), 200))
	} else {
		next, decision = next.decide(sorted, l.Reviewed == "")
	}
	decision.Notes = sorted.notes
	return next, decision
}

// sorted holds the findings after a review by their effect.
type sorted struct {
	// blocking holds the findings that are open now. Each has a number.
	blocking []Finding
	// takenBack holds those P0 in blocking that the reviewer no longer holds against the change, although it does not
	// say that they are corrected.
	takenBack []Finding
	// notes says in one line each what became of the findings that were open before, and which findings do not block.
	notes []string
}

// sort returns the findings after a review by their effect. A finding that was open stays open until the reviewer
// answers for it. A finding of the verdict is a new one, whatever it is called.
func (l Loop) sort(verdict Verdict) (s sorted) {
	for _, open := range l.Open {
		s.answer(open, verdict)
	}
	number := l.Named
	for _, finding := range verdict.Findings {
		switch {
		case !finding.blocks():
			s.notes = append(s.notes, finding.Describe())
		case l.accepted(finding):
			s.notes = append(s.notes, "accepted by a person: "+finding.Describe())
		default:
			number++
			finding.Number, finding.Reviews, finding.Note = number, 1, ""
			s.blocking = append(s.blocking, finding)
		}
	}
	return s
}

// answer adds what became of an open finding.
func (s *sorted) answer(open Finding, verdict Verdict) {
	answer := verdict.about(open.Number)
	open.Reviews++
	switch {
	case answer == nil:
		s.notes = append(s.notes, fmt.Sprintf("finding %d stays open: the review does not say what became of it",
			open.Number))
	case answer.Now == Fixed:
		s.notes = append(s.notes, open.now("fixed", answer.Note))
		return
	case answer.Now == StillThere && (answer.Priority == "" || answer.Priority.blocks() ||
		open.Action == HumanRequired):
		if answer.Priority != "" && answer.Priority != open.Priority {
			s.notes = append(s.notes, open.now("rated "+string(answer.Priority)+" in place of "+string(open.Priority),
				answer.Note))
			// a P0 stays one until it is corrected, or a person decides
			open.Priority = min(open.Priority, answer.Priority)
		}
		open.Note = answer.Note
	default:
		word := "wrong"
		if answer.Now == StillThere {
			word = "rated " + string(answer.Priority)
		}
		s.notes = append(s.notes, open.now(word+" for the reviewer now", answer.Note))
		if open.Priority != P0 && open.Action != HumanRequired {
			return
		}
		open.Note = answer.Note
		s.takenBack = append(s.takenBack, open)
	}
	s.blocking = append(s.blocking, open)
}

// now describes in one line what became of a finding.
func (f Finding) now(state, note string) string {
	text := fmt.Sprintf("finding %d is %s", f.Number, state)
	if note != "" {
		text += ": " + note
	}
	return plaintext.Compact(fmt.Sprintf("%s (it was: %s)", text, f.Describe()))
}

// accepted reports whether a person has accepted this very finding: the same text and output at the same place, and no
// more severe.
func (l Loop) accepted(finding Finding) bool {
	return slices.ContainsFunc(l.Accepted, func(risk Finding) bool {
		return risk.same(finding) && risk.Priority <= finding.Priority // P0 is the most severe
	})
}

// decide returns the loop after a valid review whose findings are sorted.
func (l Loop) decide(s sorted, first bool) (Loop, Decision) {
	if len(s.blocking) == 0 {
		return l.approve()
	}
	next := l
	next.Stalled++
	if first || len(s.blocking) < l.Least {
		next.Least, next.Stalled = len(s.blocking), 0
	}
	needs := slices.DeleteFunc(slices.Clone(s.blocking), func(f Finding) bool { return f.Action != HumanRequired })
	often := slices.IndexFunc(s.blocking, func(f Finding) bool { return f.Reviews >= maxSameFinding })
	switch {
	case len(s.takenBack) > 0:
		return next.ask(StateAutoFix, RuleDropped, "the reviewer takes back what it does not call corrected: %s",
			describe(s.takenBack))
	case len(needs) > 0:
		return next.ask(StateAutoFix, RuleHumanRequired, "a person must decide: %s", describe(needs))
	case often >= 0:
		return next.ask(StateAutoFix, RuleRepeated, "after %d reviews it is still there: %s", s.blocking[often].Reviews,
			describe(s.blocking[often:often+1]))
	case next.Stalled >= maxWithoutProgress:
		return next.ask(StateAutoFix, RuleNoProgress, "%d corrections did not reduce the findings: %s",
			maxWithoutProgress, describe(s.blocking))
	case l.Limits.Fixes == 0:
		return next.ask(StateAutoFix, RuleLimit, "findings block: %s", describe(s.blocking))
	case l.Fixes >= l.Limits.Fixes:
		return next.ask(StateAutoFix, RuleLimit, "no further correction is allowed after %s: %s",
			plaintext.Count(l.Fixes, "correction"), describe(s.blocking))
	}
	next.Fixes++
	return next.to(StateAutoFix, RuleCorrections, "the author corrects: %s", describe(s.blocking))
}

// approve returns the loop after a review without a finding that blocks.
func (l Loop) approve() (Loop, Decision) {
	if len(l.ForPerson) > 0 {
		return l.ask(StateAutoFix, RuleForPerson, "the reviewer approves %s, and a person must, too: %s",
			short(l.Commit), strings.Join(l.ForPerson, "; "))
	}
	return l.to(StateApproved, RuleReviewed, "the reviewer approves %s", short(l.Commit))
}

// Progress counts the findings that block and did not block before, and those that blocked before and no longer do.
func (l Loop) Progress(before Loop) (found, fixed int) {
	has := func(findings []Finding, number int) bool {
		return slices.ContainsFunc(findings, func(f Finding) bool { return f.Number == number })
	}
	for _, finding := range l.Open {
		if !has(before.Open, finding.Number) {
			found++
		}
	}
	for _, finding := range before.Open {
		if !has(l.Open, finding.Number) {
			fixed++
		}
	}
	return found, fixed
}
