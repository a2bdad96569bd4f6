package cli

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

const (
	stageQueue = "stage"
	// nextScene is the signal that makes a chain show its next scene.
	nextScene = "next"
	// answersQuery is the query for the answers that were given at the chain's gates.
	answersQuery = "answers"
)

// scene is the state that a chain shows until the next scene.
type scene struct {
	Chain escalation.Chain
	// Progress is the heartbeat of the running tier; nil if no tier runs.
	Progress *activities.TierProgress
	// Failure is the error of the first attempt at the tier; empty if the attempt does not fail.
	Failure string
	// Queue is the task queue of the tier. If it is empty, the tier uses the stage's own queue, which has a worker.
	Queue string
}

// pretendTier is the name of the activity that replaces a tier's agent. It is the name of the real activity.
const pretendTier = "RunTier"

// play is a workflow that shows scenes one after the other. A signal or the answer to its gate moves it to the next
// scene. It ends with the last scene as its result. Clients see it as an escalation chain.
type play struct {
	scenes  []scene
	now     int
	answers []escalation.GateAnswer
}

func playChain(ctx workflow.Context, scenes []scene) (escalation.Chain, error) {
	p := &play{scenes: scenes}
	if err := p.listen(ctx); err != nil {
		return escalation.Chain{}, err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.GetSignalChannel(ctx, nextScene).Receive(ctx, nil) {
			p.now++
		}
	})
	for p.now < len(scenes)-1 {
		if err := p.show(ctx); err != nil {
			return escalation.Chain{}, err
		}
	}
	return p.chain(), workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// playPlan is a workflow that clients see as one that works on a plan. It waits at a gate, and then ends approved. Its
// input is that of the real workflows.
func playPlan(ctx workflow.Context, input workflows.PlanInput) (escalation.Chain, error) {
	waits, approved := chaintest.Planned(), chaintest.Amended()
	for _, chain := range []*escalation.Chain{&waits, &approved} {
		chain.ID, chain.Actor, chain.Verified = workflow.GetInfo(ctx).WorkflowExecution.ID, input.Actor, input.Verified
		chain.Plan.File, chain.Plan.Title = input.File, input.Prompt
	}
	return playChain(ctx, []scene{{Chain: waits}, {Chain: approved}})
}

func (p *play) chain() escalation.Chain { return p.scenes[min(p.now, len(p.scenes)-1)].Chain }

func (p *play) gate() *escalation.Gate {
	chain := p.chain()
	return chain.OpenGate()
}

func (p *play) listen(ctx workflow.Context) error {
	for name, handler := range map[string]any{
		workflows.ChainQuery: func() (escalation.Chain, error) { return p.chain(), nil },
		workflows.GateQuery:  func() (*escalation.Gate, error) { return p.gate(), nil },
		answersQuery:         func() ([]escalation.GateAnswer, error) { return p.answers, nil },
	} {
		if err := workflow.SetQueryHandler(ctx, name, handler); err != nil {
			return err
		}
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, workflows.ResolveGate, p.resolve, workflow.UpdateHandlerOptions{Validator: p.check})
}

func (p *play) check(answer escalation.GateAnswer) error {
	gate := p.gate()
	if gate == nil {
		return operations.ErrNoGate
	}
	policy := escalation.GatePolicy{Approvers: []string{"ada", "grace"}}
	if err := policy.CheckMayAnswer(answer, ""); err != nil {
		return err
	}
	return gate.Check(answer)
}

func (p *play) resolve(_ workflow.Context, answer escalation.GateAnswer) (escalation.GateResolution, error) {
	p.answers = append(p.answers, answer)
	p.now++
	return escalation.GateResolution{GateID: answer.GateID, Action: answer.Action, Next: "What is next: " + string(answer.Action) + "."}, nil
}

// show shows the current scene until the chain moves on.
func (p *play) show(ctx workflow.Context) error {
	state := "closed"
	if p.gate() != nil {
		state = "open"
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, workflows.GateAttribute.ValueSet(state)); err != nil {
		return err
	}
	working, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: p.scenes[p.now].Queue, StartToCloseTimeout: time.Hour, HeartbeatTimeout: 30 * time.Second,
	}))
	if progress := p.scenes[p.now].Progress; progress != nil {
		workflow.ExecuteActivity(working, pretendTier, *progress, p.scenes[p.now].Failure)
	}
	shown := p.now
	err := workflow.Await(ctx, func() bool { return p.now != shown })
	stop()
	return err
}

// runPretendTier sends heartbeats until it is cancelled. If failure is not empty, the first attempt fails with this
// message.
func runPretendTier(ctx context.Context, progress activities.TierProgress, failure string) error {
	if failure != "" && activity.GetInfo(ctx).Attempt == 1 {
		return temporal.NewApplicationError(failure, activities.ErrorTypeAgent)
	}
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx, progress)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// stage is a Temporal server with a worker that runs playChain.
type stage struct {
	t       *testing.T
	client  client.Client
	environ []string
}

func startStage(t *testing.T) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	logger := (&console.Console{Process: program.Process{Stderr: t.Output()}}).QuietLogger()
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c, err := supervisor.Connect(t.Context(), client.Options{HostPort: server.Address(), Namespace: embedded.DefaultNamespace, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, embedded.DefaultNamespace))
	w := worker.New(c, stageQueue, worker.Options{WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 100 * time.Millisecond})
	w.RegisterWorkflowWithOptions(playChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	for _, name := range []string{workflows.PlanReviewWorkflow, workflows.PhaseExecutionWorkflow} {
		w.RegisterWorkflowWithOptions(playPlan, workflow.RegisterOptions{Name: name})
	}
	w.RegisterActivityWithOptions(runPretendTier, activity.RegisterOptions{Name: pretendTier})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return &stage{t: t, client: c, environ: clitest.Environment(t, "TEMPORAL_ADDRESS="+server.Address(), "USER=ada")}
}

// plays starts a chain that shows scenes, and waits until the chain answers queries.
func (s *stage) plays(t *testing.T, id string, scenes ...scene) {
	t.Helper()
	for i := range scenes {
		scenes[i].Chain.ID = id
	}
	patiently(t, func() error {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: stageQueue}, workflows.ChainWorkflow, scenes)
		return err
	})
	patiently(t, func() error {
		_, err := operations.Query(t.Context(), s.client, id, "")
		return err
	})
}

// patiently repeats a call to Temporal until it succeeds, because a server may answer too late on a busy machine.
func patiently(t *testing.T, call func() error) {
	t.Helper()
	err := call()
	for began := time.Now(); err != nil && time.Since(began) < clitest.Timeout; err = call() {
		time.Sleep(clitest.Look)
	}
	require.NoError(t, err)
}

// next makes a chain show its next scene.
func (s *stage) next(t *testing.T, id string) {
	t.Helper()
	patiently(t, func() error { return s.client.SignalWorkflow(t.Context(), id, "", nextScene, nil) })
}

// answers returns the answers that a chain has received.
func (s *stage) answers(t *testing.T, id string) []escalation.GateAnswer {
	t.Helper()
	var answers []escalation.GateAnswer
	patiently(t, func() error {
		encoded, err := s.client.QueryWorkflow(t.Context(), id, "", answersQuery)
		if err != nil {
			return err
		}
		return encoded.Get(&answers)
	})
	return answers
}
