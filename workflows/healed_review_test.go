package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// TestHealedAtAReviewsGate has another chain find the service healed while a person is asked about a change. The chain
// looks itself. It does not end well before the change is pushed, and what a person has decided stands.
func TestHealedAtAReviewsGate(t *testing.T) {
	t.Parallel()
	type reviewer = func(activities.RunReviewInput) (activities.RunReviewResult, error)
	reviewed := func(turns ...reviewer) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			w.review, _ = inTurn(t, turns...)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *world)
		// look is the verdict of the chain's own look. answers are those of a person at the first gate, and at the
		// second.
		look    escalation.VerdictStatus
		answers [2]escalation.GateAction
		outcome escalation.Outcome
		// second is in the reason of the second gate; empty if there is none. corrects reports that the author gets the
		// findings.
		second   string
		pushed   string
		corrects bool
	}{
		"findings are open": {
			change: reviewed(finds(severe())), look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{"", escalation.GateOverride},
			second: "nothing else is left to do, and c2 is not pushed: findings block: finding 1: P0 data-loss", pushed: "c2",
			outcome: escalation.OutcomeOverridden,
		},
		"findings are open, and a person drops the change": {
			change: reviewed(finds(severe())), look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{"", escalation.GateAbort},
			second: "c2 is not pushed", outcome: escalation.OutcomeAborted,
		},
		"findings are open, and the author corrects them": {
			change: reviewed(finds(severe()), finds()), look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{"", escalation.GateFix},
			second: "c2 is not pushed", pushed: "c4", outcome: escalation.OutcomeResolved, corrects: true,
		},
		"it is not healed": {
			change: reviewed(finds(severe()), finds()), look: escalation.VerdictEscalate, answers: [2]escalation.GateAction{"", escalation.GateFix},
			second: "the problem was reported as healed, and tier 1 still finds it", pushed: "c4", outcome: escalation.OutcomeResolved, corrects: true,
		},
		"the review was interrupted": {
			change: reviewed(breaksOff(escalation.SessionTimedOut), finds()), look: escalation.VerdictHealthy, pushed: "c2",
			outcome: escalation.OutcomeResolved,
		},
		"the checks could not run": {
			change: func(_ *testing.T, w *world) {
				commit := w.change
				w.change = func(session int) *activities.Change {
					change := commit(session)
					change.Checks, change.CheckOutput = review.QualityUnknown, "no shell"
					return change
				}
			},
			look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{"", escalation.GateOverride},
			second: "the checks could not run: no shell", pushed: "c2", outcome: escalation.OutcomeOverridden,
		},
		"the author asks in its correction": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.policy.Review.MaxFixes = 3
				w.review, _ = inTurn(t, finds(severe()))
				w.tiers[2], w.tiers[3] = concludes(escalation.VerdictNeedsHuman, 0.1), w.tiers[2]
				commit := w.change
				w.change = func(session int) *activities.Change { return commit(min(session, 2)) }
			},
			look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{"", escalation.GateOverride},
			second: "nothing else is left to do, and c2 is not pushed", pushed: "c2", outcome: escalation.OutcomeOverridden,
		},
		"an approved change could not be pushed": {
			change: func(_ *testing.T, w *world) { w.pushProblem = "no route" }, look: escalation.VerdictHealthy, pushed: "c2", outcome: escalation.OutcomeResolved,
		},
		"an overridden change could not be pushed": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.review, _ = inTurn(t, finds(severe()))
				w.pushProblem = "no route"
			},
			look: escalation.VerdictHealthy, answers: [2]escalation.GateAction{escalation.GateOverride, ""}, second: "no route", pushed: "c2",
			outcome: escalation.OutcomeOverridden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewGate(t, finds())
			w.policy.Review.MaxFixes = 0
			w.policy.Gate.OnHealed = escalation.HealedClose
			w.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
			w.tiers[2] = concludes(c.look, 0.01)
			c.change(t, w)
			var seen []escalation.Gate
			looks := func(after time.Duration) {
				w.env.RegisterDelayedCallback(func() {
					if gate := w.openGate(); gate != nil {
						seen = append(seen, *gate)
					}
				}, after)
			}
			looks(time.Hour)
			if c.answers[0] != "" {
				w.answerAfter(2*time.Hour, said(c.answers[0], ""))
			}
			looks(3 * time.Hour)
			w.env.RegisterDelayedCallback(func() { w.pushProblem = "" }, 4*time.Hour)
			w.news(5*time.Hour, escalation.IncidentGone)
			looks(6 * time.Hour)
			if c.answers[1] != "" {
				w.answerAfter(7*time.Hour, saidAt("gate-2", c.answers[1], "keep the data"))
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
			for _, gate := range seen {
				require.Equal(t, "c2", gate.Commit, "each gate names the change")
				require.Equal(t, "tier 1 looks, and if all is well, only commit c2 is left to settle",
					gate.Next(escalation.GateClosing{Action: escalation.GateRecheck}))
			}
			if c.second == "" {
				require.Len(t, result.Gates, 1)
			} else {
				require.Len(t, result.Gates, 2)
				require.Contains(t, result.Gates[1].Reason, c.second)
			}
			commits := w.commits()
			if c.pushed == "" {
				require.Empty(t, commits)
			} else {
				require.Equal(t, c.pushed, commits[len(commits)-1])
				require.Equal(t, "https://git.example.org/infra", result.Reviews[len(result.Reviews)-1].Pushed)
			}
			if c.corrects {
				again := w.ran[len(w.ran)-1]
				require.Equal(t, []any{"c2", "keep the data"}, []any{again.At.Commit, again.Guidance})
				require.Equal(t, "data-loss", again.Correction.Findings[0].Fingerprint)
			}
			requireRecorded(t, result.Events, w.events)
		})
	}
}
