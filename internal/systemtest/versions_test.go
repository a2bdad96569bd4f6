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
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// changedShape is an interceptor that adds a timer at the beginning of all workflows of a worker. A worker with
// changedShape cannot replay histories of a worker without it. A worker without changedShape cannot replay histories of
// a worker with it.
type changedShape struct{ interceptor.InterceptorBase }

// InterceptWorkflow implements interceptor.Interceptor.
func (*changedShape) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &changedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type changedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (w *changedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return nil, err
	}
	return w.Next.ExecuteWorkflow(ctx, in)
}

// TestDeployUnderChains deploys a version with changed workflows while a chain of each kind runs.
func TestDeployUnderChains(t *testing.T) {
	t.Parallel()
	deployUnder(t, kinds)
}

// kinds is the number of kinds of chains in this test.
const kinds = 4

// deployed is a deployment of two versions, each on its own host. The hosts share the records and the archive.
type deployed struct {
	t      *testing.T
	dir    string
	chains int
	// old and fresh are the hosts of the two versions.
	old, fresh *site
	deployment string
}

// The kinds of chains. The number of a chain determines its kind and its service. A waiting chain waits for the service
// of the chain before it.
const (
	atWork = iota
	waiting
	answeredToGoOn
	answeredToEnd
)

func (d *deployed) id(i int) string { return fmt.Sprintf("%s-%02d", nameOf(d.t), i) }

func (d *deployed) service(i int) string {
	if i%kinds == waiting {
		i--
	}
	return fmt.Sprintf("service-%02d", i)
}

// file returns the path of a marker file. Agents create marker files, or wait for them.
func (d *deployed) file(name string) string { return filepath.Join(d.dir, name) }

// deployUnder begins chains of every kind in one version. It makes a version with changed workflows current, and lets
// the chains end. Chains that continue after a gate must continue in the new version. All other chains must stay in the
// old version.
func deployUnder(t *testing.T, chains int) {
	t.Helper()
	c := startTemporal(t)
	d := &deployed{t: t, dir: t.TempDir(), chains: chains, deployment: nameOf(t)}
	claude := simtest.Install(t, claudesim.Play(d.turns()...))
	here := newHost(t, claude, "file://"+t.TempDir())
	settings := []string{
		"CLAUDEOPS_DEPLOYMENT=" + d.deployment, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_TIER2_TOOLS=Bash",
		"CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_GATE_ON_HEALED=keep", fmt.Sprint("CLAUDEOPS_MAX_CONCURRENT_AGENTS=", chains),
	}
	d.old = startSite(t, c, here.environ(t, slices.Concat(settings, []string{"CLAUDEOPS_BUILD_ID=old"})...))
	d.promote("old")
	d.begin()
	d.fresh = startSite(t, connect(t, sharedTemporal.server.Address(), &changedShape{}),
		here.another(t).environ(t, slices.Concat(settings, []string{"CLAUDEOPS_BUILD_ID=fresh"})...))
	d.promote("fresh")
	d.end()

	require.NoError(t, d.old.stop())
	open, err := d.fresh.records().Running(t.Context())
	require.NoError(t, err)
	require.Empty(t, open)
	after := d.fresh.startAs(d.id(chains)+"-after", map[string]any{"prompt": "is all well?"})
	d.requireEnded(after.GetID(), escalation.OutcomeHealthy, "fresh")
}

// turns returns what the agents do.
func (d *deployed) turns() []claudesim.Turn {
	turns := []claudesim.Turn{
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(resolved())).Named("continued"),
		claudesim.On(claudesim.Match{First: "is all well?"}, claudesim.Conclude(allWell())),
	}
	for i := range d.chains {
		asks, mends, person := asksFor(2), resolved(), needsPerson()
		for _, verdict := range []*escalation.Verdict{&asks, &mends, &person} {
			verdict.Services = []string{d.service(i)}
		}
		prompt := "look at " + d.id(i)
		switch i % kinds {
		case atWork:
			turns = append(turns, claudesim.On(claudesim.Match{First: prompt, Model: "sonnet"},
				claudesim.Bash(fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.1; done", d.file(d.id(i)), d.file("release"))),
				claudesim.Conclude(mends)), claudesim.On(claudesim.Match{First: prompt}, claudesim.Conclude(asks)))
		case waiting:
			turns = append(turns, claudesim.On(claudesim.Match{First: prompt, Model: "sonnet"}, claudesim.Conclude(mends)),
				claudesim.On(claudesim.Match{First: prompt}, claudesim.Conclude(asks)))
		default:
			turns = append(turns, claudesim.On(claudesim.Match{First: prompt}, claudesim.Conclude(person)))
		}
	}
	return turns
}

// TestDeployUnderPlans deploys a version with changed workflows while the author of a plan works, and while another
// plan waits at a gate. The first goes on in the new version after that turn, the second after its answer, on another
// host with another clone.
func TestDeployUnderPlans(t *testing.T) {
	t.Parallel()
	c := startTemporal(t)
	d := &deployed{t: t, dir: t.TempDir(), deployment: nameOf(t)}
	live, remote := newPlanRepository(t)
	elsewhere := filepath.Join(t.TempDir(), "clone")
	gitIn(t, filepath.Dir(elsewhere), "clone", "--quiet", "--branch", "main", remote, elsewhere)
	mends := "sed -i s/8081/8080/ compose.yaml" + ticks("web: the port")
	here := newHost(t, simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{First: "You review a change"}, claudesim.Conclude(ready)),
		claudesim.On(claudesim.Match{First: "it is 8080, says anna"}, claudesim.Bash(mends), claudesim.Conclude(work())),
		claudesim.On(claudesim.Match{First: "ask which port"},
			claudesim.Conclude(review.Work{Status: review.WorkNeedsHuman, Summary: "which port?"})),
		claudesim.On(claudesim.Match{First: "wait for the release"},
			claudesim.Bash(fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.1; done", d.file("begun"), d.file("release"))),
			claudesim.Bash(mends), claudesim.Conclude(work())))), "file://"+t.TempDir())
	settings := []string{"CLAUDEOPS_DEPLOYMENT=" + d.deployment, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_TASK_QUEUE=" + nameOf(t)}
	d.old = startSite(t, c, here.environ(t, slices.Concat(settings, []string{"CLAUDEOPS_BUILD_ID=old", "CLAUDEOPS_WORK_DIR=" + live})...))
	d.promote("old")
	begin := func(prompt string) client.WorkflowRun {
		return d.old.startPlanAs(fmt.Sprintf("%s-%s", nameOf(t), strings.Fields(prompt)[0]), workflows.PhaseExecutionWorkflow,
			workflows.PlanInput{File: "plan.md", Phases: []string{"1"}, Prompt: prompt, Actor: "anna"})
	}
	atWork, asks := begin("wait for the release"), begin("ask which port")
	require.Eventually(t, exists(d.file("begun")), testTimeout, 20*time.Millisecond)
	d.old.awaitGate(asks.GetID(), "gate-1")
	d.fresh = startSite(t, connect(t, sharedTemporal.server.Address(), &changedShape{}), here.another(t).environ(t,
		slices.Concat(settings, []string{"CLAUDEOPS_BUILD_ID=fresh", "CLAUDEOPS_WORK_DIR=" + elsewhere})...))
	d.promote("fresh")

	require.NoError(t, os.WriteFile(d.file("release"), nil, 0o600))
	d.requireEnded(atWork.GetID(), escalation.OutcomeApproved, "fresh")
	_, err := d.old.resolve(asks.GetID(), escalation.GateAnswer{
		GateID: "gate-1", Action: escalation.GateFix, Actor: "anna", Guidance: "it is 8080, says anna",
	})
	require.NoError(t, err)
	d.requireEnded(asks.GetID(), escalation.OutcomeApproved, "fresh")
	require.Len(t, strings.Split(pushedTo(t, remote), "\n"), 2)
	requireUntouched(t, live)
	requireUntouched(t, elsewhere)
}

// promote makes a version current as soon as Temporal knows its worker, and waits until the task queue of the chains
// knows that version. A chain at a gate does not move before that.
func (d *deployed) promote(buildID string) {
	d.t.Helper()
	handle := d.old.client.WorkerDeploymentClient().GetHandle(d.deployment)
	var err error
	require.Eventually(d.t, func() bool {
		_, err = handle.SetCurrentVersion(d.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: buildID})
		return err == nil
	}, testTimeout, 100*time.Millisecond, "%v", err)
	require.Eventually(d.t, func() bool {
		queue, err := d.old.client.WorkflowService().DescribeTaskQueue(d.t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: client.DefaultNamespace, TaskQueue: &taskqueuepb.TaskQueue{Name: d.old.cfg.Worker.TaskQueue},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
		})
		return err == nil && queue.GetVersioningInfo().GetCurrentDeploymentVersion().GetBuildId() == buildID
	}, testTimeout, 20*time.Millisecond, "the task queue does not learn that %s is current", buildID)
}

// begin starts the chains. It waits until each chain has an agent at work, waits, or is at its gate.
func (d *deployed) begin() {
	d.t.Helper()
	for _, kind := range []int{atWork, waiting, answeredToGoOn, answeredToEnd} {
		for i := kind; i < d.chains; i += kinds {
			d.old.startAs(d.id(i), map[string]any{"prompt": "look at " + d.id(i), "force": true})
		}
		for i := kind; i < d.chains; i += kinds {
			switch kind {
			case atWork:
				require.Eventually(d.t, exists(d.file(d.id(i))), testTimeout, 20*time.Millisecond)
			case waiting:
				require.Equal(d.t, escalation.RuleServiceBusy, d.old.awaitWait(d.id(i)).Wait.Rule)
			default:
				d.old.awaitGate(d.id(i), "gate-1")
			}
		}
	}
}

// end lets all chains end, and checks the outcome and the version of each.
func (d *deployed) end() {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(d.file("release"), nil, 0o600))
	for i := range d.chains {
		switch i % kinds {
		case atWork:
			d.requireEnded(d.id(i), escalation.OutcomeResolved, "old")
		case waiting: // the service is free now; without the signal the chain would check this only once a minute
			signal := workflows.EscalateSignal{ToTier: escalation.TierSafeRepair}
			require.NoError(d.t, d.old.client.SignalWorkflow(d.t.Context(), d.id(i), "", workflows.EscalateSignalName, signal))
			d.requireEnded(d.id(i), escalation.OutcomeResolved, "old")
		case answeredToGoOn:
			d.answer(i, escalation.GateContinue)
			d.requireEnded(d.id(i), escalation.OutcomeResolved, "fresh")
		case answeredToEnd:
			d.answer(i, escalation.GateOverride)
			d.requireEnded(d.id(i), escalation.OutcomeOverridden, "old")
		}
	}
}

func (d *deployed) answer(i int, action escalation.GateAction) {
	d.t.Helper()
	_, err := d.old.resolve(d.id(i), escalation.GateAnswer{GateID: "gate-1", Action: action, Actor: "anna"})
	require.NoError(d.t, err)
}

// requireEnded waits for the end of a chain, and checks that the given version has run its last step.
func (d *deployed) requireEnded(id string, outcome escalation.Outcome, buildID string) {
	d.t.Helper()
	chain, err := d.old.finish(d.old.client.GetWorkflow(d.t.Context(), id, ""))
	require.NoError(d.t, err, id)
	require.Equal(d.t, outcome, chain.Outcome, "%s: %s %+v", id, chain.Reason, chain.Last())
	requireRecorded(d.t, d.old, chain)
	described, err := d.old.client.DescribeWorkflowExecution(d.t.Context(), id, "")
	require.NoError(d.t, err)
	version := described.GetWorkflowExecutionInfo().GetVersioningInfo()
	require.Equal(d.t, enumspb.VERSIONING_BEHAVIOR_PINNED, version.GetBehavior())
	require.Equal(d.t, buildID, version.GetDeploymentVersion().GetBuildId(), id)
}

var _ interceptor.Interceptor = (*changedShape)(nil)
