package workflows_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
	"github.com/claudeops/claudeops/workflows"
)

// TestChangeProperties plays random chains with required reviews: sessions that conclude, ask, escalate, fail or break off, with and without
// commits; reviewers that object, answer, forget, take back, name nothing or break off; refused sessions; pushes that fail; other chains that
// find the service healed; people who give every answer, ask for Tier 3, or do not answer at all. In each of them:
//
//   - what is pushed was shown to an approving reviewer, or to the person who overrode exactly this commit
//   - no P0 or P1 ends without an answer of a reviewer or the decision of a person
//   - a chain that ends well has pushed the latest of what it has committed
//   - an answer at a gate does what the gate has said
func TestChangeProperties(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := range uint64(250) {
		c := newChangePlay(t, seed)
		ends[c.play()]++
	}
	for _, end := range []string{"pushed", "pushed by a person", "not pushed", "nothing"} {
		require.Greater(t, ends[end], 5, "the chains are not of all kinds: %v", ends)
	}
}

// changePlay is one random chain.
type changePlay struct {
	*world

	t      *testing.T
	seed   uint64
	random *rand.Rand
	// commits counts the commits, and latest is the latest one; empty if there is none.
	commits int
	latest  string
	// shown is the commit that the latest reviewer has seen, and open holds the numbers of the findings that nobody has answered for.
	shown    string
	approved map[string]bool
	open     map[int]bool
	// accepted holds the commits that people have overridden, and promises what gates have said about them.
	accepted map[string]bool
	broken   string
}

func newChangePlay(t *testing.T, seed uint64) *changePlay {
	t.Helper()
	c := &changePlay{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 46)), //nolint:gosec // reproducible on purpose
		approved: map[string]bool{}, open: map[int]bool{}, accepted: map[string]bool{},
	}
	c.world = newReviewedWorld(t, escalation.ReviewRequired, repeated(40, c.session)...)
	c.policy.Review.MaxFixes = c.random.IntN(3)
	c.policy.Gate.Remind = nil
	c.change, c.review = c.commit, c.read
	c.policy.Gate.OnHealed = escalation.HealedClose
	c.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
	for range c.random.IntN(4) {
		c.news(time.Duration(c.random.IntN(120))*time.Hour, []escalation.IncidentNews{escalation.IncidentGone, escalation.IncidentWorse}[c.random.IntN(2)])
	}
	c.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
		if c.random.IntN(12) > 0 {
			return escalation.AdmissionFacts{}
		}
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "another"}}}
	}
	return c
}

// session plays a session of Tier 2 or 3, or a look at a service that another chain has found healed.
func (c *changePlay) session(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
	t.Helper()
	if input.Recheck && c.random.IntN(3) > 0 {
		return concludes(escalation.VerdictHealthy, 0.01)(t, input)
	}
	switch c.random.IntN(12) {
	case 0:
		return concludes(escalation.VerdictNeedsHuman, 0.1)(t, input)
	case 1, 2:
		return concludes(escalation.VerdictEscalate, 0.1)(t, input)
	case 3:
		return concludes(escalation.VerdictFailed, 0.1)(t, input)
	case 4:
		if c.random.IntN(2) == 0 {
			return c.limited(input.SessionID), nil
		}
		return ends(escalation.SessionTimedOut)(t, input)
	default:
		return concludes(escalation.VerdictResolved, 0.1)(t, input)
	}
}

// commit plays what a session leaves: a new commit, the one before, or nothing at all.
func (c *changePlay) commit(int) *activities.Change {
	base := cmp.Or(c.ran[len(c.ran)-1].Base, "b0")
	if c.random.IntN(4) > 0 {
		c.commits++
		c.latest = fmt.Sprint("c", c.commits)
	}
	if c.latest == "" || c.latest == base {
		return nil
	}
	return &activities.Change{
		Branch: "claudeops/x", Base: base, Commit: c.latest, Tree: "t" + c.latest, Fork: "b0", Pack: []byte(c.latest),
		Files:  []review.File{{Path: "compose.yaml", Added: 1, Listed: c.random.IntN(5) > 0}},
		Checks: []review.QualityResult{"passed", "passed", "passed", "none", "failed", "unknown"}[c.random.IntN(6)],
	}
}

// read plays a reviewer.
func (c *changePlay) read(input activities.RunReviewInput) (activities.RunReviewResult, error) {
	if c.random.IntN(10) == 0 {
		return breaksOff(escalation.SessionTimedOut)(input)
	}
	if c.random.IntN(10) == 0 {
		report := c.limited(input.SessionID)
		return activities.RunReviewResult{Report: report, Problem: "the review ended failed: " + report.Error}, nil
	}
	verdict := review.Verdict{Status: review.Ready, Summary: "read", Findings: []review.Finding{}}
	highest := 0
	for _, finding := range input.Before {
		highest = max(highest, finding.Number)
		c.open[finding.Number] = true
		switch c.random.IntN(8) {
		case 0: // silence
		case 1: // who takes a P0 back leaves it to a person
			answer := review.Answer{Number: finding.Number, Now: review.Wrong, Note: "it was none"}
			if c.random.IntN(2) == 0 {
				answer.Now, answer.Priority = review.StillThere, review.P2
			}
			verdict.Answers = append(verdict.Answers, answer)
			if finding.Priority != review.P0 {
				delete(c.open, finding.Number)
			}
		case 2, 3:
			verdict.Answers = append(verdict.Answers, review.Answer{Number: finding.Number, Now: review.StillThere, Note: "there"})
		default:
			verdict.Answers = append(verdict.Answers, review.Answer{Number: finding.Number, Now: review.Fixed})
			delete(c.open, finding.Number)
		}
	}
	if c.random.IntN(3) == 0 {
		finding := objection("wrong-port")
		finding.Priority, finding.Text = []review.Priority{"P0", "P1"}[c.random.IntN(2)], fmt.Sprint("problem ", c.random.Uint64())
		verdict.Findings, verdict.Status = append(verdict.Findings, finding), review.NotReady
	}
	if c.random.IntN(8) == 0 {
		verdict.Status = review.NotReady
	}
	c.shown = input.Change.Commit
	c.approved[c.shown] = c.approved[c.shown] || verdict.Status == review.Ready && len(verdict.Findings) == 0 && len(c.open) == 0 && len(input.ForPerson) == 0
	return activities.RunReviewResult{Verdict: &verdict, Report: escalation.Report{
		Status: escalation.SessionCompleted, CostUSD: 0.01, ReportedSessionID: input.SessionID, Attempts: 1,
		Verdict: &escalation.Verdict{Status: escalation.VerdictStatus(verdict.Status), Summary: verdict.Summary},
	}}, nil
}

// person looks in every few hours, and answers at a gate as it likes. Not every gate is answered.
func (c *changePlay) person(after time.Duration) {
	c.env.RegisterDelayedCallback(func() {
		c.pushProblem = []string{"", "", "", "no route"}[c.random.IntN(4)]
		encoded, err := c.env.QueryWorkflow(workflows.GateQuery)
		var gate *escalation.Gate
		if err != nil || encoded.Get(&gate) != nil || gate == nil || c.random.IntN(6) == 0 {
			return
		}
		if c.random.IntN(8) == 0 && gate.Tier == escalation.TierSafeRepair {
			c.env.SignalWorkflow(workflows.EscalateSignalName, workflows.EscalateSignal{ToTier: escalation.TierFullRepair})
			return
		}
		action := gate.Options[c.random.IntN(len(gate.Options))]
		if action == escalation.GateOverride {
			if gate.Commit != "" && gate.Commit != c.latest {
				c.broken = fmt.Sprintf("%s offers %s, and %s was committed", gate.ID, gate.Commit, c.latest)
			}
			c.accepted[gate.Commit] = true
			clear(c.open)
		}
		c.env.UpdateWorkflow(workflows.ResolveGate, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnComplete: func(any, error) {},
			OnReject: func(err error) {
				if !strings.Contains(err.Error(), "is closed") { // another chain was faster
					c.broken = err.Error()
				}
			},
		}, escalation.GateAnswer{GateID: gate.ID, Action: action, Actor: "anna"})
	}, after)
}

// play plays the chain to its end, checks it, and names the end.
func (c *changePlay) play() string {
	for hours := range 60 {
		c.person(time.Duration(hours*5+1) * time.Hour)
	}
	result, err := c.run(c.t, workflows.ChainInput{})
	require.NoError(c.t, err, "seed %d", c.seed)
	require.Empty(c.t, c.broken, "seed %d", c.seed)
	var pushed []string
	for _, done := range result.Reviews {
		if done.Pushed != "" {
			pushed = append(pushed, done.Commit)
		}
	}
	require.Subset(c.t, c.world.commits(), pushed, "seed %d: a record names a push that was not asked for", c.seed)
	byPerson := false
	for _, commit := range c.world.commits() {
		require.True(c.t, c.approved[commit] || c.accepted[commit],
			"seed %d: %s was pushed, and neither approved nor accepted: %v\n%+v", c.seed, commit, result.Reason, gatesOf(result.Gates))
		byPerson = byPerson || c.accepted[commit]
	}
	well := result.Outcome == escalation.OutcomeResolved || result.Outcome == escalation.OutcomeHealthy
	if well && c.latest != "" {
		require.Contains(c.t, c.world.commits(), c.latest, "seed %d: it ends %s, and the latest commit is not pushed: %s",
			c.seed, result.Outcome, result.Reason)
		require.Empty(c.t, c.open, "seed %d: a finding has vanished", c.seed)
	}
	switch {
	case c.latest == "":
		return "nothing"
	case len(c.world.commits()) == 0 || !slices.Contains(c.world.commits(), c.latest):
		return "not pushed"
	case byPerson:
		return "pushed by a person"
	default:
		return "pushed"
	}
}

// gatesOf describes gates for a failed test.
func gatesOf(gates []escalation.Gate) (lines []string) {
	for _, gate := range gates {
		lines = append(lines, fmt.Sprintf("%s %s %s %q: %+v\n", gate.ID, gate.Commit, gate.Resume, gate.Reason, gate.Answer))
	}
	return lines
}
