package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// newReviewedWorld returns a world in which Tier 2 repairs, every repair commits something, and a reviewer finds it
// ready.
func newReviewedWorld(t *testing.T, mode escalation.ReviewMode, tiers ...tierScript) *world {
	t.Helper()
	w := newGatedWorld(t, append([]tierScript{concludes(escalation.VerdictEscalate, 0.03)}, tiers...)...)
	w.policy.Review = escalation.ReviewPolicy{
		Mode: mode, MaxFiles: 9, MaxLines: 99,
		Reviewer: escalation.TierPolicy{Model: "reader", ContextWindow: 100_000, Timeout: escalation.Duration(time.Minute), BudgetUSD: 0.5},
	}
	w.change = func(session int) *activities.Change {
		return &activities.Change{
			Branch: "claudeops/x", Base: "b0", Commit: fmt.Sprint("c", session), Files: []review.File{{Path: "compose.yaml", Listed: true, Added: 1}},
			Checks: review.QualityPassed, Fork: "b0", Pack: []byte(fmt.Sprint(session)),
		}
	}
	w.review = finds()
	return w
}

// finds returns a reviewer with these findings.
func finds(findings ...review.Finding) func(activities.RunReviewInput) (activities.RunReviewResult, error) {
	verdict := review.Verdict{Status: review.Ready, Summary: "read", Findings: append([]review.Finding{}, findings...)}
	if len(findings) > 0 {
		verdict.Status = review.NotReady
	}
	return func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		verdict := answered(verdict, input.Before)
		return activities.RunReviewResult{Verdict: &verdict, Report: escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.1}, ReportedSessionID: input.SessionID, Attempts: 1,
			Verdict: &escalation.Verdict{Status: escalation.VerdictStatus(verdict.Status), Summary: verdict.Summary},
		}}, nil
	}
}

// answered returns a verdict that says of each open finding whether it is still there: whether the verdict names it
// again.
func answered(verdict review.Verdict, open []review.Finding) review.Verdict {
	said := verdict
	said.Findings = slices.Clone(verdict.Findings)
	for _, before := range open {
		same := func(now review.Finding) bool { return now.Fingerprint == before.Fingerprint }
		now := review.Answer{Number: before.Number, Now: review.Fixed}
		if slices.ContainsFunc(said.Findings, same) {
			now.Now, now.Note = review.StillThere, "as before"
			said.Findings = slices.DeleteFunc(said.Findings, same)
		}
		said.Answers = append(said.Answers, now)
	}
	return said
}

// opened returns the first finding as it is open after its review.
func opened(finding review.Finding) review.Finding {
	finding.Number, finding.Reviews = 1, 1
	return finding
}

func TestAdvisoryReview(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictResolved, 0.5))
	people := w.listen()
	var asked activities.RunReviewInput
	ready := w.review
	w.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		asked = input
		return ready(input)
	}
	result, err := w.run(t, workflows.ChainInput{Prompt: "look at jellyfin"})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, result.Sessions, 3)
	reviewer := result.Sessions[2]
	require.Equal(t, []any{"reader", 0.5, escalation.PurposeReview, int64(0)},
		[]any{reviewer.Model, reviewer.BudgetUSD, reviewer.Purpose, reviewer.ParentID})
	require.Equal(t, w.policy.Tiers[0].AllowedTools, asked.Policy.Tiers[0].AllowedTools, "the reviewer has the permissions of Tier 1")
	require.Contains(t, people.got[0].Text, "Review: approved: the reviewer approves c2")
	require.Equal(t, []string{"look at jellyfin", "what it saw\n"}, []string{asked.Request, asked.Problem})
	require.True(t, result.Reviews[0].Approved)
	require.InDelta(t, 0.63, result.CostUSD, 1e-9)
	require.Len(t, w.closed, 3)
	requireRecorded(t, result.Events, w.events)
}

// TestNoReview checks when nobody reviews.
func TestNoReview(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"off":                func(w *world) { w.policy.Review.Mode = escalation.ReviewNone },
		"nothing committed":  func(w *world) { w.change = nil },
		"not done":           func(w *world) { w.tiers[1] = concludes(escalation.VerdictFailed, 0.5) },
		"stopped by a limit": func(w *world) { w.tiers[1] = ends(escalation.SessionTimedOut) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictResolved, 0.5))
			w.policy.Gate.Timeout = 0
			change(w)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Len(t, result.Sessions, 2)
			require.Empty(t, result.Reviews)
		})
	}
}

// TestOnlyTheLastTierIsReviewed checks that commits of a tier that escalates are reviewed with those of the next one.
func TestOnlyTheLastTierIsReviewed(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictEscalate, 0.5), concludes(escalation.VerdictResolved, 2))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, result.Reviews, 1)
	require.Equal(t, "c3", result.Reviews[0].Commit)
	require.Equal(t, result.Sessions[2].SessionID, result.Reviews[0].AuthorID)
}

// TestNotReviewed checks that a review that does not take place is no approval, and that the chain ends as its author
// concludes.
func TestNotReviewed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*world)
		sessions int
		rule     review.Rule
		says     string
	}{
		"the budget is spent": {func(w *world) { w.policy.ChainBudgetUSD = 0.53 }, 2, review.RuleNotReviewed, "cannot start"},
		"the reviewer fails": {func(w *world) {
			w.review = func(activities.RunReviewInput) (activities.RunReviewResult, error) {
				return activities.RunReviewResult{}, temporal.NewNonRetryableApplicationError("no model", activities.ErrorTypeAgent, nil)
			}
		}, 3, review.RuleNotReviewed, "no model"},
		"no verdict": {func(w *world) {
			w.review = func(activities.RunReviewInput) (activities.RunReviewResult, error) {
				return activities.RunReviewResult{Problem: "it says nothing", Report: escalation.Report{Status: escalation.SessionCompleted}}, nil
			}
		}, 3, review.RuleNotReviewed, "it says nothing"},
		"too large": {func(w *world) { w.policy.Review.MaxFiles = 0 }, 2, review.RuleTooLarge, "1 files"},
		"unknown": {func(w *world) {
			w.change = func(int) *activities.Change { return &activities.Change{Problem: "git says no"} }
		}, 2, review.RuleAuthor, "git says no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictResolved, 0.5))
			c.change(w)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.Len(t, result.Sessions, c.sessions)
			require.Len(t, result.Reviews, 1)
			require.Equal(t, []any{string(c.rule), false}, []any{result.Reviews[0].Rule, result.Reviews[0].Approved}, result.Reviews[0].Reason)
			require.Contains(t, result.Reviews[0].Reason, c.says)
			requireRecorded(t, result.Events, w.events)
			closed := map[string]int{}
			for _, one := range w.closed {
				closed[one.SessionID]++
			}
			for _, session := range result.Sessions {
				require.Equal(t, 1, closed[session.SessionID], "each record is closed once")
			}
		})
	}
}

// TestGateAfterAReview checks that the gate of a reviewed session offers to continue the author, and not the reviewer.
func TestGateAfterAReview(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictNeedsHuman, 0.5), concludes(escalation.VerdictResolved, 0.5))
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateContinue, "go on"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, result.Sessions[1].SessionID, gate.Continuation.SessionID)
	require.Equal(t, escalation.TierSafeRepair, gate.Tier)
	require.Equal(t, result.Sessions[1].SessionID, w.ran[2].ParentSessionID)
	require.Len(t, result.Reviews, 2)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
}

// TestCancelledReview cancels a chain while the reviewer works.
func TestCancelledReview(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictResolved, 0.5))
	w.tierTakes = 10 * time.Minute
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 25*time.Minute)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	encoded, err := w.env.QueryWorkflow(workflows.ChainQuery)
	require.NoError(t, err)
	var chain escalation.Chain
	require.NoError(t, encoded.Get(&chain))
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Equal(t, string(review.RuleNotReviewed), chain.Reviews[0].Rule)
	require.Equal(t, escalation.SessionStopped, w.closed[len(w.closed)-1].Report.Status)
	requireRecorded(t, chain.Events, w.events)
}

// objection is a finding that the author can correct.
func objection(fingerprint string) review.Finding {
	return review.Finding{
		Fingerprint: fingerprint, Priority: review.P1, Action: review.AutoFix, File: "compose.yaml", Line: 4, Text: "the port is wrong",
	}
}

// inTurn returns a reviewer that gives these verdicts one after the other, and the last one again and again.
func inTurn(t *testing.T, turns ...func(activities.RunReviewInput) (activities.RunReviewResult, error)) (
	reviewer func(activities.RunReviewInput) (activities.RunReviewResult, error), asked *[]activities.RunReviewInput,
) {
	t.Helper()
	asked = &[]activities.RunReviewInput{}
	return func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		*asked = append(*asked, input)
		return turns[min(len(*asked), len(turns))-1](input)
	}, asked
}

// TestRequiredReview lets an author correct what the reviewer finds. Only the approved commit is pushed.
func TestRequiredReview(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewRequired, repeated(2, concludes(escalation.VerdictResolved, 0.5))...)
	w.policy.Review.MaxFixes = 3
	reviewer, asked := inTurn(t, finds(objection("wrong-port")), finds())
	w.review = reviewer
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, result.Sessions, 5)
	author, again := result.Sessions[1], result.Sessions[3]
	require.Equal(t, []any{escalation.PurposeContinuation, escalation.ReasonCorrection, author.ID},
		[]any{again.Purpose, again.ContinuityReason, again.ParentID})
	correction := w.ran[2]
	require.Equal(t, author.SessionID, correction.ParentSessionID)
	require.Equal(t, &activities.Correction{Commit: "c2", Findings: []review.Finding{opened(objection("wrong-port"))}}, correction.Correction)
	require.Equal(t, "c2", correction.Since)
	require.Empty(t, correction.Guidance)
	require.Equal(t, []any{true, activities.Checkpoint{Commit: "c2", Base: "b0", Pack: []byte("2")}}, []any{correction.Carry, correction.At})
	require.Equal(t, []review.Finding{opened(objection("wrong-port"))}, (*asked)[1].Before)
	require.Equal(t, []activities.PushRequest{{Branch: "claudeops/x", Commit: "c3", Base: "b0", Pack: []byte("3")}}, w.pushed)
	require.Equal(t, []bool{false, true}, []bool{result.Reviews[0].Approved, result.Reviews[1].Approved})
	require.Equal(t, []string{"", "https://git.example.org/infra"}, []string{result.Reviews[0].Pushed, result.Reviews[1].Pushed})
	require.Equal(t, escalation.ReviewTotals{
		Found: 1, Fixed: 1, ReviewCostUSD: result.Sessions[2].CostUSD + result.Sessions[4].CostUSD,
		CostPerFixUSD: result.Sessions[2].CostUSD + result.Sessions[4].CostUSD,
	}, result.Reviewed)
	requireRecorded(t, result.Events, w.events)
}

// TestCorrectionInAConversationThatIsRefused refuses the conversation in which an author should correct its change. The
// correction begins in a new conversation, once, and knows why.
func TestCorrectionInAConversationThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, ending := range []escalation.Ending{escalation.EndingUnusable, escalation.EndingRefused} {
		refuses := func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			return escalation.Report{
				Status: escalation.SessionFailed, Ending: ending, Error: "it says no", Attempts: 1, ReportedSessionID: input.SessionID,
			}, nil
		}
		for name, tiers := range map[string][]tierScript{
			"once":  {concludes(escalation.VerdictResolved, 0.5), refuses, concludes(escalation.VerdictResolved, 0.5)},
			"twice": {concludes(escalation.VerdictResolved, 0.5), refuses, refuses},
		} {
			t.Run(string(ending)+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newReviewedWorld(t, escalation.ReviewRequired, tiers...)
				w.policy.Review.MaxFixes = 3
				w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
				w.answerAfter(time.Hour, said(escalation.GateAbort, ""))
				result, err := w.run(t, workflows.ChainInput{})
				require.NoError(t, err)
				require.Len(t, w.ran, 4)
				again := w.ran[3]
				require.Equal(t, escalation.ContinuityHandoff, again.Continuity)
				require.Len(t, again.Correction.Findings, 1)
				require.Equal(t, "wrong-port", again.Correction.Findings[0].Fingerprint)
				require.Equal(t, ending == escalation.EndingRefused, strings.Contains(again.Handoff.Remediation, "it says no"))
				if name == "twice" {
					require.Equal(t, escalation.OutcomeAborted, result.Outcome, "a person decides")
					return
				}
				require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
				require.Len(t, w.pushed, 1)
			})
		}
	}
}

// TestCorrectionThatLeavesNothing lets an author remove its commits when it should correct. A person decides: the chain
// does not end as the author says.
func TestCorrectionThatLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, nothing := range map[string]func() *activities.Change{
		"no commit": func() *activities.Change { return nil },
		"the same files": func() *activities.Change {
			return &activities.Change{
				Branch: "claudeops/x", Base: "b0", Commit: "c3", Tree: "t", Files: []review.File{{Path: "compose.yaml", Listed: true, Added: 1}},
				Checks: review.QualityPassed,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCorrectionThatLeavesNothing(t, nothing)
		})
	}
}

func testCorrectionThatLeavesNothing(t *testing.T, nothing func() *activities.Change) {
	t.Helper()
	w := newReviewedWorld(t, escalation.ReviewRequired, repeated(2, concludes(escalation.VerdictResolved, 0.5))...)
	w.policy.Review.MaxFixes = 3
	changes := func(number int) *activities.Change {
		return &activities.Change{
			Branch: "claudeops/x", Base: "b0", Commit: fmt.Sprint("c", number), Tree: "t", Files: []review.File{{Path: "compose.yaml", Listed: true, Added: 1}},
			Checks: review.QualityPassed,
		}
	}
	w.change = func(session int) *activities.Change {
		if session == 3 {
			return nothing()
		}
		return changes(session)
	}
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, "the port is right"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, "no new commit")
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome, result.Reason)
	require.Equal(t, "c2", w.pushed[0].Commit, "what the first turn has committed is not lost")
}

// TestRequiredReviewOfAFullConversation has a change corrected by a new session, because the author's conversation is
// full.
func TestRequiredReviewOfAFullConversation(t *testing.T) {
	t.Parallel()
	full := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		t.Helper()
		report, err := concludes(escalation.VerdictResolved, 0.5)(t, input)
		report.ContextTokens = 170_000
		return report, err
	}
	w := newReviewedWorld(t, escalation.ReviewRequired, repeated(2, full)...)
	w.policy.Review.MaxFixes = 3
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, escalation.PurposeTier, result.Sessions[3].Purpose)
	correction := w.ran[2]
	require.NotEqual(t, result.Sessions[1].SessionID, correction.ParentSessionID)
	require.False(t, correction.Continues)
	require.Equal(t, []review.Finding{opened(objection("wrong-port"))}, correction.Correction.Findings)
}

// TestRequiredReviewAsksAPerson checks the answers at the gate of a change that is not approved.
func TestRequiredReviewAsksAPerson(t *testing.T) {
	t.Parallel()
	unreachable := func(activities.RunReviewInput) (activities.RunReviewResult, error) {
		return activities.RunReviewResult{Problem: "it says nothing", Report: escalation.Report{Status: escalation.SessionCompleted}}, nil
	}
	for name, c := range map[string]struct {
		reviews []func(activities.RunReviewInput) (activities.RunReviewResult, error)
		change  func(*world)
		answer  escalation.GateAction
		reason  string
		outcome escalation.Outcome
		pushed  []string
		tiers   int
		offers  bool
	}{
		"a reviewer that always finds something": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("a"))},
			answer:  escalation.GateAbort, reason: "after 3 reviews it is still there", outcome: escalation.OutcomeAborted, tiers: 4,
		},
		"override": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("a"))},
			answer:  escalation.GateOverride, reason: "after 3 reviews it is still there", outcome: escalation.OutcomeOverridden, tiers: 4, pushed: []string{"c4"},
		},
		"fix": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){
				finds(objection("a")), finds(objection("a")), finds(objection("a")), finds(),
			},
			answer: escalation.GateFix, reason: "after 3 reviews it is still there", outcome: escalation.OutcomeResolved, tiers: 5, pushed: []string{"c5"},
		},
		"no new commit": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(objection("a"))},
			change: func(w *world) {
				first := w.change(2)
				w.change = func(int) *activities.Change { return first }
			},
			answer: escalation.GateAbort, reason: "no new commit", outcome: escalation.OutcomeAborted, tiers: 3, offers: true,
		},
		"the review is repeated": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){unreachable, finds()},
			answer:  escalation.GateFix, reason: "it says nothing", outcome: escalation.OutcomeResolved, tiers: 2, pushed: []string{"c2"},
		},
		"a test is changed": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds()},
			change: func(w *world) {
				w.change = func(int) *activities.Change {
					return &activities.Change{Branch: "b", Commit: "c2", Files: []review.File{{Path: "tests/a", Added: 1}}, Checks: review.QualityNone}
				}
			},
			answer: escalation.GateOverride, reason: `review.paths do not name: tests/a`, outcome: escalation.OutcomeOverridden, tiers: 2, pushed: []string{"c2"},
		},
		"the push fails": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds()},
			change:  func(w *world) { w.pushProblem = "no route" },
			answer:  escalation.GateAbort, reason: "no route", outcome: escalation.OutcomeAborted, tiers: 2, pushed: []string{"c2", "c2", "c2"},
		},
		"the checks fail": {
			reviews: []func(activities.RunReviewInput) (activities.RunReviewResult, error){finds()},
			change: func(w *world) {
				commit := w.change
				w.change = func(session int) *activities.Change {
					change := commit(session)
					change.Checks, change.CheckOutput = review.QualityFailed, "exit code 1"
					return change
				}
			},
			answer: escalation.GateAbort, reason: "exit code 1", outcome: escalation.OutcomeAborted, tiers: 5, offers: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewRequired, repeated(4, concludes(escalation.VerdictNeedsHuman, 0.1))...)
			for i := range w.tiers[1:] {
				w.tiers[i+1] = concludes(escalation.VerdictResolved, 0.1)
			}
			w.policy.Review.MaxFixes = 3
			w.review, _ = inTurn(t, c.reviews...)
			if c.change != nil {
				c.change(w)
			}
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(c.answer, "as you see it"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, []any{escalation.RuleReview, escalation.GateNeedsHuman, escalation.TierSafeRepair},
				[]any{gate.Rule, gate.Source, gate.Tier}, gate.Reason)
			require.Contains(t, gate.Reason, c.reason)
			require.Contains(t, gate.Next(escalation.GateClosing{Action: escalation.GateOverride}), "is pushed as it is")
			require.Equal(t, c.offers, gate.Continuation != nil, "an author continues its conversation only in the same state: %s", gate.NoContinuation)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Len(t, w.ran, c.tiers)
			var pushed []string
			for _, one := range w.pushed {
				pushed = append(pushed, one.Commit)
			}
			require.Equal(t, c.pushed, pushed)
			requireRecorded(t, result.Events, w.events)
			if c.answer == escalation.GateFix && c.tiers > 2 {
				last := w.ran[len(w.ran)-1]
				require.Equal(t, "as you see it", last.Guidance)
				require.Len(t, last.Correction.Findings, 1)
				require.False(t, last.Continues)
			}
		})
	}
}

// TestRequiredReviewWithoutARemote checks that a chain ends with its approved commit on its branch, because nothing can
// push it. Nobody is asked about that, and the gate of a change that a person must accept promises no push.
func TestRequiredReviewWithoutARemote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		findings []review.Finding
		outcome  escalation.Outcome
	}{
		"approved":                   {nil, escalation.OutcomeResolved},
		"a person accepts a finding": {[]review.Finding{objection("a")}, escalation.OutcomeOverridden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.1))
			w.nowhere = true
			commit := w.change
			w.change = func(session int) *activities.Change {
				change := commit(session)
				change.NoRemote = true
				return change
			}
			w.review = finds(c.findings...)
			answered := w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Len(t, result.Gates, len(c.findings))
			if len(c.findings) > 0 {
				require.Contains(t, answered.resolution.Next, "commit c2 stays on its branch (the repository has no remote) as it is with what is open")
			}
			require.Empty(t, result.Reviews[0].Pushed)
			requireSaid(t, result.Events, escalation.SeverityWarning, "c2 is approved and stays on claudeops/x: the repository has no remote origin")
		})
	}
}

// TestPlanWhoseRemoteGoes checks the same for a plan whose repository loses its remote after the start.
func TestPlanWhoseRemoteGoes(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	w.nowhere = true
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Contains(t, result.Reason, "c2 is on the branch claudeops/run of the repository, which has no remote origin")
	require.True(t, result.Plan.NoRemote)
}
