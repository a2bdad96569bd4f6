package review_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
)

// TestLoopProperties plays random turns, and random answers of a person at the gates, over three changes of one plan. Only an
// override leads past a P0, past a change that only a person may approve, or to a commit that was not checked or reviewed.
// Between two answers no sequence runs without end.
func TestLoopProperties(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := range uint64(3_000) {
		p := &play{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible on purpose
		for range 3 {
			p.begin()
			for !p.ended {
				p.step()
			}
			ends[p.end()]++
			if p.loop.State == review.StateAborted {
				break
			}
		}
	}
	for _, end := range []string{"approved", "approved after an answer", "approved with an accepted P0", "overridden", "aborted"} {
		require.Greater(t, ends[end], 30, "the turns are not all of one kind: %v", ends)
	}
}

// play plays one random sequence. It keeps what it has drawn, and does not ask the loop for it.
type play struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	loop   review.Loop
	ended  bool
	// last is the latest verdict on this change, and seen lists the findings of all of them. risks lists the findings that a
	// person has overridden, also of earlier changes.
	last        *review.Verdict
	seen, risks []review.Finding
	// open holds the P0 that were named and neither named again as P1, nor corrected in their file, by fingerprint.
	open map[string]review.Finding
	// commits counts the commits. checked is the latest one that the checks let pass, and tests reports whether the latest
	// one changes tests.
	commits int
	checked string
	tests   bool
	// answers counts a person's answers to this change, and steps counts what has happened since. overridden reports that the
	// latest answer was an override.
	answers, steps int
	overridden     bool
}

// begin begins the next change.
func (p *play) begin() {
	p.loop = review.NewLoop(review.Limits{Fixes: p.random.IntN(6), Retries: p.random.IntN(4)}).Accepting(p.loop)
	p.last, p.seen, p.open, p.checked, p.tests = nil, nil, map[string]review.Finding{}, "", false
	p.answers, p.steps, p.overridden, p.ended = 0, 0, false, false
}

// step plays what the state of the loop asks for.
func (p *play) step() {
	p.steps++
	turns := 1 + p.loop.Limits.Fixes + p.loop.Limits.Retries // each with checks and review; then the push, and the gate
	require.LessOrEqual(p.t, p.steps, 3*turns+2, "seed %d: the loop runs longer than its limits allow", p.seed)
	switch p.loop.State {
	case review.StateExecute, review.StateQualityRetry, review.StateAutoFix:
		p.author()
	case review.StateQuality:
		result := []review.QualityResult{"passed", "passed", "none", "failed", "unknown"}[p.random.IntN(5)]
		if result == review.QualityPassed || result == review.QualityNone {
			p.checked = p.loop.Commit
		}
		p.loop, _ = p.loop.AfterQuality(result, "said")
	case review.StateReview:
		p.last = draw(p.random)
		if p.last != nil {
			p.seen = append(p.seen, p.last.Findings...)
		}
		commit, file := fmt.Sprint("c", p.commits-p.random.IntN(12)/11), []string{"compose.yaml", "other.yaml"}[p.random.IntN(5)/4]
		var decision review.Decision
		p.loop, decision = p.loop.AfterReview(review.Reviewed{
			Commit: commit, Verdict: p.last, Changed: map[string][]review.Span{file: {{From: 1, To: p.random.IntN(6)}}},
		})
		if decision.Rule != review.RuleNotReviewed && decision.Rule != review.RuleNoFindings {
			p.review(file == "compose.yaml")
		}
	case review.StateGate:
		p.answer()
	case review.StateApproved:
		problem := []string{"", "", "", "", "no route"}[p.random.IntN(5)]
		p.loop, _ = p.loop.AfterPush(problem)
		p.ended = problem == ""
	case review.StateAborted:
		p.ended = true
	}
}

// review keeps the P0 that are open after a valid review. All findings are about the same file, which may have changed.
func (p *play) review(changed bool) {
	for fingerprint := range p.open {
		if changed || slices.ContainsFunc(p.last.Findings, func(f review.Finding) bool {
			return f.Fingerprint == fingerprint && f.Priority != review.P2
		}) {
			delete(p.open, fingerprint)
		}
	}
	for _, finding := range p.last.Findings {
		if finding.Priority == review.P0 {
			p.open[finding.Fingerprint] = finding
		}
	}
}

// author plays a turn that mostly leaves a new commit.
func (p *play) author() {
	kind := p.random.IntN(30)
	turn := committed(fmt.Sprint("c", p.commits))
	if kind > 0 && p.random.IntN(12) > 0 {
		p.commits++
		turn, p.tests = committed(fmt.Sprint("c", p.commits)), p.random.IntN(8) == 0
		if p.tests {
			turn = committed(turn.Commit, "tests/port.sh")
		}
	}
	switch kind {
	case 0:
		turn.Problem = "its time is up"
	case 1:
		turn.Lost = []string{"phase 2 was removed"}
	case 2, 3:
		turn.Hidden, turn.Doubts, p.tests = kind == 2, []string{"it changes the text of the plan"}[:kind-2], true
	}
	p.loop, _ = p.loop.AfterAuthor(turn)
}

// answer plays a person who has the patience for a few answers.
func (p *play) answer() {
	p.answers++
	p.steps = 0
	action := []escalation.GateAction{
		escalation.GateContinue, escalation.GateFix, escalation.GateFix, escalation.GateOverride, escalation.GateAbort,
	}[p.random.IntN(5)]
	if p.answers > 6 {
		action = escalation.GateAbort
	}
	if p.overridden = action == escalation.GateOverride; p.overridden {
		p.risks = append(p.risks, p.seen...)
	}
	resume, commit := p.loop.Resume, p.loop.Commit
	p.loop, _ = p.loop.AfterGate(action)
	want := map[escalation.GateAction]review.State{
		escalation.GateContinue: resume, escalation.GateFix: resume, escalation.GateOverride: review.StateApproved,
		escalation.GateAbort: review.StateAborted,
	}[action]
	if p.overridden && commit == "" {
		want = review.StateAborted // there is nothing to approve
	}
	require.Equal(p.t, want, p.loop.State, "seed %d: after %s", p.seed, action)
}

// end checks how a change has ended, and names the end.
func (p *play) end() string {
	latest := fmt.Sprint("c", p.commits)
	if p.loop.State == review.StateAborted {
		require.False(p.t, p.loop.Approves(latest), "seed %d", p.seed)
		return "aborted"
	}
	require.True(p.t, p.loop.Approves(latest), "seed %d: the approval is of the last commit", p.seed)
	if p.overridden {
		return "overridden"
	}
	require.NotNil(p.t, p.last, "seed %d", p.seed)
	require.Equal(p.t, p.checked, p.loop.Commit, "seed %d: it was not checked", p.seed)
	require.Equal(p.t, p.loop.Reviewed, p.loop.Commit, "seed %d: it was not reviewed", p.seed)
	require.False(p.t, p.tests, "seed %d: a change of tests was passed", p.seed)
	end := "approved"
	if p.answers > 0 {
		end = "approved after an answer"
	}
	for _, finding := range p.open {
		require.True(p.t, slices.ContainsFunc(p.risks, func(risk review.Finding) bool {
			return risk.Fingerprint == finding.Fingerprint && risk.File == finding.File && risk.Output == finding.Output &&
				risk.Priority == review.P0
		}), "seed %d: a P0 was passed that no person has accepted", p.seed)
		end = "approved with an accepted P0"
	}
	return end
}

// draw returns a random verdict, sometimes none.
func draw(random *rand.Rand) *review.Verdict {
	if random.IntN(15) == 0 {
		return nil
	}
	drawn := verdict([]review.Status{"ready", "ready_with_corrections", "not_ready", "healthy"}[random.IntN(13)/4])
	for i := range random.IntN(4) {
		f := finding(fmt.Sprint("f", i), []review.Priority{"P0", "P1", "P2"}[random.IntN(3)])
		f.Line, f.Output = 1+random.IntN(9), []string{"", "", "", "it was attacked"}[random.IntN(4)]
		if random.IntN(10) == 0 {
			f.Action = review.HumanRequired
		}
		drawn.Findings = append(drawn.Findings, f)
	}
	return drawn
}
