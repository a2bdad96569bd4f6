package review

import (
	"maps"
	"path"
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
	// Changed holds the lines that have changed since the previous review. It counts only if there was one.
	Changed map[string][]Span
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
		return l.ask(StateReview, RuleNotReviewed, "the change is not reviewed: the review is about %s, and the commit is %s",
			short(turn.Commit), short(l.Commit))
	case turn.Verdict.Status != Ready && len(turn.Verdict.Findings) == 0:
		return l.ask(StateAutoFix, RuleNoFindings, "the reviewer says %s, and names no finding", turn.Verdict.Status)
	}
	sorted := l.sort(turn)
	next := l
	next.Reviewed, next.Open = turn.Commit, sorted.blocking
	next, decision := next.decide(sorted, l.Reviewed == "")
	decision.Notes = sorted.notes
	return next, decision
}

// sorted holds the findings of a review by their effect.
type sorted struct {
	blocking []Finding
	// late holds those P0 in blocking that are outside of the lines that a second review is about.
	late []Finding
	// dropped holds those in blocking that the reviewer no longer names.
	dropped []Finding
	notes   []string
}

// sort returns the findings by their effect. A second review closes the first one: it is about the open findings and the
// lines that have changed since. Other findings of a second review only block if they are P0.
func (l Loop) sort(turn Reviewed) sorted {
	var s sorted
	for _, finding := range turn.Verdict.Findings {
		switch {
		case !finding.Priority.blocks():
			s.notes = append(s.notes, finding.Describe())
		case l.accepted(finding):
			s.notes = append(s.notes, "accepted by a person: "+finding.Describe())
		case l.Reviewed == "" || l.isOpen(finding.Fingerprint) || finding.within(turn.Changed):
			s.blocking = append(s.blocking, finding)
		case finding.Priority == P0:
			s.blocking, s.late = append(s.blocking, finding), append(s.late, finding)
		default:
			s.notes = append(s.notes, "not about what has changed since the review before: "+finding.Describe())
		}
	}
	for _, open := range l.Open {
		named := func(f Finding) bool { return f.Fingerprint == open.Fingerprint && f.Priority.blocks() }
		somewhere := Finding{File: open.File}
		if open.Priority == P0 && !slices.ContainsFunc(turn.Verdict.Findings, named) && !somewhere.within(turn.Changed) {
			s.blocking, s.dropped = append(s.blocking, open), append(s.dropped, open)
		}
	}
	return s
}

// accepted reports whether a person has accepted the finding, and it is no more severe since and has no new evidence.
func (l Loop) accepted(finding Finding) bool {
	return slices.ContainsFunc(l.Accepted, func(risk Finding) bool {
		return risk.Fingerprint == finding.Fingerprint && risk.File == finding.File && risk.Output == finding.Output &&
			risk.Priority <= finding.Priority // P0 is the most severe
	})
}

func (l Loop) isOpen(fingerprint string) bool {
	return slices.ContainsFunc(l.Open, func(open Finding) bool { return open.Fingerprint == fingerprint })
}

// within reports whether the finding is about changed lines. If the finding names no file or no line, its evidence may be new.
// A reviewer may name a file from the directory of the chain.
func (f Finding) within(changed map[string][]Span) bool {
	if f.File == "" {
		return true
	}
	file := path.Clean(f.File)
	names := slices.Sorted(maps.Keys(changed)) //workflowcheck:ignore // sorted
	for _, name := range names {
		if name != file && !strings.HasSuffix(name, "/"+file) {
			continue
		}
		if f.Line == 0 || slices.ContainsFunc(changed[name], func(span Span) bool { return span.From <= f.Line && f.Line <= span.To }) {
			return true
		}
	}
	return false
}

// decide returns the loop after a valid review whose findings are sorted.
func (l Loop) decide(s sorted, first bool) (Loop, Decision) {
	if len(s.blocking) == 0 {
		return l.approve()
	}
	next, often := l.count(s.blocking)
	next.Stalled++
	if first || len(s.blocking) < l.Least {
		next.Least, next.Stalled = len(s.blocking), 0
	}
	needs := slices.DeleteFunc(slices.Clone(s.blocking), func(f Finding) bool { return f.Action != HumanRequired })
	switch {
	case len(s.late) > 0:
		return next.ask(StateAutoFix, RuleLate, "a second review found what the first did not: %s", describe(s.late))
	case len(s.dropped) > 0:
		return next.ask(StateAutoFix, RuleDropped, "the reviewer no longer objects to what nobody has corrected: %s", describe(s.dropped))
	case len(needs) > 0:
		return next.ask(StateAutoFix, RuleHumanRequired, "a person must decide: %s", describe(needs))
	case often != "":
		return next.ask(StateAutoFix, RuleRepeated, "%s was found %d times", often, maxSameFingerprint)
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

// count counts the findings that block. It returns the fingerprint of one that has come too often; empty if none has.
func (l Loop) count(blocking []Finding) (Loop, string) {
	var often string
	seen := slices.Clone(l.Seen)
	for _, finding := range blocking {
		at := slices.IndexFunc(seen, func(one Seen) bool { return one.Fingerprint == finding.Fingerprint })
		if at < 0 {
			at = len(seen)
			seen = append(seen, Seen{Fingerprint: finding.Fingerprint})
		}
		seen[at].Times++
		if seen[at].Times >= maxSameFingerprint {
			often = finding.Fingerprint
		}
	}
	next := l
	next.Seen = seen
	return next, often
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
	for _, finding := range l.Open {
		if !before.isOpen(finding.Fingerprint) {
			found++
		}
	}
	for _, finding := range before.Open {
		if !l.isOpen(finding.Fingerprint) {
			fixed++
		}
	}
	return found, fixed
}
