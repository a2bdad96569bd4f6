package workflows_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

var changeSeeds = flag.Uint64("changes.seeds", 250, "random chains, and random plans, whose changes are reviewed")

// TestChangeProperties plays random chains with required reviews: sessions that conclude, ask, escalate, fail or break
// off, with and without commits; reviewers that object, answer, forget, take back, name nothing or break off; refused
// sessions; pushes that fail; other chains that find the service healed; hosts that are lost with their commits and
// conversations; histories that become long, so that the chain continues as new; people who give every answer, ask for
// Tier 3, or do not answer at all. In each of them:
//
//   - what is pushed was shown to an approving reviewer, or to the person who overrode exactly this commit
//   - no P0 or P1 ends without an answer of a reviewer or the decision of a person, and each reviewer gets all that are open
//   - a chain that ends well, or as a person has accepted it, has pushed all that it has committed
//   - an answer at a gate does what the gate has said, and a gate names the commit that it is about, and whether there is a remote
func TestChangeProperties(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	ends := map[string]int{}
	for seed := range *changeSeeds {
		c := newChangePlay(t, seed)
		ends[c.play()]++
		ends["lost hosts"] += c.hosts.lost
		ends["new runs"] += c.runs - 1
	}
	for _, end := range []string{"pushed", "pushed by a person", "not pushed", "nothing", "lost hosts", "new runs"} {
		require.Greater(t, ends[end], 5, "the chains are not of all kinds: %v", ends)
	}
	t.Logf("changes: %v", ends)
}

// changePlay is one random chain. The world is that of its current run.
type changePlay struct {
	*world
	*changeRecord

	t    *testing.T
	runs int
	// idle reports that the current session never comes to its work, and gone that its result is lost. Its worktree
	// begins with the commit first.
	idle, gone  bool
	first, host string
}

// changeRecord is what reviewers, people and hosts have done with the changes of a workflow.
type changeRecord struct {
	seed   uint64
	random *rand.Rand
	hosts  *hosts
	// approved holds the commits that reviewers have approved, and accepted those that people have overridden.
	approved, accepted map[string]bool
	// open holds the texts of the findings that nobody has answered for.
	open map[string]bool
	// expected is what the latest answer at a gate starts, in the gate's words; empty if that has begun, or nothing
	// must.
	expected string
	// broken says what no answer, gate or review may do; empty if nothing has.
	broken string
}

// begins checks that what begins is what the gate has said.
func (c *changeRecord) begins(what string) {
	if c.expected != "" && c.expected != what {
		c.broken = fmt.Sprintf("%s begins, and the gate has said: %s", what, c.expected)
	}
	c.expected = ""
}

func newChangeRecord(seed uint64) *changeRecord {
	return &changeRecord{
		seed: seed, random: rand.New(rand.NewPCG(seed, 46)), hosts: newHosts(), //nolint:gosec // reproducible on purpose
		approved: map[string]bool{}, accepted: map[string]bool{}, open: map[string]bool{},
	}
}

func newChangePlay(t *testing.T, seed uint64) *changePlay {
	t.Helper()
	c := &changePlay{t: t, changeRecord: newChangeRecord(seed)}
	c.begin()
	c.policy.Review.MaxFixes = c.random.IntN(3)
	c.policy.Gate.Remind = nil
	c.policy.Gate.OnHealed = escalation.HealedClose
	return c
}

// begin begins the first run of the chain, or the next one.
func (c *changePlay) begin() {
	before := c.world
	c.world = newReviewedWorld(c.t, escalation.ReviewRequired, repeated(40, c.session)...)
	c.runs++
	if before != nil {
		c.tiers, c.policy, c.opened = c.tiers[1:], escalation.Policy{}, before.opened
		c.env.SetStartTime(before.env.Now())
		c.env.SetContinuedExecutionRunID("the-run-before")
		c.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: fmt.Sprint("run-", c.runs)}) // sessions get other IDs in each run
	}
	c.change, c.nowhere = c.commit, c.seed%7 == 0
	c.world.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		return c.changeRecord.review(c.world, input)
	}
	c.transcript = func() (bool, error) { return c.random.IntN(6) > 0, nil }
	c.push = func(request activities.PushRequest) activities.PushResult {
		c.begins("what is approved is pushed again")
		c.hosts.mayBeLost(c.random)
		if c.nowhere {
			c.hosts.push(request, "") // what is approved stays on its branch
			return activities.PushResult{NoRemote: true}
		}
		return c.hosts.push(request, c.pushProblem)
	}
	c.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
	for range c.random.IntN(4) {
		c.news(time.Duration(c.random.IntN(120))*time.Hour, []escalation.IncidentNews{escalation.IncidentGone, escalation.IncidentWorse}[c.random.IntN(2)])
	}
	if c.random.IntN(2) == 0 {
		c.longHistory(time.Duration(c.random.IntN(40)) * time.Hour)
	}
	for hours := range 60 {
		c.person(time.Duration(hours*5+1) * time.Hour)
	}
	c.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
		if c.random.IntN(12) > 0 {
			return escalation.AdmissionFacts{}
		}
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "another"}}}
	}
}

// session plays a session of Tier 2 or 3, or a look at a service that another chain has found healed.
func (c *changePlay) session(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
	t.Helper()
	c.idle, c.gone = false, false
	switch {
	case input.Recheck: // of a later gate, which other chains have closed
		c.expected = ""
	case c.expected == "the author":
		c.begins("the author")
	default:
		c.begins(input.Tier.String())
	}
	if input.Recheck && c.random.IntN(3) > 0 {
		return concludes(escalation.VerdictHealthy, 0.01)(t, input)
	}
	lost := c.hosts.mayBeLost(c.random)
	if !input.Inspect {
		return c.work(t, input, lost)
	}
	c.hosts.bring("a session", input.At)
	exact := input.At.Commit == input.Base && !input.Unseen && !input.Continues
	head, isNew := c.hosts.begin(orB0(input.At.Commit), exact)
	c.first = head
	c.host = fmt.Sprint("host-", c.hosts.lost)
	report, err := c.work(t, input, lost)
	report.Host = c.host
	report.Worktree = &escalation.Worktree{Path: "/w", Branch: "claudeops/x", Origin: "/o", New: isNew}
	return report, err
}

// work plays what a session does in its worktree. The argument lost reports that it runs on another host than the one
// before.
func (c *changePlay) work(t *testing.T, input activities.RunTierInput, lost bool) (escalation.Report, error) {
	t.Helper()
	if lost && input.Continuity == escalation.ContinuityResume && c.random.IntN(2) == 0 {
		c.idle = true
		return escalation.Report{Status: escalation.SessionTranscriptLost, Error: "no such conversation", Attempts: 1}, nil
	}
	switch c.random.IntN(13) {
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
	case 5: // its worker does not report, or each host that has taken it was lost
		c.gone = true
		if input.Inspect && c.random.IntN(2) == 0 {
			c.hosts.commitUnseen(c.first)
		}
		if c.random.IntN(2) == 0 {
			c.hosts.isLost()
		}
		return escalation.Report{}, temporal.NewNonRetryableApplicationError("no worker has finished it", activities.ErrorTypeAgent, nil,
			escalation.Report{Host: c.host})
	default:
		return concludes(escalation.VerdictResolved, 0.1)(t, input)
	}
}

// commit plays what a session leaves: a new commit, the one with which it began, nothing at all, or a worktree that its
// host cannot look at.
func (c *changePlay) commit(int) *activities.Change {
	input := c.ran[len(c.ran)-1]
	base := orB0(input.Base)
	if c.gone {
		return nil
	}
	at := c.first
	if c.random.IntN(20) == 0 {
		return &activities.Change{Branch: "claudeops/x", Base: base, Problem: "the worktree is gone"}
	}
	if !c.idle && c.random.IntN(4) > 0 {
		at = c.hosts.commit(at)
	}
	c.hosts.see(at)
	if at == base {
		return nil
	}
	return &activities.Change{
		Branch: "claudeops/x", Base: base, Commit: at, Tree: "t" + at, Fork: "b0", Pack: []byte(at), NoRemote: c.nowhere,
		Files:  []review.File{{Path: "compose.yaml", Added: 1, Listed: c.random.IntN(5) > 0}},
		Checks: []review.QualityResult{"passed", "passed", "passed", "none", "failed", "unknown"}[c.random.IntN(6)],
	}
}

// orB0 returns a commit, or the first one of all.
func orB0(commit string) string {
	if commit == "" {
		return "b0"
	}
	return commit
}

// review plays a reviewer in a world. It may lose its host or its conversation, meet a limit, or come to a verdict.
func (c *changeRecord) review(w *world, input activities.RunReviewInput) (activities.RunReviewResult, error) {
	c.begins("the reviewer")
	lost := c.hosts.mayBeLost(c.random)
	switch move := c.random.IntN(15); {
	case lost && input.Continues != "":
		return activities.RunReviewResult{Problem: "the review has lost its conversation", Report: escalation.Report{
			Status: escalation.SessionTranscriptLost, Error: "no such conversation", Attempts: 1,
		}}, nil
	case lost && move < 5:
		return activities.RunReviewResult{}, temporal.NewNonRetryableApplicationError("no worker has finished it", activities.ErrorTypeAgent, nil)
	case move < 2:
		return breaksOff(escalation.SessionTimedOut)(input)
	case move < 3:
		report := w.limited(input.SessionID)
		return activities.RunReviewResult{Report: report, Problem: "the review ended failed: " + report.Error}, nil
	}
	return c.read(input), nil
}

// read plays a reviewer that comes to a verdict.
func (c *changeRecord) read(input activities.RunReviewInput) activities.RunReviewResult {
	verdict := review.Verdict{Status: review.Ready, Summary: "read", Findings: []review.Finding{}}
	given := map[string]bool{}
	for _, finding := range input.Before {
		given[finding.Text] = true
		switch c.random.IntN(8) {
		case 0: // silence
		case 1: // who takes a P0 back, or what a person must decide, leaves it to a person
			answer := review.Answer{Number: finding.Number, Now: review.Wrong, Note: "it was none"}
			if c.random.IntN(2) == 0 {
				answer.Now, answer.Priority = review.StillThere, review.P2
			}
			verdict.Answers = append(verdict.Answers, answer)
			if finding.Priority != review.P0 && finding.Action != review.HumanRequired {
				delete(c.open, finding.Text)
			}
		case 2, 3:
			verdict.Answers = append(verdict.Answers, review.Answer{Number: finding.Number, Now: review.StillThere, Note: "there"})
		default:
			verdict.Answers = append(verdict.Answers, review.Answer{Number: finding.Number, Now: review.Fixed})
			delete(c.open, finding.Text)
		}
	}
	for text := range c.open {
		if !given[text] {
			c.broken = fmt.Sprintf("the reviewer of %s is not told of %q", input.Change.Commit, text)
		}
	}
	if c.random.IntN(3) == 0 {
		finding := objection("wrong-port")
		finding.Priority, finding.Text = []review.Priority{"P0", "P1"}[c.random.IntN(2)], fmt.Sprint("problem ", c.random.Uint64())
		verdict.Findings, verdict.Status = append(verdict.Findings, finding), review.NotReady
		if c.random.IntN(4) == 0 {
			finding.Action = review.HumanRequired
		}
		verdict.Findings[len(verdict.Findings)-1] = finding
		c.open[finding.Text] = true
	}
	if c.random.IntN(5) == 0 { // a note, which does not block
		note := objection("style")
		note.Priority, note.Text = review.P2, fmt.Sprint("note ", c.random.Uint64())
		verdict.Findings = append(verdict.Findings, note)
	}
	if c.random.IntN(8) == 0 {
		verdict.Status = review.NotReady
	}
	shown := input.Change.Commit
	c.approved[shown] = c.approved[shown] || verdict.Status == review.Ready && len(c.open) == 0 && len(input.ForPerson) == 0
	return activities.RunReviewResult{Verdict: &verdict, Report: escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.01}, ReportedSessionID: input.SessionID, Attempts: 1,
		Verdict: &escalation.Verdict{Status: escalation.VerdictStatus(verdict.Status), Summary: verdict.Summary},
	}}
}

// person looks in every few hours, and answers at a gate as it likes. Not every gate is answered.
func (c *changePlay) person(after time.Duration) {
	c.env.RegisterDelayedCallback(func() {
		c.pushProblem = []string{"", "", "", "no route"}[c.random.IntN(4)]
		gate := c.openGate()
		if gate == nil || c.random.IntN(6) == 0 {
			return
		}
		if left := c.hosts.left(); len(left) > 0 && gate.Commit != c.hosts.latest {
			c.broken = fmt.Sprintf("%s is about %q, and %v is not pushed", gate.ID, gate.Commit, left)
		}
		if gate.Commit != "" && gate.NoRemote != c.nowhere {
			c.broken = gate.ID + " says wrongly whether there is a remote"
		}
		if c.random.IntN(8) == 0 && gate.Tier == escalation.TierSafeRepair {
			c.isTold(*gate)
			c.expected = escalation.TierFullRepair.String()
			c.env.SignalWorkflow(workflows.EscalateSignalName, workflows.EscalateSignal{ToTier: escalation.TierFullRepair})
			return
		}
		c.answers(c.env, *gate)
	}, after)
}

// isTold notes what a person who answers has read at a gate.
func (c *changeRecord) isTold(gate escalation.Gate) {
	if strings.Contains(gate.Reason, "nobody knows") || strings.Contains(gate.Reason, "the worktree is gone") {
		c.hosts.tell()
	}
}

// openGate returns the open gate of the world; nil if there is none.
func (w *world) openGate() (gate *escalation.Gate) {
	encoded, err := w.env.QueryWorkflow(workflows.GateQuery)
	if err != nil || encoded.Get(&gate) != nil {
		return nil
	}
	return gate
}

// answers gives one of the answers that a gate offers.
func (c *changeRecord) answers(env *testsuite.TestWorkflowEnvironment, gate escalation.Gate) {
	action := gate.Options[c.random.IntN(len(gate.Options))]
	env.UpdateWorkflow(workflows.ResolveGate, "", &testsuite.TestUpdateCallback{
		OnAccept: func() {
			if action == escalation.GateOverride {
				c.accepted[gate.Commit] = true
				clear(c.open)
			}
			c.isTold(gate)
			c.expected = ""
			if action == escalation.GateFix || action == escalation.GateContinue {
				c.expected = cmp.Or(gate.Repeats(), gate.NextRunner())
			}
		},
		OnComplete: func(any, error) {},
		OnReject: func(err error) {
			if !strings.Contains(err.Error(), "is closed") { // another chain was faster
				c.broken = err.Error()
			}
		},
	}, escalation.GateAnswer{GateID: gate.ID, Action: action, Actor: "anna"})
}

// play plays the chain to its end, checks it, and names the end.
func (c *changePlay) play() string {
	var result workflows.ChainResult
	for input := (workflows.ChainInput{}); ; {
		var err error
		var anew *workflow.ContinueAsNewError
		if result, err = c.run(c.t, input); !errors.As(err, &anew) {
			require.NoError(c.t, err, "seed %d", c.seed)
			break
		}
		input = workflows.ChainInput{}
		require.NoError(c.t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))
		c.begin()
	}
	explain := fmt.Sprintf("seed %d: %s: %s\n%+v", c.seed, result.Outcome, result.Reason, gatesOf(result.Gates))
	require.Empty(c.t, c.broken+c.hosts.broken, explain)
	for _, done := range result.Reviews {
		require.True(c.t, done.Pushed == "" || c.hosts.remote[done.Commit] && !c.nowhere, "%s\na record says that %s is pushed", explain, done.Commit)
	}
	byPerson := false
	for commit := range c.hosts.remote {
		require.True(c.t, c.approved[commit] || c.accepted[commit], "%s\n%s was pushed, and neither approved nor accepted", explain, commit)
		byPerson = byPerson || c.accepted[commit]
	}
	ends := []escalation.Outcome{escalation.OutcomeResolved, escalation.OutcomeHealthy, escalation.OutcomeOverridden}
	if slices.Contains(ends, result.Outcome) {
		require.Empty(c.t, c.hosts.left(), "%s\nit ends, and these commits are not pushed", explain)
		require.Empty(c.t, c.hosts.untold(), "%s\nit ends, and nobody knows of these commits", explain)
		require.Empty(c.t, c.open, "%s\na finding has vanished", explain)
	}
	if promised(result.Gates) {
		require.Equal(c.t, escalation.OutcomeOverridden, result.Outcome, "%s\na gate has said that it ends so", explain)
	}
	switch {
	case c.hosts.latest == "":
		return "nothing"
	case len(c.hosts.left()) > 0:
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

// promised reports whether a person has overridden, and nobody has decided otherwise since.
func promised(gates []escalation.Gate) bool {
	for _, gate := range slices.Backward(gates) {
		if gate.Answer.Action == escalation.GateOverride {
			return true
		}
		if gate.Answer.Action == escalation.GateAbort || gate.Answer.ToTier != 0 || gate.Resume != string(review.StateApproved) {
			return false
		}
	}
	return false
}
