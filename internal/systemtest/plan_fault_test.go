package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// planFault is the work on a plan in a repository at a forge. Its workers are processes that the test starts and kills.
type planFault struct {
	*site

	environ      []string
	live, remote string
	forge        forgetest.Forge
	run          client.WorkflowRun
}

// newPlanFault prepares the work on the plan of newPlanRepository, whose additional checks are given.
func newPlanFault(t *testing.T, c client.Client, address string, scenario claudesim.Scenario, checks ...string) *planFault {
	t.Helper()
	live, remote := newPlanRepository(t, checks...)
	gitIn(t, live, "remote", "set-url", "origin", "https://github.com/acme/infra")
	gitIn(t, live, "remote", "set-url", "--push", "origin", remote)
	gitIn(t, remote, "config", "core.logAllRefUpdates", "always")
	f := &planFault{live: live, remote: remote, forge: forgetest.Install(t, "gh")}
	f.environ = environment(t, simtest.Install(t, scenario), "CLAUDEOPS_WORK_DIR="+live, "TEMPORAL_ADDRESS="+address,
		"PATH="+f.forge.Bin+":"+os.Getenv("PATH"))
	f.site = siteOf(t, c, f.environ)
	return f
}

// killAt starts the work with a worker that kills itself at p.
func (f *planFault) killAt(workflowType string, p point) {
	f.t.Helper()
	f.run = f.startPlan(workflowType)
	f.startDying(p, f.environ)()
}

// work starts a worker.
func (f *planFault) work() *roleProcess {
	f.t.Helper()
	return startRole(f.t, "worker", nil, f.environ...)
}

// finish waits for the end of the work. What was approved must be pushed and proposed once.
func (f *planFault) finish() escalation.Chain {
	f.t.Helper()
	chain, err := f.site.finish(f.run)
	require.NoError(f.t, err)
	require.NotEmpty(f.t, chain.Plan.Branch, "%s %+v", chain.Reason, chain.Last())
	require.Equal(f.t, "push", gitIn(f.t, f.remote, "reflog", "show", "--format=%gs", chain.Plan.Branch), "one push has had an effect")
	all := f.forge.PullRequests(f.t)
	require.Len(f.t, all, 1)
	require.Equal(f.t, []string{chain.Plan.Branch, "https://github.com/acme/infra/pull/1"}, []string{all[0].Branch, chain.Plan.PullRequest})
	requireUntouched(f.t, f.live)
	return chain
}

// killedAt kills the worker at each of the points of a plan's workflow. The next worker continues there, and want
// checks the end.
func killedAt(
	t *testing.T, workflow string, scenario claudesim.Scenario, points map[string]point, want func(*testing.T, *planFault, escalation.Chain),
) {
	t.Helper()
	c, address := startTemporalAt(t)
	for name, p := range points {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPlanFault(t, c, address, scenario)
			f.killAt(workflow, p)
			f.work()
			want(t, f, f.finish())
		})
	}
}

// TestFaultPlanKilledAt kills the worker at each state of a plan. The next worker continues at this state: no phase
// runs twice, and no commit is lost.
func TestFaultPlanKilledAt(t *testing.T) {
	t.Parallel()
	killedAt(t, workflows.PhaseExecutionWorkflow, twoPhases(), map[string]point{
		"before_execute":         before("RunAuthor", 1),
		"before_quality_retry":   before("RunAuthor", 2),
		"after_quality_retry":    after("RunAuthor", 2),
		"before_review":          before("RunReview", 1),
		"after_review":           after("RunReview", 1),
		"before_next_phase":      before("RunAuthor", 3),
		"before_auto_fix":        before("RunAuthor", 4),
		"after_the_last_review":  after("RunReview", 3),
		"before_the_push":        before("PushChange", 1),
		"after_the_push":         after("PushChange", 1),
		"after_the_pull_request": after("ProposeChange", 1),
	}, func(t *testing.T, f *planFault, chain escalation.Chain) {
		t.Helper()
		requireCarriedOut(t, chain, f.remote)
		require.Len(t, chain.Sessions, 7)
	})
}

// TestFaultPlanReviewKilledAt kills the worker at each state of the review of a plan. The plan is amended once.
func TestFaultPlanReviewKilledAt(t *testing.T) {
	t.Parallel()
	killedAt(t, workflows.PlanReviewWorkflow, amended(), map[string]point{
		"after_the_plan":  after("ReadPlan", 1),
		"before_review":   before("RunReview", 1),
		"after_review":    after("RunReview", 1),
		"before_auto_fix": before("RunAuthor", 1),
		"after_auto_fix":  after("RunAuthor", 1),
		"after_the_look":  after("RunReview", 2),
		"before_the_push": before("PushChange", 1),
		"after_the_push":  after("PushChange", 1),
	}, func(t *testing.T, f *planFault, chain escalation.Chain) {
		t.Helper()
		requireAmended(t, chain, f.remote)
	})
}

// TestFaultPlanDuringChecks ends the worker while a check of the repository runs. The next worker continues the
// author's conversation and has the checks repeated. Nobody is asked, and what the first worker's agent has spent
// counts.
func TestFaultPlanDuringChecks(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, end := range map[string]func(*roleProcess, *testing.T){"killed": (*roleProcess).kill, "drained": (*roleProcess).drain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := newHeldCheck()
			f := newPlanFault(t, c, address, twoPhases(), check.command())
			release := check.hold(t, f.live)
			f.environ = append(f.environ, "CLAUDEOPS_DRAIN_TIMEOUT=1s")
			f.run = f.startPlan(workflows.PhaseExecutionWorkflow)
			first := f.work()
			require.Eventually(t, func() bool { // what the author has spent must have reached Temporal
				return check.runs() && strings.HasPrefix(f.heartbeat(f.run.GetID()).Now.Waiting, "checks and previews of ")
			}, testTimeout, 20*time.Millisecond)
			end(first, t)
			release()
			f.work()
			chain := f.finish()
			requireCarriedOut(t, chain, f.remote)
			require.Len(t, chain.Sessions, 7)
			twice, once := chain.Sessions[0], chain.Sessions[1]
			require.Equal(t, []int{2, 1}, []int{twice.Attempts, once.Attempts})
			require.InDelta(t, 2*once.CostUSD, twice.CostUSD, 1e-9, "each attempt has made as many calls, and both count")
		})
	}
}

// TestFaultPlanKilledAtRepeatedChecks kills the worker when a person has the checks repeated that were not run to their
// end. The next worker repeats them, and no author runs again because of it.
func TestFaultPlanKilledAtRepeatedChecks(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{"before": before("InspectRun", 1), "after": after("InspectRun", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := newHeldCheck()
			f := newPlanFault(t, c, address, twoPhases(), check.command())
			release := check.hold(t, f.live)
			f.environ = append(f.environ, "CLAUDEOPS_GATE_TIMEOUT=72h")
			f.run = f.startPlan(workflows.PhaseExecutionWorkflow)
			impatient := startRole(t, "worker", nil, append(slices.Clip(f.environ), checkLimitVariable+"=1s")...)
			gate := f.awaitGate(f.run.GetID(), "gate-1")
			require.Contains(t, gate.Reason, "the checks could not run")
			impatient.kill(t)
			release()
			dies := f.startDying(p, f.environ)
			_, err := f.resolve(f.run.GetID(), escalation.GateAnswer{GateID: gate.ID, Action: escalation.GateFix, Actor: "anna"})
			require.NoError(t, err)
			dies()
			f.work()
			chain := f.finish()
			requireCarriedOut(t, chain, f.remote)
			require.Len(t, chain.Sessions, 7)
		})
	}
}

// TestFaultPlanAuthorContinues kills the worker while an author's question waits for an answer. The next worker
// continues the author's conversation with the answer.
func TestFaultPlanAuthorContinues(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	asks := review.Work{Status: review.WorkNeedsHuman, Summary: "which port is right?"}
	f := newPlanFault(t, c, address, claudesim.Play(
		reviews(ready),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "it is 8080"}, claudesim.Bash(rightPort+ticks("web: the right port")), claudesim.Conclude(work())),
		claudesim.On(claudesim.Match{First: "You are the author"}, claudesim.Bash("cat compose.yaml"), claudesim.Conclude(asks))))
	f.environ = append(f.environ, "CLAUDEOPS_GATE_TIMEOUT=72h")
	f.run = f.startPlanAs("asks", workflows.PhaseExecutionWorkflow, workflows.PlanInput{File: "plan.md", Phases: []string{"1"}})
	worker := f.work()
	gate := f.awaitGate("asks", "gate-1")
	require.Contains(t, gate.Reason, "which port is right?")
	require.NotNil(t, gate.Continuation, gate.NoContinuation)
	require.Equal(t, []string{"author", "execute"}, []string{gate.Continuation.Role, gate.Continuation.Resume})
	worker.kill(t)
	f.work()
	answered, err := f.resolve("asks", escalation.GateAnswer{GateID: gate.ID, Action: escalation.GateContinue, Actor: "anna", Guidance: "it is 8080"})
	require.NoError(t, err)
	require.Equal(t, "the author goes on and keeps what it knows, with the guidance", answered.Next)
	chain := f.finish()
	require.Equal(t, escalation.OutcomeApproved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Equal(t, []escalation.Purpose{escalation.PurposeAuthor, escalation.PurposeAuthor, escalation.PurposeReview}, purposes(chain))
	require.Equal(t, []any{chain.Sessions[0].ID, escalation.ReasonContinued}, []any{chain.Sessions[1].ParentID, chain.Sessions[1].ContinuityReason})
	require.Equal(t, "web: the right port", gitIn(t, f.remote, "log", "--format=%s", "main.."+chain.Plan.Branch))
}

// TestFaultPlanDuringThePush ends the worker while the remote receives a push. The next worker pushes again, and nobody
// is asked.
func TestFaultPlanDuringThePush(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, end := range map[string]func(*roleProcess, *testing.T){"killed": (*roleProcess).kill, "drained": (*roleProcess).drain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, held := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "held")
			require.NoError(t, os.WriteFile(held, nil, 0o600))
			f := newPlanFault(t, c, address, amended())
			require.NoError(t, process.WriteProgram(filepath.Join(f.remote, "hooks", "pre-receive"),
				fmt.Appendf(nil, "#!/bin/sh\n[ -e %[1]s ] && touch %[2]s\nwhile [ -e %[1]s ]; do sleep 0.05; done\n", held, begun)))
			f.run = f.startPlan(workflows.PlanReviewWorkflow)
			first := f.work()
			require.Eventually(t, exists(begun), testTimeout, 20*time.Millisecond)
			end(first, t)
			require.NoError(t, os.Remove(held))
			f.work()
			requireAmended(t, f.finish(), f.remote)
		})
	}
}

// TestFaultPlanKilledAtGates kills the worker at each open gate of a plan. The answer reaches the next worker, and the
// work continues with it.
func TestFaultPlanKilledAtGates(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	f := newPlanFault(t, c, address, twoPhases())
	f.environ = append(f.environ, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_REVIEW_MAX_FIXES=0") // a person decides on each correction
	f.run = f.startPlan(workflows.PhaseExecutionWorkflow)
	worker := f.work()
	for _, open := range []struct{ id, phase, reason string }{
		{"gate-1", "1", "the checks have failed"}, {"gate-2", "2", "a comment is left"},
	} {
		gate := f.awaitGate(f.run.GetID(), open.id)
		require.Equal(t, open.phase, gate.Phase)
		require.Contains(t, gate.Reason, open.reason)
		worker.kill(t)
		worker = f.work()
		answered, err := f.resolve(f.run.GetID(), escalation.GateAnswer{GateID: open.id, Action: escalation.GateFix, Actor: "anna"})
		require.NoError(t, err)
		require.Equal(t, "the author starts fresh", answered.Next)
	}
	chain := f.finish()
	requireCarriedOut(t, chain, f.remote)
	require.Len(t, chain.Sessions, 7)
	require.Len(t, chain.Gates, 2)
}

// TestFaultPlanHostLost deletes the host that has made the first phase before it is reviewed, or both before they are
// pushed. Another host, with a clone of its own, goes on with what the host has committed.
func TestFaultPlanHostLost(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{
		"before_quality_retry": before("RunAuthor", 2), "before_review": before("RunReview", 1), "before_auto_fix": before("RunAuthor", 4),
		"before_the_push": before("PushChange", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newPlanRepository(t)
			elsewhere := filepath.Join(t.TempDir(), "clone")
			gitIn(t, filepath.Dir(elsewhere), "clone", "--quiet", "--branch", "main", remote, elsewhere)
			leaves, queue := filepath.Join(t.TempDir(), "leaves"), "CLAUDEOPS_TASK_QUEUE=lost-"+name
			here := newHost(t, simtest.Install(t, twoPhases()), "file://"+t.TempDir())
			first := startSite(t, connect(t, address, leaving(p, leaves)), here.environ(t, queue, "CLAUDEOPS_WORK_DIR="+live))
			run := first.startPlan(workflows.PhaseExecutionWorkflow)
			require.Eventually(t, exists(leaves), testTimeout, 20*time.Millisecond)
			require.NoError(t, first.stop())
			loseHost(t, here.home)
			require.NoError(t, os.RemoveAll(live))

			environ := here.another(t).environ(t, queue, "CLAUDEOPS_WORK_DIR="+elsewhere)
			startWorker(t, environ, address)
			chain, err := siteOf(t, c, environ).finish(run)
			require.NoError(t, err)
			requireCarriedOut(t, chain, remote)
			if name == "before_review" {
				require.NotEqual(t, chain.Sessions[0].Host, chain.Sessions[2].Host, "author and reviewer are on two hosts")
				require.NotEqual(t, chain.Sessions[0].Host, chain.Sessions[3].Host)
			}
		})
	}
}
