package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// State is a state of a loop.
type State string

// The states.
const (
	StateExecute      State = "execute"       // the author works
	StateQuality      State = "quality"       // the checks of the repository run
	StateQualityRetry State = "quality_retry" // the author repairs what the checks have found
	StateReview       State = "review"        // the reviewer reads the change
	StateAutoFix      State = "auto_fix"      // the author corrects what the reviewer has found
	StateGate         State = "gate"          // a person decides
	StateApproved     State = "approved"      // the change may be used
	StateAborted      State = "aborted"       // a person has ended the loop
)

// Role is the role of an agent in a loop.
type Role string

// The roles.
const (
	Author   Role = "author"
	Reviewer Role = "reviewer"
)

// Role returns whose session runs in the state; empty if no session does.
func (s State) Role() Role {
	switch s {
	case StateExecute, StateQualityRetry, StateAutoFix:
		return Author
	case StateReview:
		return Reviewer
	case StateQuality, StateGate, StateApproved, StateAborted:
		return ""
	}
	return ""
}

// Rule names the rule behind a decision of a loop.
type Rule string

// The rules.
const (
	RuleCommitted      Rule = "committed"      // the author has committed
	RuleAuthor         Rule = "author"         // the author's session has not done its work
	RuleNoCommit       Rule = "no_commit"      // the author's turn brought no new commit
	RuleTooLarge       Rule = "too_large"      // the change is too large for a review
	RulePlan           Rule = "plan"           // the author has removed something from the plan
	RuleChecked        Rule = "checked"        // the checks have passed, or there are none
	RuleCheckFailed    Rule = "check_failed"   // the checks have found something
	RuleNotChecked     Rule = "not_checked"    // the checks could not run
	RuleNotReviewed    Rule = "not_reviewed"   // there is no valid review of the commit
	RuleNoFindings     Rule = "no_findings"    // the reviewer is not content, and names no finding that blocks
	RuleDropped        Rule = "dropped"        // a review takes a P0 back, and does not say that it is corrected
	RuleHumanRequired  Rule = "human_required" // a finding needs the decision of a person
	RuleRepeated       Rule = "repeated"       // the same finding stayed open in too many reviews
	RuleNoProgress     Rule = "no_progress"    // corrections did not reduce the findings
	RuleLimit          Rule = "limit"          // there were enough corrections
	RuleCorrections    Rule = "corrections"    // the author corrects the findings
	RuleForPerson      Rule = "for_person"     // the reviewer approves, and only a person may
	RuleReviewed       Rule = "reviewed"       // the review leaves no finding that blocks
	RuleNotPushed      Rule = "not_pushed"     // the approved commit could not be pushed
	RuleRefused        Rule = "refused"        // no session may start, for example because a budget is spent
	RulePersonDecided  Rule = "person"         // a person has decided
	maxSameFinding          = 3
	maxWithoutProgress      = 2
)

// Limits limits the turns of a loop in which no person decides.
type Limits struct {
	// Fixes limits the turns in which the author corrects findings; 0 allows none.
	Fixes int `json:"fixes,omitempty"`
	// Retries limits the turns in which the author repairs what the checks have found.
	Retries int `json:"retries,omitempty"`
}

// Loop is the state of a loop of author and reviewer over one change. It is a value: each method After returns the next
// one.
type Loop struct {
	Limits Limits `json:"limits,omitzero"`
	State  State  `json:"state"`
	// Resume is the state that follows an answer at the gate that lets the loop continue. It is empty outside of the
	// gate.
	Resume State `json:"resume,omitempty"`
	// Before is the state in which the loop was when the author got a turn that nobody had planned; empty if the turn
	// follows its state. If the turn leaves nothing new, the loop goes on there.
	Before State `json:"before,omitempty"`
	// Commit is the author's latest commit, and Reviewed the commit that was reviewed last; empty if there is none.
	Commit   string `json:"commit,omitempty"`
	Reviewed string `json:"reviewed,omitempty"`
	// Tree is the hash of the files of Commit; empty if it is unknown.
	Tree string `json:"tree,omitempty"`
	// ForPerson lists why only a person may approve Commit.
	ForPerson []string `json:"for_person,omitempty"`
	// Open holds the findings that block. Named is the highest number that a finding has got.
	Open  []Finding `json:"open,omitempty"`
	Named int       `json:"named,omitempty"`
	// Accepted holds findings that a person has accepted: this text at this place, and nothing else of the kind.
	Accepted []Finding `json:"accepted,omitempty"`
	// Fixes and Retries count the author's turns since a person decided last.
	Fixes   int `json:"fixes,omitempty"`
	Retries int `json:"retries,omitempty"`
	// Least is the smallest number of open findings so far, and Stalled counts the reviews in a row that did not lower
	// it.
	Least   int `json:"least,omitempty"`
	Stalled int `json:"stalled,omitempty"`
}

// Decision explains the state that a loop has entered.
type Decision struct {
	State State `json:"state"`
	Rule  Rule  `json:"rule"`
	// Reason explains the decision in a sentence.
	Reason string `json:"reason"`
	// Notes says in one line each what became of the findings that were open before a review, and which findings do not
	// block.
	Notes []string `json:"notes,omitempty"`
}

// NewLoop returns a loop whose author works first.
func NewLoop(limits Limits) Loop { return Loop{Limits: limits, State: StateExecute} }

// NewReview returns a loop over a commit that is reviewed first.
func NewReview(limits Limits, commit string) Loop {
	return Loop{Limits: limits, State: StateReview, Commit: commit}
}

// Accepting returns the loop of the change that follows the one of an earlier loop. What a person has accepted there
// stays accepted.
func (l Loop) Accepting(earlier Loop) Loop {
	next := l
	next.Accepted, next.Named = slices.Concat(earlier.Accepted, l.Accepted), earlier.Named
	return next
}

// to returns the loop in another state.
func (l Loop) to(state State, rule Rule, format string, args ...any) (Loop, Decision) {
	next := l
	next.State, next.Resume = state, ""
	return next, Decision{State: state, Rule: rule, Reason: fmt.Sprintf(format, args...)}
}

// ask returns the loop at the gate. The argument resume is the state that follows if a person lets the loop continue.
func (l Loop) ask(resume State, rule Rule, format string, args ...any) (Loop, Decision) {
	next, decision := l.to(StateGate, rule, format, args...)
	next.Resume = resume
	return next, decision
}

// Authored is the result of an author's turn.
type Authored struct {
	// Commit is the commit that the turn has left, and Files the whole change up to it.
	Commit string
	Files  []File
	// Tree is the hash of the files of Commit. A commit with the files of the one before changes nothing.
	Tree  string
	Scope Scope
	// Problem says why the session has not done its work, or why its change is unknown; empty if neither holds.
	Problem string
	// Lost lists what the author has removed from the plan.
	Lost []string
	// Doubts lists further reasons why only a person may approve the change.
	Doubts []string
}

// AfterAuthor returns the loop after an author's turn. The turn must leave a new commit that changes something. If only
// a person may approve the change, it is reviewed first, so that the person sees the verdict.
func (l Loop) AfterAuthor(turn Authored) (Loop, Decision) {
	switch {
	case turn.Problem != "":
		if turn.Commit != "" && turn.Commit != l.Commit {
			return l.ask(l.State, RuleAuthor, "%s; it has committed %s", turn.Problem, short(turn.Commit))
		}
		return l.ask(l.State, RuleAuthor, "%s", turn.Problem)
	case l.Before != "" && turn.Commit != "" && turn.Commit == l.Commit:
		next := l.Inspected(turn) // its checks have run again
		next.Before = ""
		return next.to(l.Before, RuleNoCommit, "the author has nothing to add to %s", short(l.Commit))
	case l.Reviewed != "" && turn.Tree != "" && turn.Tree != l.Tree && len(turn.Files) == 0:
		return l.ask(l.State, RuleNoCommit, "the author has taken back all that %s has changed", short(l.Commit))
	case turn.Commit == "" || turn.Commit == l.Commit || len(turn.Files) == 0 || turn.Tree != "" && turn.Tree == l.Tree:
		return l.ask(l.State, RuleNoCommit, "the author's turn has left no new commit that changes something")
	}
	next := l.Inspected(turn)
	next.Commit, next.Tree, next.Before = turn.Commit, turn.Tree, ""
	if len(turn.Lost) > 0 {
		return next.ask(l.State, RulePlan, "the author has changed the plan itself: %s", strings.Join(turn.Lost, "; "))
	}
	if reason := turn.Scope.TooLarge(turn.Files); reason != "" {
		return next.ask(l.State, RuleTooLarge, "%s", reason)
	}
	return next.to(StateQuality, RuleCommitted, "the author has committed %s", short(turn.Commit))
}

// Inspected returns the loop with the reasons why only a person may approve the change of a turn. Checks that run again
// can find more of them: which files they run is known only then.
func (l Loop) Inspected(turn Authored) Loop {
	next := l
	next.ForPerson = append(turn.Scope.ForPerson(turn.Files), turn.Doubts...)
	return next
}

// QualityResult is the result of the checks of a repository.
type QualityResult string

// The results.
const (
	QualityPassed  QualityResult = "passed"
	QualityFailed  QualityResult = "failed"
	QualityNone    QualityResult = "none"    // the repository has no checks
	QualityUnknown QualityResult = "unknown" // the checks could not run
)

// AfterQuality returns the loop after the checks have run. The argument problem says why the result is not
// QualityPassed.
func (l Loop) AfterQuality(result QualityResult, problem string) (Loop, Decision) {
	switch result {
	case QualityPassed:
		return l.to(StateReview, RuleChecked, "the checks have passed")
	case QualityNone:
		return l.to(StateReview, RuleChecked, "the repository has no checks")
	case QualityFailed:
		if l.Retries >= l.Limits.Retries {
			return l.ask(StateQualityRetry, RuleCheckFailed, "the checks have failed: %s", problem)
		}
		next := l
		next.Retries++
		return next.to(StateQualityRetry, RuleCheckFailed, "the checks have failed: %s", problem)
	case QualityUnknown:
	}
	return l.ask(StateQuality, RuleNotChecked, "the checks could not run: %s", problem)
}

// Refused returns the loop at the gate because no session may start in its state. The argument reason says why.
func (l Loop) Refused(reason string) (Loop, Decision) {
	return l.ask(l.State, RuleRefused, "%s", reason)
}

// Turned returns the loop in the author's turn that follows its state: the correction of what is open or, if nothing
// is, further work.
func (l Loop) Turned() Loop {
	next := l
	if l.State == StateGate {
		next.State = l.Resume
	}
	if next.State.Role() != Author {
		next.Before, next.State = next.State, StateExecute
		if len(l.Open) > 0 {
			next.State = StateAutoFix
		}
	}
	next.Resume = ""
	return next
}

// Unsettled returns the loop at the gate because its change is as its latest review has left it, and nobody works on it
// any more. The argument why is the reason of that review.
func (l Loop) Unsettled(why string) (Loop, Decision) {
	return l.ask(l.State, RuleLimit, "nothing else is left to do, and %s is not pushed: %s", short(l.Commit), why)
}

// AfterPush returns the loop after an attempt to push the approved commit. The argument problem says why it failed;
// empty if it did not.
func (l Loop) AfterPush(problem string) (Loop, Decision) {
	if problem == "" {
		return l.to(l.State, RuleReviewed, "%s is approved and pushed", short(l.Commit))
	}
	return l.ask(StateApproved, RuleNotPushed, "%s is approved, and could not be pushed: %s", short(l.Commit), problem)
}

// AfterGate returns the loop after a person's answer at the gate. If the loop continues, its limits apply anew. An
// override approves the latest commit and accepts the open findings; without a commit there is nothing to approve.
func (l Loop) AfterGate(action escalation.GateAction) (Loop, Decision) {
	switch action {
	case escalation.GateContinue, escalation.GateFix:
		next := l
		next.Fixes, next.Retries, next.Stalled, next.Least = 0, 0, 0, len(l.Open)
		next.Open = slices.Clone(l.Open)
		for i := range next.Open {
			next.Open[i].Reviews = 0
		}
		return next.to(l.Resume, RulePersonDecided, "a person lets the loop go on with %s", l.Resume)
	case escalation.GateOverride:
		if l.Commit == "" {
			return l.to(StateAborted, RulePersonDecided, "a person has ended the loop, and there is no commit")
		}
		next := l
		next.Accepted, next.Open = slices.Concat(l.Accepted, l.Open), nil
		return next.to(StateApproved, RulePersonDecided, "a person approves %s", short(l.Commit))
	case escalation.GateAbort, escalation.GateRecheck:
	}
	return l.to(StateAborted, RulePersonDecided, "the loop was ended")
}

// Approves reports whether the loop approves a commit. The approval of one commit says nothing about any other.
func (l Loop) Approves(commit string) bool {
	return l.State == StateApproved && commit != "" && commit == l.Commit
}

// Unsolved describes the findings that block, which an override would accept; empty if there is none.
func (l Loop) Unsolved() string { return describe(l.Open) }

// maxDescribed limits the findings that one reason contains.
const maxDescribed = 3

// describe describes findings in one line.
func describe(findings []Finding) string {
	var lines []string
	for _, finding := range findings[:min(len(findings), maxDescribed)] {
		lines = append(lines, plaintext.Cut(finding.Describe(), 200))
	}
	if left := len(findings) - maxDescribed; left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(lines, "; ")
}

// short returns the beginning of a commit's hash.
func short(commit string) string {
	const length = 12
	if commit == "" {
		return "no commit"
	}
	return commit[:min(len(commit), length)]
}
