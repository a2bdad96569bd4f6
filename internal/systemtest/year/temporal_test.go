package year

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// eventsOfStep is the number of events in a history for each activity, timer and message.
const eventsOfStep = 3

// remembered is the time for which the simulated Temporal knows a closed workflow.
const remembered = 72 * time.Hour

// simulatedTemporal is a Temporal server and its worker. The workflows run in the SDK's test environment, as children
// of one root workflow. The environment's clock follows that of the bubble: an activity runs from the first moment to
// the last, so the environment never skips time by itself, and everything that enters the environment sets its clock
// first.
type simulatedTemporal struct {
	t    testing.TB
	env  *testsuite.TestWorkflowEnvironment
	done chan struct{} // ends the root workflow
	// rootInfo is that of the root workflow. It is used in the environment's loop only.
	rootInfo *workflow.Info

	mu         sync.Mutex
	executions map[string]*execution
	began      int // workflows, to number their runs
	requests   []*startRequest
	next       map[string]*execution // the runs that have continued as new, until the next ones begin
	// before is called before each activity, with its arguments. If it returns an error, the activity fails with it.
	before func(ctx context.Context, args []any) error
	// longest is the greatest number of activities, timers and messages of one workflow, which stand for its history.
	longest int
	turns   *turns
	// suggests reports whether Temporal suggests that a run, which began at a time, continues as new now.
	suggests func(workflowID string, began time.Time) bool
	// concluded is called when a chain has ended with a result.
	concluded func(chain escalation.Chain)
	// continued counts the runs that have continued as new, by the type of the workflow.
	continued map[string]int
	problem   func(format string, args ...any)
	loses     string // a signal between workflows that is lost, for the tests of the invariants; empty if none is
	// calls counts the activities by their names.
	calls map[string]int
}

// execution is a workflow as visibility shows it.
type execution struct {
	id, runID, kind string
	firstRunID      string // of the run that continued as new first
	continues       string // the run before, which has continued as new; empty if there is none
	started, closed time.Time
	asksSince       time.Time // since when it waits at a gate; zero if it does not
	status          enumspb.WorkflowExecutionStatus
	attributes      map[string]*commonpb.Payload
	memo            map[string]any
	err             error
	steps           int
	pending         map[string]*pendingActivity
}

// pendingActivity is an activity that has not ended.
type pendingActivity struct {
	kind      string
	scheduled time.Time
	attempt   int
	heartbeat *commonpb.Payloads
	cancelled bool
}

func newTemporal(t testing.TB, turns *turns) *simulatedTemporal {
	t.Helper()
	suite := new(testsuite.WorkflowTestSuite)
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &simulatedTemporal{
		t: t, env: suite.NewTestWorkflowEnvironment(), done: make(chan struct{}), executions: map[string]*execution{}, next: map[string]*execution{},
		before: func(context.Context, []any) error { return nil }, turns: turns, calls: map[string]int{}, continued: map[string]int{},
		suggests: func(string, time.Time) bool { return false }, concluded: func(escalation.Chain) {},
	}
	s.env.SetTestTimeout(10 * 365 * 24 * time.Hour)
	s.env.SetDetachedChildWait(false)
	s.env.SetContinueAsNewSuggested(true)                     // of the root, which lends it to the others (watchedSteps.GetInfo)
	s.env.SetActivityTimeoutGracePeriod(365 * 24 * time.Hour) // it counts all attempts together
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Hour, Interceptors: []interceptor.WorkerInterceptor{&watching{s: s}},
	})
	s.env.RegisterActivity(s.Live)
	return s
}

// Live is the activity that lets the environment wait for the bubble's clock.
func (s *simulatedTemporal) Live(context.Context) error {
	<-s.done
	return nil
}

// run runs the workflows until end is called.
func (s *simulatedTemporal) run() error {
	s.env.SetStartTime(time.Now())
	s.env.ExecuteWorkflow(s.root)
	return s.env.GetWorkflowError()
}

func (s *simulatedTemporal) end() { close(s.done) }

// root starts the workflows that clients ask for.
func (s *simulatedTemporal) root(ctx workflow.Context) error {
	_ = workflow.GetInfo(ctx) // for rootInfo
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 9 * 365 * 24 * time.Hour})
	over := workflow.ExecuteActivity(ctx, s.Live)
	for running := true; running; {
		workflow.NewSelector(ctx).
			AddFuture(over, func(workflow.Future) { running = false }).
			AddReceive(workflow.GetSignalChannel(ctx, "start"), func(asked workflow.ReceiveChannel, _ bool) {
				asked.Receive(ctx, nil)
				s.startAll(ctx)
			}).Select(ctx)
	}
	return nil
}

// startRequest asks for a workflow.
type startRequest struct {
	id, kind   string
	args       []any
	memo       map[string]any
	attributes temporal.SearchAttributes
	started    chan struct{}
}

func (s *simulatedTemporal) startAll(ctx workflow.Context) {
	s.mu.Lock()
	requests := s.requests
	s.requests = nil
	s.mu.Unlock()
	for _, request := range requests {
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: request.id, WaitForCancellation: true, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
			TypedSearchAttributes: request.attributes, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		}), request.kind, request.args...)
		workflow.Go(ctx, func(ctx workflow.Context) {
			if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
				s.problem("workflow %s does not start: %v", request.id, err)
			}
			close(request.started)
		})
	}
}

// sync sets the clock of the environment. It must run in the environment's loop.
func (s *simulatedTemporal) sync() {
	if ahead := time.Since(s.env.Now()); ahead > 0 {
		s.env.SetStartTime(s.env.Now().Add(ahead))
	}
}

// inLoop runs a function in the environment's loop, with a right clock, and waits for it.
func (s *simulatedTemporal) inLoop(ctx context.Context, do func()) error {
	did := make(chan struct{})
	s.env.RegisterDelayedCallback(func() {
		s.sync()
		do()
		close(did)
	}, 0)
	select {
	case <-did:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inRun is inLoop at a time when the workflow is not between two runs.
func (s *simulatedTemporal) inRun(ctx context.Context, id string, do func()) error {
	for {
		did := false
		err := s.inLoop(ctx, func() {
			s.mu.Lock()
			one := s.executions[id]
			between := one != nil && one.status == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
			s.mu.Unlock()
			if !between {
				did = true
				do()
			}
		})
		if did || err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts a workflow, and waits until it has begun.
func (s *simulatedTemporal) start(ctx context.Context, request startRequest) (runID string, err error) {
	request.started = make(chan struct{})
	s.mu.Lock()
	s.requests = append(s.requests, &request)
	s.mu.Unlock()
	if err := s.inLoop(ctx, func() { s.env.SignalWorkflow("start", nil) }); err != nil {
		return "", err
	}
	select {
	case <-request.started:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.executions[request.id]
	if found == nil {
		return "", nil
	}
	found.memo = request.memo
	return found.runID, nil
}

// running returns a workflow that runs; nil if there is none. If one continues as new, it waits for the next run.
func (s *simulatedTemporal) running(id string) *execution {
	for {
		s.mu.Lock()
		found := s.executions[id]
		status := enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED
		if found != nil {
			status = found.status
		}
		s.mu.Unlock()
		switch status {
		case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return found
		case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			time.Sleep(100 * time.Millisecond)
		default:
			return nil
		}
	}
}

// known returns the workflows that Temporal still knows: those that run, the latest first, then those that have ended.
func (s *simulatedTemporal) known() []execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []execution
	for _, one := range s.executions {
		if s.forgotten(one) {
			delete(s.executions, one.id)
			continue
		}
		copied := *one
		copied.attributes = maps.Clone(one.attributes)
		known = append(known, copied)
	}
	slices.SortFunc(known, func(a, b execution) int {
		if order := compareRunning(a, b); order != 0 {
			return order
		}
		if a.closed.IsZero() {
			return cmp.Or(b.started.Compare(a.started), cmp.Compare(a.id, b.id))
		}
		return cmp.Or(b.closed.Compare(a.closed), cmp.Compare(a.id, b.id))
	})
	return known
}

func compareRunning(a, b execution) int {
	switch {
	case a.closed.IsZero() == b.closed.IsZero():
		return 0
	case a.closed.IsZero():
		return -1
	}
	return 1
}

func (s *simulatedTemporal) forgotten(one *execution) bool {
	return !one.closed.IsZero() && time.Since(one.closed) > remembered
}

// describe returns a workflow as clients see it; nil if Temporal does not know it.
func (s *simulatedTemporal) describe(id string) (*workflowpb.WorkflowExecutionInfo, []*workflowpb.PendingActivityInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.executions[id]
	if one == nil || s.forgotten(one) {
		return nil, nil
	}
	var pending []*workflowpb.PendingActivityInfo
	for _, name := range slices.Sorted(maps.Keys(one.pending)) {
		at := one.pending[name]
		pending = append(pending, &workflowpb.PendingActivityInfo{
			ActivityId: name, ActivityType: &commonpb.ActivityType{Name: at.kind}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED,
			Attempt: int32(at.attempt), HeartbeatDetails: at.heartbeat, //nolint:gosec // a few
			ScheduledTime: timestamppb.New(at.scheduled), LastStartedTime: timestamppb.New(at.scheduled),
		})
	}
	return one.info(), pending
}

func (e *execution) info() *workflowpb.WorkflowExecutionInfo {
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: e.id, RunId: e.runID}, Type: &commonpb.WorkflowType{Name: e.kind},
		FirstRunId: e.firstRunID, StartTime: timestamppb.New(e.started), Status: e.status, TaskQueue: "claudeops",
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: e.attributes},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{}},
	}
	if !e.closed.IsZero() {
		info.CloseTime = timestamppb.New(e.closed)
	}
	for name, value := range e.memo {
		info.Memo.Fields[name], _ = converter.GetDefaultDataConverter().ToPayload(value)
	}
	return info
}

// RecordActivityHeartbeat implements activities.Heartbeats.
func (s *simulatedTemporal) RecordActivityHeartbeat(ctx context.Context, _ []byte, details ...any) error {
	info := activity.GetInfo(ctx)
	s.mu.Lock()
	one := s.executions[info.WorkflowExecution.ID]
	var at *pendingActivity
	if one != nil {
		at = one.pending[info.ActivityID]
	}
	if at == nil {
		s.mu.Unlock()
		return temporal.NewCanceledError()
	}
	at.heartbeat, _ = converter.GetDefaultDataConverter().ToPayloads(details...)
	cancelled := at.cancelled
	s.mu.Unlock()
	activity.RecordHeartbeat(ctx, details...)
	if cancelled {
		return temporal.NewCanceledError()
	}
	return nil
}

// watching sees what workflows and activities do.
type watching struct {
	interceptor.WorkerInterceptorBase

	s *simulatedTemporal
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *watching) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &watchedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, w.s}
}

type watchedActivity struct {
	interceptor.ActivityInboundInterceptorBase

	s *simulatedTemporal
}

// Init implements interceptor.ActivityInboundInterceptor.
func (w *watchedActivity) Init(next interceptor.ActivityOutboundInterceptor) error {
	return w.Next.Init(&heartbeats{interceptor.ActivityOutboundInterceptorBase{Next: next}, w.s})
}

// heartbeats gives an attempt the last heartbeat of the attempt before. The environment would give it an older one,
// because the SDK sends few of those that are close together.
type heartbeats struct {
	interceptor.ActivityOutboundInterceptorBase

	s *simulatedTemporal
}

// RecordHeartbeat implements interceptor.ActivityOutboundInterceptor.
func (h *heartbeats) RecordHeartbeat(ctx context.Context, details ...any) {
	if len(details) > 0 {
		h.s.keepHeartbeat(ctx, details)
	}
	h.Next.RecordHeartbeat(ctx, details...)
}

func (s *simulatedTemporal) keepHeartbeat(ctx context.Context, details []any) {
	info := activity.GetInfo(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.executions[info.WorkflowExecution.ID]; one != nil && one.pending[info.ActivityID] != nil {
		one.pending[info.ActivityID].heartbeat, _ = converter.GetDefaultDataConverter().ToPayloads(details...)
	}
}

// HasHeartbeatDetails implements interceptor.ActivityOutboundInterceptor.
func (h *heartbeats) HasHeartbeatDetails(ctx context.Context) bool {
	return h.s.lastHeartbeat(ctx) != nil
}

// GetHeartbeatDetails implements interceptor.ActivityOutboundInterceptor.
func (h *heartbeats) GetHeartbeatDetails(ctx context.Context, details ...any) error {
	return converter.GetDefaultDataConverter().FromPayloads(h.s.lastHeartbeat(ctx), details...)
}

func (s *simulatedTemporal) lastHeartbeat(ctx context.Context) *commonpb.Payloads {
	info := activity.GetInfo(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.executions[info.WorkflowExecution.ID]; one != nil && one.pending[info.ActivityID] != nil {
		return one.pending[info.ActivityID].heartbeat
	}
	return nil
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (w *watchedActivity) ExecuteActivity(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if info.ActivityType.Name == "Live" {
		return w.Next.ExecuteActivity(ctx, input)
	}
	w.s.turns.take(ctx)
	if w.s.begun(info) {
		return nil, temporal.NewCanceledError() // it was cancelled while it waited for this attempt
	}
	err := w.s.before(ctx, input.Args)
	var result any
	if err == nil {
		result, err = w.Next.ExecuteActivity(ctx, input)
	}
	if away, is := errorsAs[*temporal.ApplicationError](err); is {
		err = away // what says when the database is back, without what wraps it
	}
	if err == nil {
		w.s.ended(info)
	} else {
		err = w.s.failed(info, err)
	}
	w.s.env.RegisterDelayedCallback(w.s.sync, 0) // before the result arrives
	return result, err
}

// begun notes that an attempt begins. It reports whether the activity was cancelled before.
func (s *simulatedTemporal) begun(info activity.Info) (cancelled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[info.ActivityType.Name]++
	if one := s.executions[info.WorkflowExecution.ID]; one != nil && !info.IsLocalActivity {
		if one.pending[info.ActivityID] == nil {
			one.pending[info.ActivityID] = &pendingActivity{kind: info.ActivityType.Name, scheduled: info.ScheduledTime}
			one.steps++
		}
		one.pending[info.ActivityID].attempt = int(info.Attempt)
		return one.pending[info.ActivityID].cancelled
	}
	return false
}

// failed returns the error with which an attempt ends. Temporal repeats no activity that was cancelled.
func (s *simulatedTemporal) failed(info activity.Info, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.executions[info.WorkflowExecution.ID]
	application, is := errorsAs[*temporal.ApplicationError](err)
	if one == nil || one.pending[info.ActivityID] == nil || !one.pending[info.ActivityID].cancelled || !is {
		return err
	}
	var spent escalation.Report
	options := temporal.ApplicationErrorOptions{NonRetryable: true}
	if application.HasDetails() && application.Details(&spent) == nil {
		options.Details = []any{spent}
	}
	return temporal.NewApplicationErrorWithOptions(application.Message(), application.Type(), options)
}

func (s *simulatedTemporal) ended(info activity.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.executions[info.WorkflowExecution.ID]; one != nil {
		delete(one.pending, info.ActivityID)
	}
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (w *watching) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &watchedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, w.s}
}

type watchedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase

	s *simulatedTemporal
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (w *watchedWorkflow) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&watchedSteps{interceptor.WorkflowOutboundInterceptorBase{Next: next}, w.s})
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (w *watchedWorkflow) ExecuteWorkflow(ctx workflow.Context, input *interceptor.ExecuteWorkflowInput) (any, error) {
	info := workflow.GetInfo(ctx)
	if info.ParentWorkflowExecution == nil && info.WorkflowType.Name == "root" {
		return w.Next.ExecuteWorkflow(ctx, input)
	}
	w.s.mu.Lock()
	w.s.began++
	one := &execution{
		id: info.WorkflowExecution.ID, runID: info.WorkflowExecution.RunID, kind: info.WorkflowType.Name, started: time.Now(),
		status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, attributes: map[string]*commonpb.Payload{}, pending: map[string]*pendingActivity{},
	}
	one.firstRunID = one.runID
	if before := w.s.next[one.id]; before != nil {
		one.firstRunID, one.continues, one.memo, one.attributes = before.firstRunID, before.runID, before.memo, before.attributes
		delete(w.s.next, one.id)
	}
	w.s.executions[one.id] = one
	w.s.mu.Unlock()
	result, err := w.Next.ExecuteWorkflow(ctx, input)
	if chain, is := result.(escalation.Chain); is && err == nil {
		w.s.concluded(chain)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if workflow.IsContinueAsNewError(err) { // the environment begins the next run
		w.s.continued[one.kind]++
		w.s.next[one.id] = one
	}
	if info.WorkflowExecution.RunID == one.runID {
		one.closed, one.err, one.status = time.Now(), err, statusOf(err)
		w.s.longest = max(w.s.longest, one.steps)
		clear(one.pending)
	}
	return result, err
}

func statusOf(err error) enumspb.WorkflowExecutionStatus {
	switch {
	case err == nil:
		return enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	case temporal.IsCanceledError(err):
		return enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	case workflow.IsContinueAsNewError(err):
		return enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	}
	return enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
}

// watchedSteps sees the steps of a workflow.
type watchedSteps struct {
	interceptor.WorkflowOutboundInterceptorBase

	s *simulatedTemporal
}

// GetInfo implements interceptor.WorkflowOutboundInterceptor. A workflow that a client has started has no parent, and
// one that has continued as new knows the run before. The environment sets the length of the history for its root only,
// so the root's info is lent.
func (w *watchedSteps) GetInfo(ctx workflow.Context) *workflow.Info {
	info := w.Next.GetInfo(ctx)
	w.s.mu.Lock()
	one := w.s.executions[info.WorkflowExecution.ID]
	w.s.mu.Unlock()
	if info.ParentWorkflowExecution == nil {
		w.s.rootInfo = info
		return info
	}
	if one == nil || one.runID != info.WorkflowExecution.RunID { // it begins
		return info
	}
	w.s.env.SetContinueAsNewSuggested(w.s.suggests(one.id, one.started))
	w.s.env.SetCurrentHistoryLength(eventsOfStep * one.steps)
	copied := *w.s.rootInfo
	from, to := reflect.ValueOf(info).Elem(), reflect.ValueOf(&copied).Elem()
	for i := range from.NumField() {
		if from.Type().Field(i).IsExported() {
			to.Field(i).Set(from.Field(i))
		}
	}
	if parent := info.ParentWorkflowExecution; parent != nil && info.RootWorkflowExecution != nil && parent.ID == info.RootWorkflowExecution.ID {
		copied.ParentWorkflowExecution, copied.RootWorkflowExecution = nil, nil
	}
	copied.FirstRunID, copied.ContinuedExecutionRunID = one.firstRunID, one.continues
	return &copied
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor. The environment tells a workflow at once that its
// activity was cancelled, and the activity never. So the activity of an agent is cancelled here: its next heartbeat
// tells it, and the workflow waits for its result, as it does with Temporal.
func (w *watchedSteps) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if !slices.Contains(agentActivities(), name) || ctx.Err() != nil {
		return w.Next.ExecuteActivity(ctx, name, args...)
	}
	apart, _ := workflow.NewDisconnectedContext(ctx)
	apart = workflow.WithHeartbeatTimeout(apart, 0) // the environment would also count the pauses between attempts
	future := w.Next.ExecuteActivity(apart, name, args...)
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	workflow.Go(apart, func(apart workflow.Context) {
		stopped := false
		workflow.NewSelector(apart).AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { stopped = true }).
			AddFuture(future, func(workflow.Future) {}).Select(apart)
		if stopped && !future.IsReady() {
			w.s.cancelPending(id, name)
		}
	})
	return future
}

func (s *simulatedTemporal) cancelPending(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.executions[id]; one != nil {
		for _, at := range one.pending {
			at.cancelled = at.cancelled || at.kind == name
		}
	}
}

// NewTimer implements interceptor.WorkflowOutboundInterceptor.
func (w *watchedSteps) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	w.s.mu.Lock()
	if one := w.s.executions[id]; one != nil {
		w.s.calls["timers of "+one.kind]++
		one.steps++
	}
	w.s.mu.Unlock()
	return w.Next.NewTimerWithOptions(ctx, d, options)
}

// SignalExternalWorkflow implements interceptor.WorkflowOutboundInterceptor.
func (w *watchedSteps) SignalExternalWorkflow(ctx workflow.Context, id, runID, name string, arg any) workflow.Future {
	if name == w.s.loses {
		lost, set := workflow.NewFuture(ctx)
		set.SetValue(nil)
		return lost
	}
	return w.Next.SignalExternalWorkflow(ctx, id, runID, name, arg)
}

// UpsertTypedSearchAttributes implements interceptor.WorkflowOutboundInterceptor.
func (w *watchedSteps) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	err := w.Next.UpsertTypedSearchAttributes(ctx, updates...)
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if one := w.s.executions[id]; one != nil {
		attributes := temporal.NewSearchAttributes(updates...)
		if gate, set := attributes.GetKeyword(workflows.GateAttribute); set && gate != operations.OpenGate {
			one.asksSince = time.Time{}
		} else if set && one.asksSince.IsZero() {
			one.asksSince = time.Now()
		}
		for key, value := range attributes.GetUntypedValues() {
			if value == nil {
				delete(one.attributes, key.GetName())
				continue
			}
			one.attributes[key.GetName()], _ = converter.GetDefaultDataConverter().ToPayload(value)
		}
	}
	return err
}
