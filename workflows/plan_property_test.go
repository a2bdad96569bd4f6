package workflows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

// TestPlanProperties plays random work on plans, as TestChangeProperties plays chains. In each of them:
//
//   - each phase has a commit that an approving reviewer has seen, or that a person has accepted; so has what is pushed
//   - no P0 or P1 ends without an answer of a reviewer or the decision of a person, and each reviewer gets all that are open
//   - work that ends approved has pushed all that was committed, over all hosts and runs
//   - an answer at a gate does what the gate has said, and a gate names the latest commit
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	ends := map[string]int{}
	for seed := range *changeSeeds {
		p := newPlanPlay(t, seed)
		ends[p.play()]++
		ends["lost hosts"] += p.hosts.lost
		ends["new runs"] += p.runs - 1
	}
	for _, end := range []string{"approved", "accepted", "aborted", "overridden", "lost hosts", "new runs"} {
		require.Greater(t, ends[end], 5, "the plans are not of all kinds: %v", ends)
	}
	t.Logf("plans: %v", ends)
}

// planPlay is the random work on one plan. The world is that of its current run.
type planPlay struct {
	*planWorld
	*changeRecord

	workflowType string
	runs         int
}

func newPlanPlay(t *testing.T, seed uint64) *planPlay {
	t.Helper()
	p := &planPlay{changeRecord: newChangeRecord(seed), workflowType: workflows.PhaseExecutionWorkflow}
	if p.random.IntN(4) == 0 {
		p.workflowType = workflows.PlanReviewWorkflow
	}
	p.begin(t)
	p.policy.Review.MaxFixes = p.random.IntN(3)
	p.policy.Gate.Remind = nil
	p.policy.DayBudgetUSD = 100
	return p
}

// begin begins the first run of the work, or the next one.
func (p *planPlay) begin(t *testing.T) {
	t.Helper()
	before := p.planWorld
	p.planWorld = newPlanWorld(t)
	p.runs++
	if before != nil {
		p.policy, p.opened, p.turns = escalation.Policy{}, before.opened, before.turns
		p.env.SetStartTime(before.env.Now())
		p.env.SetContinuedExecutionRunID("the-run-before")
		p.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: fmt.Sprint("run-", p.runs)}) // sessions get other IDs in each run
	}
	p.author, p.fails, p.inspect = p.turn, p.workerLost, p.checkAgain
	p.world.review = func(input activities.RunReviewInput) (activities.RunReviewResult, error) {
		return p.changeRecord.review(p.world, input)
	}
	p.transcript = func() (bool, error) { return p.random.IntN(6) > 0, nil }
	p.push = func(request activities.PushRequest) activities.PushResult {
		p.begins("what is approved is pushed again")
		p.hosts.mayBeLost(p.random)
		return p.hosts.push(request, p.pushProblem)
	}
	p.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
		return escalation.AdmissionFacts{DaySpentUSD: []float64{200, 0}[min(1, p.random.IntN(15))]}
	}
	if p.random.IntN(2) == 0 {
		p.longHistory(time.Duration(p.random.IntN(30*60)) * time.Minute)
	}
	p.tierTakes = 10 * time.Minute
	for hours := range 80 {
		p.person(time.Duration(hours*5+1) * time.Hour)
	}
}

// workerLost loses each host that takes the author's session, at times.
func (p *planPlay) workerLost() error {
	if p.random.IntN(15) > 0 {
		return nil
	}
	p.hosts.isLost()
	return temporal.NewNonRetryableApplicationError("no worker has finished it", activities.ErrorTypeAgent, nil)
}

// turn plays a turn of the author.
func (p *planPlay) turn(number int, input activities.RunAuthorInput) activities.RunAuthorResult {
	p.begins("the author")
	lost := p.hosts.mayBeLost(p.random)
	p.hosts.bring("an author", input.From)
	p.hosts.bring("an author", input.At)
	result := p.commits(number, input)
	switch {
	case p.random.IntN(15) == 0:
		result.Change = &activities.Change{Branch: "claudeops/run", Base: input.From.Commit, Problem: "the worktree is gone"}
		return result
	case lost && input.ParentSessionID != "" && p.random.IntN(2) == 0:
		return activities.RunAuthorResult{
			Report: escalation.Report{Status: escalation.SessionTranscriptLost, Attempts: 1}, Change: p.left(*result.Change, input, false),
		}
	}
	result.Change = p.left(*result.Change, input, p.random.IntN(4) > 0)
	switch p.random.IntN(12) {
	case 0:
		result.Work = &review.Work{Status: review.WorkNeedsHuman, Summary: "which port?"}
		result.Report.Verdict = &escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "which port?"}
	case 1:
		change := result.Change
		result = timedOut(result.Report)
		result.Change = change
	case 2:
		result.Work, result.Problem = nil, "no valid report"
	case 3:
		result.Report, result.Work, result.Problem = p.limited(input.SessionID), nil, "a limit"
	case 4:
		result.Report.Status, result.Report.Ending, result.Report.Verdict = escalation.SessionFailed, escalation.EndingRefused, nil
		result.Work, result.Problem = nil, "the model refused"
	}
	return result
}

// left plays what an author leaves: a new commit, or what its worktree began with.
func (p *planPlay) left(change activities.Change, input activities.RunAuthorInput, works bool) *activities.Change {
	at := input.From.Commit
	if input.At.Commit != "" {
		at = input.At.Commit
	}
	if works {
		at = p.hosts.commit(at)
	}
	change.Commit, change.Tree, change.Pack = at, "t"+at, []byte(at)
	change.Files = []review.File{{Path: "compose.yaml", Added: 1, Listed: p.random.IntN(6) > 0}}
	if input.Task.Amend {
		change.Files = []review.File{{Path: "docs/plan.md", Added: 1, Listed: true}}
	}
	if at == input.From.Commit {
		change.Files, change.Pack = nil, nil
	}
	change.Checks = []review.QualityResult{"passed", "passed", "passed", "none", "failed", "unknown"}[p.random.IntN(6)]
	return &change
}

// checkAgain plays the checks of a commit that run again, perhaps on another host.
func (p *planPlay) checkAgain(input activities.RunAuthorInput) activities.Change {
	p.begins("the checks run again")
	p.hosts.mayBeLost(p.random)
	p.hosts.bring("a check", input.From)
	p.hosts.bring("a check", input.At)
	change := *p.commits(len(p.turns), input).Change
	return *p.left(change, input, false)
}

// person looks in every few hours, and answers at a gate as it likes. Not every gate is answered.
func (p *planPlay) person(after time.Duration) {
	p.env.RegisterDelayedCallback(func() {
		p.pushProblem = []string{"", "", "", "no route"}[p.random.IntN(4)]
		gate := p.openGate()
		if gate == nil || p.random.IntN(6) == 0 {
			return
		}
		if gate.Commit == "" && strings.Contains(gate.Reason, "it has committed") {
			p.broken = gate.ID + " names a commit that the phase does not have"
		}
		if latest := p.hosts.latest; latest != "" && !p.approved[latest] && !p.accepted[latest] && gate.Commit != latest {
			p.broken = fmt.Sprintf("%s is about %q, and the latest commit is %s", gate.ID, gate.Commit, latest)
		}
		if p.random.IntN(8) == 0 {
			p.env.SignalWorkflow(workflows.EscalateSignalName, workflows.EscalateSignal{ToTier: escalation.TierFullRepair})
		}
		p.answers(p.env, *gate)
	}, after)
}

// play plays the work to its end, checks it, and names the end.
func (p *planPlay) play() string {
	var result workflows.ChainResult
	for input := (workflows.PlanInput{}); ; {
		var err error
		var anew *workflow.ContinueAsNewError
		if result, err = p.run(p.workflowType, input); !errors.As(err, &anew) {
			require.NoError(p.t, err, "seed %d", p.seed)
			break
		}
		input = workflows.PlanInput{}
		require.NoError(p.t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))
		p.begin(p.t)
	}
	explain := fmt.Sprintf("seed %d: %s: %s\n%+v\n%+v", p.seed, result.Outcome, result.Reason, gatesOf(result.Gates), result.Plan.Phases)
	require.Empty(p.t, p.broken+p.hosts.broken, explain)
	for commit := range p.hosts.remote {
		require.True(p.t, p.approved[commit] || p.accepted[commit], "%s\n%s was pushed, and neither approved nor accepted", explain, commit)
	}
	for _, phase := range result.Plan.Phases {
		by := map[escalation.PhaseStatus]map[string]bool{escalation.PhaseApproved: p.approved, escalation.PhaseAccepted: p.accepted}[phase.Status]
		require.True(p.t, phase.Commit == "" || by[phase.Commit], "%s\nphase %s has a commit that nobody has approved", explain, phase.Number)
	}
	if result.Plan.Pushed != "" {
		require.True(p.t, p.hosts.remote[result.Plan.Commit], explain)
	}
	if result.Outcome != escalation.OutcomeApproved {
		return string(result.Outcome)
	}
	require.Empty(p.t, p.hosts.left(), "%s\nit ends, and these commits are not pushed", explain)
	require.Empty(p.t, p.open, "%s\na finding has vanished", explain)
	for _, phase := range result.Plan.Phases {
		if phase.Status == escalation.PhaseAccepted {
			return "accepted"
		}
	}
	return "approved"
}
