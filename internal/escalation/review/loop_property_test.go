package review_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// TestLoopProperties plays random turns, and random answers of a person at the gates, over three changes of one plan.
// Only an override leads past a P0, past a change that only a person may approve, or to a commit that was not checked
// or reviewed. Between two answers no sequence runs without end.
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
	for _, end := range []string{"approved", "approved after an answer", "approved with accepted findings", "overridden", "aborted"} {
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
	// last is the latest verdict on this change. risks lists the findings that a person has overridden, also of earlier
	// changes.
	last  *review.Verdict
	risks []review.Finding
	// open holds the findings that no review has answered for and no person has accepted, by their number. named is the
	// latest number.
	open  map[int]review.Finding
	named int
	// commits counts the commits. checked is the latest one that the checks let pass, and tests reports whether the
	// latest one changes tests.
	commits int
	checked string
	tests   bool
	// answers counts a person's answers to this change, and steps counts what has happened since. overridden reports
	// that the latest answer was an override.
	answers, steps int
	overridden     bool
}

// begin begins the next change.
func (p *play) begin() {
	p.loop = review.NewLoop(review.Limits{Fixes: p.random.IntN(6), Retries: p.random.IntN(4)}).Accepting(p.loop)
	p.last, p.open, p.checked, p.tests = nil, map[int]review.Finding{}, "", false
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
		p.last = draw(p.random, p.loop.Open)
		commit := fmt.Sprint("c", p.commits-p.random.IntN(12)/11)
		var decision review.Decision
		p.loop, decision = p.loop.AfterReview(review.Reviewed{Commit: commit, Verdict: p.last})
		if decision.Rule != review.RuleNotReviewed {
			p.review()
			named := len(p.last.Findings) > 0
			allowed := named && !slices.ContainsFunc(p.last.Findings, func(f review.Finding) bool { return !p.accepts(f) })
			discontent := p.last.Status == review.NotReady && !allowed || p.last.Status != review.Ready && !named
			require.False(p.t, discontent && p.loop.State == review.StateApproved, "seed %d: the reviewer was not content", p.seed)
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

// review keeps the findings that are open after a valid review: each P0 and P1, until the reviewer says that it is
// fixed or, of a P1, that it was wrong or is small.
func (p *play) review() {
	for number, open := range p.open {
		for _, answer := range p.last.Answers {
			if answer.Number != number {
				continue
			}
			if answer.Now == review.Fixed ||
				open.Priority != review.P0 && open.Action != review.HumanRequired && (answer.Now == review.Wrong || answer.Priority == review.P2) {
				delete(p.open, number)
			} else if answer.Now == review.StillThere && answer.Priority != "" && answer.Priority != review.P2 {
				open.Priority = min(open.Priority, answer.Priority)
				p.open[number] = open
			}
		}
	}
	for _, finding := range p.loop.Open {
		if finding.Number > p.named {
			p.open[finding.Number] = finding
		}
	}
	p.named = max(p.named, p.loop.Named)
	require.Len(p.t, p.loop.Open, len(p.open), "seed %d: a finding has vanished", p.seed)
	for _, finding := range p.last.Findings {
		known := slices.ContainsFunc(p.loop.Open, func(open review.Finding) bool { return open.Text == finding.Text })
		require.True(p.t, known || finding.Priority == review.P2 || p.accepts(finding), "seed %d: a new finding has vanished", p.seed)
	}
}

// accepts reports whether a person has accepted this very finding.
func (p *play) accepts(finding review.Finding) bool {
	return slices.ContainsFunc(p.risks, func(risk review.Finding) bool { return risk.Text == finding.Text })
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
		turn.Doubts, p.tests = []string{"it changes the text of the plan"}, true
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
	// After a push that failed, the approval stands.
	if p.overridden = action == escalation.GateOverride || p.overridden && p.loop.Resume == review.StateApproved; action == escalation.GateOverride {
		p.risks = append(p.risks, p.loop.Open...)
		clear(p.open)
	}
	resume, commit := p.loop.Resume, p.loop.Commit
	p.loop, _ = p.loop.AfterGate(action)
	want := map[escalation.GateAction]review.State{
		escalation.GateContinue: resume, escalation.GateFix: resume, escalation.GateOverride: review.StateApproved,
		escalation.GateAbort: review.StateAborted,
	}[action]
	if action == escalation.GateOverride && commit == "" {
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
	require.Empty(p.t, p.open, "seed %d: a finding was passed that nobody has answered for", p.seed)
	if len(p.risks) > 0 {
		end = "approved with accepted findings"
	}
	return end
}

// draw returns a random verdict, sometimes none. It answers for some of the open findings.
func draw(random *rand.Rand, open []review.Finding) *review.Verdict {
	if random.IntN(15) == 0 {
		return nil
	}
	drawn := verdict([]review.Status{"ready", "ready_with_corrections", "not_ready", "healthy"}[random.IntN(13)/4])
	for _, finding := range open {
		if random.IntN(6) == 0 {
			continue
		}
		drawn.Answers = append(drawn.Answers, review.Answer{
			Number: finding.Number, Note: "so it is", Now: []review.Disposition{"fixed", "fixed", "fixed", "open", "wrong"}[random.IntN(5)],
			Priority: []review.Priority{"", "", "P0", "P1", "P2"}[random.IntN(5)],
		})
	}
	for i := range random.IntN(6) / 2 {
		f := finding(fmt.Sprint("f", i), []review.Priority{"P0", "P1", "P2"}[random.IntN(3)])
		f.Line, f.Text = 1+random.IntN(9), fmt.Sprint("problem ", random.Uint64())
		if random.IntN(10) == 0 {
			f.Action = review.HumanRequired
		}
		drawn.Findings = append(drawn.Findings, f)
	}
	return drawn
}
