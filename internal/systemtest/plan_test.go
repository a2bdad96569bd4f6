package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

const portsPlan = `# Ports and memory

## Phase 1: port
- [ ] the port is 8080

## Phase 2: memory
- [ ] the memory has a limit
`

// newPlanRepository makes a repository with a plan of two phases, and a test that fails. Its remote is a bare
// repository. The commands checks run in front of the test.
func newPlanRepository(t *testing.T, checks ...string) (live, remote string) {
	t.Helper()
	live, remote = newRemoteRepository(t)
	require.NoError(t, os.WriteFile(filepath.Join(live, "plan.md"), []byte(portsPlan), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(live, "tests"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(live, "tests", "port.sh"), []byte("grep -q 8080:80 compose.yaml\n"), 0o600))
	listed := strings.Join(append(checks, "sh tests/port.sh\n"), "\n")
	require.NoError(t, os.WriteFile(filepath.Join(live, review.ChecksFile), []byte(listed), 0o600))
	gitIn(t, live, "add", "--all")
	gitIn(t, live, "commit", "--quiet", "--amend", "--message", "first")
	gitIn(t, live, "push", "--quiet", "--force", "origin", "main")
	return live, remote
}

// work returns the report of an author that has done everything.
func work() review.Work {
	return review.Work{Status: review.WorkComplete, Summary: "what was asked for is committed"}
}

// ticks is a command that ticks off the first open entry of the plan, and commits everything.
func ticks(message string) string {
	return " && sed -i '0,/\\[ \\]/s//[x]/' plan.md && git add --all && git commit --quiet --message '" + message + "'"
}

// twoPhases returns the turns of an author and a reviewer. The first attempt at phase 1 fails its checks, and the first
// at phase 2 leaves a comment that the reviewer finds.
func twoPhases() claudesim.Scenario {
	author := func(prompt string, replies ...claudesim.Reply) claudesim.Turn {
		return claudesim.On(claudesim.Match{Model: "sonnet", First: "You are the author", Prompt: prompt},
			append(replies, claudesim.Conclude(work()))...)
	}
	left := review.Finding{
		Fingerprint: "left-over", Priority: review.P1, Action: review.AutoFix, File: "compose.yaml", Line: 6, Text: "a comment is left",
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{First: "You review a change", Prompt: startedAgain}, claudesim.Conclude(ready)),
		claudesim.On(claudesim.Match{First: "You review a change", Prompt: "## The second review"}, claudesim.Conclude(corrected)),
		claudesim.On(claudesim.Match{First: "You review a change", Prompt: "carries out phase `2`"},
			claudesim.Bash("cat $TMPDIR/commit-*/plan.md $TMPDIR/commit-*/compose.yaml"),
			claudesim.Conclude(review.Verdict{Status: review.NotReady, Summary: "a comment is left", Findings: []review.Finding{left}})),
		claudesim.On(claudesim.Match{First: "You review a change"}, claudesim.Conclude(ready)),
		author("The checks of the repository have failed",
			claudesim.Bash("sed -i s/8090/8080/ compose.yaml && git commit --quiet --all --message 'web: the right port'")),
		author("a comment is left", claudesim.Bash("sed -i /debug/d compose.yaml && git commit --quiet --all --message 'web: no comment'")),
		author("Carry out phase `1`", claudesim.Bash("sed -i s/8081/8090/ compose.yaml"+ticks("web: another port"))),
		author("Carry out phase `2`",
			claudesim.Bash("printf '    mem_limit: 64m\\n# debug\\n' >> compose.yaml"+ticks("web: a limit")),
			claudesim.Bash("git push origin HEAD")),
		author(startedAgain, claudesim.Bash("git status --short")),
	)
}

// startPlan starts the work on plan.md.
func (s *site) startPlan(workflowType string) client.WorkflowRun {
	s.t.Helper()
	return s.startPlanAs("plan-"+nameOf(s.t), workflowType, workflows.PlanInput{File: "plan.md"})
}

// startPlanAs starts the work on a plan under an ID.
func (s *site) startPlanAs(id, workflowType string, input workflows.PlanInput) client.WorkflowRun {
	s.t.Helper()
	run, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: s.cfg.Worker.TaskQueue},
		workflowType, input)
	require.NoError(s.t, err)
	return run
}

// requireCarriedOut checks the end of twoPhases: every phase approved once, in commits of its own, and pushed.
func requireCarriedOut(t *testing.T, chain escalation.Chain, remote string) {
	t.Helper()
	require.Equal(t, escalation.OutcomeApproved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	state := chain.Plan
	require.Len(t, state.Phases, 2)
	for _, phase := range state.Phases {
		require.Equal(t, escalation.PhaseApproved, phase.Status)
	}
	require.Equal(t, []int{1, 1}, []int{state.Phases[1].Found, state.Phases[1].Fixed})
	require.Equal(t, state.Commit+" refs/heads/"+state.Branch,
		pushedTo(t, remote))
	require.Equal(t, "web: a limit\nweb: another port",
		gitIn(t, remote, "log", "--format=%s", "main.."+state.Branch), "a phase leaves as one commit")
	require.Contains(t, gitIn(t, remote, "show", state.Branch+":compose.yaml"), "8080:80\"]\n    mem_limit: 64m")
	require.NotContains(t, gitIn(t, remote, "show", state.Branch+":plan.md"), "[ ]")
	require.Equal(t, state.Phases[0].Commit, gitIn(t, remote, "rev-parse", state.Branch+"~"))
}

// TestPlanOfTwoPhases repairs a repository with a failing test over two phases.
func TestPlanOfTwoPhases(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live, remote := newPlanRepository(t)
			backend := start(t, version, twoPhases())
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live)...))
				run := s.startPlan(workflows.PhaseExecutionWorkflow)
				chain, err := s.finish(run)
				require.NoError(t, err)
				requireCarriedOut(t, chain, remote)
				require.Len(t, chain.Sessions, 7)
				var sessions []string
				for _, session := range chain.Sessions {
					sessions = append(sessions, fmt.Sprintf("%s %s %s", session.Purpose, session.Phase, session.ContinuityReason))
				}
				require.Equal(t, []string{
					"author 1 phase", "author 1 correction", "review 1 independent",
					"author 2 phase", "review 2 independent", "author 2 correction", "review 2 independent",
				}, sessions)
				requireUntouched(t, live)
				requireRecorded(t, s, chain)
				if backend.name == "played" {
					recordHistory(t, s, run, "plan_phases")
				}
				var said []string
				for _, request := range backend.asked() {
					said = append(said, request.ToolResults()...)
				}
				require.Contains(t, strings.Join(said, "\n"), "the supervisor pushes what a review has approved")
				require.Contains(t, strings.Join(said, "\n"), "- [x] the memory has a limit", "the reviewer reads the phases, approved and new")
			})
		}
	}
}

// amended returns the turns of a reviewer who misses something in a plan, and of the author who adds it.
func amended() claudesim.Scenario {
	vague := review.Finding{
		Fingerprint: "no-undo", Priority: review.P1, Action: review.AutoFix, File: "plan.md", Line: 6, Text: "say how to undo it",
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{First: "## The second review"}, claudesim.Conclude(corrected)),
		reviews(review.Verdict{Status: review.ReadyWithCorrections, Summary: "vague", Findings: []review.Finding{vague}}),
		claudesim.On(claudesim.Match{First: "You are the author", Prompt: "say how to undo it"},
			// An attempt whose predecessor has reported nothing gets the same prompt again, and looks whether the work
			// is done.
			claudesim.Bash("grep -q undo plan.md || sed -i 's/has a limit/has a limit; undo: remove it/' plan.md; "+
				"git diff --quiet || git commit --quiet --all --message 'plan: undo'"),
			claudesim.Conclude(work())),
		claudesim.On(claudesim.Match{First: "You are the author", Prompt: startedAgain},
			claudesim.Bash("git status --short"), claudesim.Conclude(work())))
}

// requireAmended checks the end of amended: one amendment, reviewed and pushed.
func requireAmended(t *testing.T, chain escalation.Chain, remote string) {
	t.Helper()
	require.Equal(t, escalation.OutcomeApproved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 3)
	require.Equal(t, "plan: undo", gitIn(t, remote, "log", "--format=%s", "main.."+chain.Plan.Branch))
	require.Contains(t, gitIn(t, remote, "show", chain.Plan.Branch+":plan.md"), "undo: remove it")
}

// TestPlanReviewOfARepository has a plan reviewed that lacks an order: the author amends it, and the amended plan is
// pushed.
func TestPlanReviewOfARepository(t *testing.T) {
	t.Parallel()
	live, remote := newPlanRepository(t)
	s := startSite(t, startTemporal(t), environment(t, simtest.Install(t, amended()), "CLAUDEOPS_WORK_DIR="+live))
	run := s.startPlan(workflows.PlanReviewWorkflow)
	chain, err := s.finish(run)
	require.NoError(t, err)
	requireAmended(t, chain, remote)
	requireUntouched(t, live)
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "plan_review")
}
