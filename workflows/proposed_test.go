package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// severe is an objection that the author can correct, and that breaks something.
func severe() review.Finding {
	finding := objection("data-loss")
	finding.Priority = review.P0
	return finding
}

// commits lists the commits that a world was asked to push.
func (w *world) commits() []string {
	var pushed []string
	for _, one := range w.pushed {
		pushed = append(pushed, one.Commit)
	}
	return pushed
}

// TestChangeAfterAPush has an author ask for a person after it has committed. The commit is pushed; what the author
// commits after the person's answer is another change, which is shown from there, reviewed and pushed, too.
func TestChangeAfterAPush(t *testing.T) {
	t.Parallel()
	w, asked := newReviewGate(t, finds())
	w.tiers[1] = concludes(escalation.VerdictNeedsHuman, 0.1)
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateFix, "also the other port"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.NotEqual(t, escalation.RuleReview, gate.Rule, "the author asks, and not the reviewer")
	require.Empty(t, gate.Commit, "everything is pushed")
	require.Equal(t, []string{"c2", "c3"}, w.commits())
	require.Len(t, *asked, 2)
	second := w.ran[2]
	require.Equal(t, []any{"c2", "c2"}, []any{second.Base, second.At.Commit})
	require.Nil(t, second.Correction, "nothing is open")
	require.Empty(t, (*asked)[1].Before)
	require.Equal(t, []string{"c2", "c3"}, []string{result.Reviews[0].Commit, result.Reviews[1].Commit})
	require.Equal(t, []bool{true, true}, []bool{result.Reviews[0].Pushed != "", result.Reviews[1].Pushed != ""})
	requireRecorded(t, result.Events, w.events)
}

// TestOpenFindingsLast checks that findings stay open when another tier goes on: because the author escalates inside
// its correction, or a person asks for the tier at the gate of the review. That tier gets them, and so does the next
// reviewer.
func TestOpenFindingsLast(t *testing.T) {
	t.Parallel()
	for name, byPerson := range map[string]bool{"the author escalates": false, "a person asks for a tier": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, slices.Repeat([]func(activities.RunReviewInput) (activities.RunReviewResult, error){finds(severe())}, 2)...)
			if byPerson {
				w.policy.Review.MaxFixes = 0
				w.signalAfter(2*time.Hour, `{"to_tier": 3, "guidance": "keep the data"}`)
			} else {
				w.policy.Review.MaxFixes = 1
				w.tiers[2] = concludes(escalation.VerdictEscalate, 0.1)
				commit := w.change
				w.change = func(session int) *activities.Change {
					if session == 3 { // the author has nothing to add
						return commit(2)
					}
					return commit(session)
				}
			}
			gate := w.gateAfter(t, 3*time.Hour)
			w.answerAfter(4*time.Hour, saidAt(map[bool]string{true: "gate-2", false: "gate-1"}[byPerson], escalation.GateAbort, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
			third := w.ran[len(w.ran)-1]
			require.Equal(t, escalation.TierFullRepair, third.Tier)
			require.NotNil(t, third.Correction)
			require.Equal(t, "data-loss", third.Correction.Findings[0].Fingerprint)
			require.Equal(t, "c2", third.At.Commit)
			require.Len(t, (*asked)[1].Before, 1)
			require.Contains(t, gate.Reason, "data-loss")
			require.Empty(t, w.pushed)
		})
	}
}

// TestNoGoodEndWithoutAPush lets Tier 3 wait, while the service gets well by itself. What Tier 2 has committed is
// reviewed before the chain ends: it is pushed, or a person decides.
func TestNoGoodEndWithoutAPush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		findings []review.Finding
		outcome  escalation.Outcome
		pushed   []string
	}{
		"approved": {nil, escalation.OutcomeResolved, []string{"c2"}},
		"open":     {[]review.Finding{severe()}, escalation.OutcomeOverridden, []string{"c2"}},
		"unseen":   {nil, escalation.OutcomeOverridden, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := newReviewGate(t, finds(c.findings...))
			w.policy.Review.MaxFixes = 0
			w.policy.Cooldowns.MaxWait = escalation.Duration(24 * time.Hour)
			w.tiers[1] = concludes(escalation.VerdictEscalate, 0.1)
			w.tiers[2] = concludes(escalation.VerdictHealthy, 0.01)
			began := time.Time{}
			w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
				if request.Tier != escalation.TierFullRepair {
					return escalation.AdmissionFacts{}
				}
				if began.IsZero() {
					began = now
				}
				return coolingUntil(func() time.Time { return began.Add(time.Hour) })(request, now)
			}
			if c.pushed == nil {
				w.change = func(int) *activities.Change {
					return &activities.Change{Branch: "claudeops/x", Problem: "git was stopped"}
				}
			}
			var gate *escalation.Gate
			if c.outcome == escalation.OutcomeOverridden {
				gate = w.gateAfter(t, 5*time.Hour)
				w.answerAfter(6*time.Hour, said(escalation.GateOverride, ""))
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			require.Equal(t, c.pushed, w.commits())
			require.Len(t, *asked, len(c.pushed))
			if gate != nil {
				require.Equal(t, []any{escalation.RuleReview, escalation.TierSafeRepair}, []any{gate.Rule, gate.Tier})
				require.Contains(t, gate.Reason, map[bool]string{true: "data-loss", false: "git was stopped"}[c.findings != nil])
			}
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestWorkOnAnotherHostIsTold lets another host take over a session that has worked on one that is gone. What it has
// committed there is told to a person before the chain ends well. The healed service does not settle it, nor does an
// approval of what the new host has.
func TestWorkOnAnotherHostIsTold(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]bool{"it commits": true, "it commits nothing": false, "nobody answers the first gate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewGate(t, finds())
			w.tiers[1] = func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
				report, err := concludes(escalation.VerdictResolved, 0.1)(t, input)
				report.Host, report.Worktree = "host-2", &escalation.Worktree{Path: "/w", New: true, EarlierHosts: []string{"host-1"}}
				return report, err
			}
			if !commits {
				w.change = func(int) *activities.Change { return nil }
			}
			gate := w.gateAfter(t, time.Hour)
			if name == "nobody answers the first gate" {
				w.policy.Gate.OnTimeout, w.policy.Gate.Remind = escalation.GateFix, nil
				w.answerAfter(w.policy.Gate.Timeout.Std()+2*time.Hour, saidAt("gate-2", escalation.GateFix, ""))
			} else {
				w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Contains(t, gate.Reason, "tier 2 was at work on the host host-1 before, and nobody knows what it has committed there")
			require.True(t, w.ran[2].Unseen)
			require.Len(t, result.Gates, map[bool]int{true: 2, false: 1}[gate.OnTimeout == escalation.GateFix], "only a person's answer settles it")
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.Equal(t, commits, len(w.commits()) == 1)
		})
	}
}

// TestHealedAfterAnIdleSession lets a push fail, and the higher tier that a person asks for adds nothing. When other
// chains find the service healed, what is approved is pushed, without another session of an author.
func TestHealedAfterAnIdleSession(t *testing.T) {
	t.Parallel()
	w, _ := newReviewGate(t, finds())
	w.policy.Gate.OnHealed, w.policy.Gate.Remind = escalation.HealedClose, nil
	w.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
	w.pushProblem = "no route"
	w.tiers[2] = func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		w.pushProblem = ""
		return ends(escalation.SessionTimedOut)(t, input)
	}
	commit := w.change
	w.change = func(int) *activities.Change { return commit(2) }
	w.tiers = append(w.tiers[:3], concludes(escalation.VerdictHealthy, 0.01))
	w.signalAfter(time.Hour, `{"to_tier": 3}`)
	w.news(3*time.Hour, escalation.IncidentGone)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, "c2", w.pushed[len(w.pushed)-1].Commit)
	require.Len(t, w.ran, 4, "no session of an author follows")
}

// TestHealedAfterALostSession lets a push fail, and loses the session of the higher tier that a person asks for. When
// other chains find the service healed, nothing is pushed without the person: nobody knows what the lost session has
// committed.
func TestHealedAfterALostSession(t *testing.T) {
	t.Parallel()
	w, _ := newReviewGate(t, finds())
	w.policy.Gate.OnHealed, w.policy.Gate.Remind = escalation.HealedClose, nil
	w.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
	w.pushProblem = "no route"
	w.tiers[2] = func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
		w.pushProblem = ""
		return escalation.Report{}, temporal.NewNonRetryableApplicationError("no worker has finished it", activities.ErrorTypeAgent, nil)
	}
	commit := w.change
	w.change = func(session int) *activities.Change {
		if session == 3 {
			return nil
		}
		return commit(session)
	}
	w.tiers = append(w.tiers[:3], concludes(escalation.VerdictHealthy, 0.01))
	w.signalAfter(time.Hour, `{"to_tier": 3}`)
	w.news(3*time.Hour, escalation.IncidentGone)
	gate := w.gateAfter(t, 5*time.Hour)
	w.answerAfter(6*time.Hour, saidAt("gate-3", escalation.GateOverride, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, result.Gates, 3)
	require.Equal(t, escalation.GateRecheck, result.Gates[1].Answer.Action)
	require.Contains(t, gate.Reason, "nobody knows what the session of tier 3 has committed")
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome, result.Reason)
	require.Equal(t, "c2", w.pushed[len(w.pushed)-1].Commit)
}

// TestOverrideOfAnInterruptedCorrection pushes what the gate names: the latest commit, also one that the interrupted
// author has made.
func TestOverrideOfAnInterruptedCorrection(t *testing.T) {
	t.Parallel()
	w, _ := newReviewGate(t, finds(severe()))
	w.tiers[2] = ends(escalation.SessionTimedOut)
	gate := w.gateAfter(t, time.Hour)
	answered := w.answerAfter(2*time.Hour, said(escalation.GateOverride, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, "c3", gate.Commit)
	require.Equal(t, "commit c3 is pushed as it is with what is open (finding 1: P0 data-loss (compose.yaml:4): the port is wrong), "+
		"and the chain ends", answered.resolution.Next)
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome, result.Reason)
	require.Equal(t, []string{"c3"}, w.commits())
	requireRecorded(t, result.Events, w.events)
}

// TestAuthorAsksInItsCorrection checks that the gate has the author's own reason, and not that there is no new commit.
func TestAuthorAsksInItsCorrection(t *testing.T) {
	t.Parallel()
	w, asked := newReviewGate(t, finds(severe()), finds())
	commit := w.change
	w.change = func(session int) *activities.Change { return commit(min(session, 2) + max(session-3, 0)) }
	w.tiers[2] = concludes(escalation.VerdictNeedsHuman, 0.1)
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateFix, "the disk is the other one"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, []any{escalation.GateNeedsHuman, "c2"}, []any{gate.Source, gate.Commit})
	require.NotContains(t, gate.Reason, "no new commit")
	require.Equal(t, []string{"", "", "", "A person has decided at gate-1 that the work goes on."},
		[]string{w.ran[0].Gate, w.ran[1].Gate, w.ran[2].Gate, w.ran[3].Gate})
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Equal(t, "data-loss", w.ran[3].Correction.Findings[0].Fingerprint)
	require.Len(t, (*asked)[1].Before, 1)
	require.Equal(t, []string{"c3"}, w.commits())
}

// TestAuthorTakesItBack checks that the gate says so when a correction takes back what was reviewed, and names the
// commit that is left.
func TestAuthorTakesItBack(t *testing.T) {
	t.Parallel()
	w, _ := newReviewGate(t, finds(severe()))
	commit := w.change
	w.change = func(session int) *activities.Change {
		if session > 2 {
			return &activities.Change{Branch: "claudeops/x", Base: "b0", Commit: "b0", Tree: "t0"}
		}
		change := commit(session)
		change.Tree = "t2"
		return change
	}
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateAbort, ""))
	_, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Contains(t, gate.Reason, "the author has taken back all that c2 has changed")
	require.Equal(t, "c2", gate.Commit)
	require.Empty(t, w.commits())
}

// TestNobodyAnswersAtTheGateOfAReview checks that an author is told that its next turn is nobody's wish.
func TestNobodyAnswersAtTheGateOfAReview(t *testing.T) {
	t.Parallel()
	finding := severe()
	finding.Action = review.HumanRequired
	w, _ := newReviewGate(t, finds(finding), finds())
	w.policy.Gate.OnTimeout = escalation.GateFix
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, w.ran, 3)
	require.Equal(t, "Nobody has answered at gate-1 until it expired, so the supervisor starts another session.", w.ran[2].Gate)
	require.Len(t, w.ran[2].Correction.Findings, 1)
}

// TestNothingNewAfterAPush has an author ask for a person after its push, and commit nothing after the answer. The
// chain ends well: nothing is left to review.
func TestNothingNewAfterAPush(t *testing.T) {
	t.Parallel()
	w, asked := newReviewGate(t, finds())
	w.tiers[1] = concludes(escalation.VerdictNeedsHuman, 0.1)
	commit := w.change
	w.change = func(session int) *activities.Change {
		change := commit(2)
		if session > 2 { // what the activity returns for a worktree at the commit that was pushed
			change.Base, change.Files = change.Commit, nil
		}
		return change
	}
	w.answerAfter(2*time.Hour, said(escalation.GateFix, "restart it"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, *asked, 1)
	require.Equal(t, []string{"c2"}, w.commits())
}
