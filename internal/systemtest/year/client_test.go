package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// here is the namespace of the installation.
var here = store.Namespace{ID: "here", Name: "default"}

// temporalClient is a client of the simulated Temporal. What it lacks, nobody calls.
type temporalClient struct {
	client.Client

	s         *simulatedTemporal
	schedules *schedules
}

// Close implements client.Client.
func (c temporalClient) Close() {}

// WorkflowService implements client.Client.
func (c temporalClient) WorkflowService() workflowservice.WorkflowServiceClient { return service{} }

// ScheduleClient implements client.Client.
func (c temporalClient) ScheduleClient() client.ScheduleClient {
	return scheduleClient{schedules: c.schedules}
}

type service struct {
	workflowservice.WorkflowServiceClient
}

// DescribeNamespace implements workflowservice.WorkflowServiceClient.
func (service) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: here.ID, Name: here.Name}}, nil
}

func unknown(id string) error { return serviceerror.NewNotFound("workflow not found for ID: " + id) }

// ExecuteWorkflow implements client.Client.
func (c temporalClient) ExecuteWorkflow(
	ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	id := options.ID
	if id == "" {
		id = uuid.NewString()
	}
	runs := c.s.running(id) != nil
	if info, _ := c.s.describe(id); info != nil && options.WorkflowIDReusePolicy == enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
		runs = true
	}
	if runs {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("it runs already", "", "")
	}
	runID, err := c.s.start(ctx, startRequest{
		id: id, kind: fmt.Sprint(workflow), args: args, memo: options.Memo, attributes: options.TypedSearchAttributes,
	})
	return workflowRun{c.s, id, runID}, err
}

// workflowRun is a run of a workflow.
type workflowRun struct {
	s         *simulatedTemporal
	id, runID string
}

// GetID implements client.WorkflowRun.
func (r workflowRun) GetID() string { return r.id }

// GetRunID implements client.WorkflowRun.
func (r workflowRun) GetRunID() string { return r.runID }

// GetFirstExecutionRunID implements client.WorkflowRun.
func (r workflowRun) GetFirstExecutionRunID() string { return r.runID }

// Get implements client.WorkflowRun. It returns no result.
func (r workflowRun) Get(ctx context.Context, _ any) error {
	for r.s.running(r.id) != nil {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if one := r.s.executions[r.id]; one != nil {
		return one.err
	}
	return unknown(r.id)
}

// GetWithOptions implements client.WorkflowRun.
func (r workflowRun) GetWithOptions(ctx context.Context, value any, _ client.WorkflowRunGetOptions) error {
	return r.Get(ctx, value)
}

// GetWorkflow implements client.Client.
func (c temporalClient) GetWorkflow(_ context.Context, id, runID string) client.WorkflowRun {
	return workflowRun{c.s, id, runID}
}

// SignalWorkflow implements client.Client.
func (c temporalClient) SignalWorkflow(ctx context.Context, id, _, name string, arg any) error {
	if c.s.running(id) == nil {
		return unknown(id)
	}
	var sent error
	if err := c.s.inRun(ctx, id, func() { sent = c.s.env.SignalWorkflowByID(id, name, arg) }); err != nil {
		return err
	}
	return sent
}

// CancelWorkflow implements client.Client.
func (c temporalClient) CancelWorkflow(ctx context.Context, id, _ string) error {
	if c.s.running(id) == nil {
		return unknown(id)
	}
	return c.s.inRun(ctx, id, func() { c.s.env.CancelWorkflowByID(id, "") })
}

// QueryWorkflow implements client.Client.
func (c temporalClient) QueryWorkflow(ctx context.Context, id, _, query string, args ...any) (converter.EncodedValue, error) {
	if info, _ := c.s.describe(id); info == nil {
		return nil, unknown(id)
	}
	var value converter.EncodedValue
	var failed error
	if err := c.s.inRun(ctx, id, func() { value, failed = c.s.env.QueryWorkflowByID(id, query, args...) }); err != nil {
		return nil, err
	}
	return value, failed
}

// DescribeWorkflowExecution implements client.Client.
func (c temporalClient) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info, pending := c.s.describe(id)
	if info == nil {
		return nil, unknown(id)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info, PendingActivities: pending}, nil
}

// update is an update of a workflow, and its callbacks.
type update struct {
	id     string
	done   chan struct{}
	result any
	err    error
}

// Accept implements the SDK's callbacks of an update.
func (u *update) Accept() {}

// Reject implements the SDK's callbacks of an update. The error arrives as Temporal passes it on.
func (u *update) Reject(err error) {
	failures := temporal.GetDefaultFailureConverter()
	u.Complete(nil, failures.FailureToError(failures.ErrorToFailure(err)))
}

// Complete implements the SDK's callbacks of an update.
func (u *update) Complete(result any, err error) {
	u.result, u.err = result, err
	close(u.done)
}

// WorkflowID implements client.WorkflowUpdateHandle.
func (u *update) WorkflowID() string { return u.id }

// RunID implements client.WorkflowUpdateHandle.
func (u *update) RunID() string { return "" }

// UpdateID implements client.WorkflowUpdateHandle.
func (u *update) UpdateID() string { return "" }

// Get implements client.WorkflowUpdateHandle.
func (u *update) Get(_ context.Context, value any) error {
	if u.err != nil || value == nil {
		return u.err
	}
	data, err := json.Marshal(u.result)
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	return err
}

// UpdateWorkflow implements client.Client.
func (c temporalClient) UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	one := &update{id: options.WorkflowID, done: make(chan struct{})}
	if c.s.running(one.id) == nil {
		return nil, unknown(one.id)
	}
	var sent error
	looped := c.s.inRun(ctx, one.id, func() {
		sent = c.s.env.UpdateWorkflowByID(one.id, options.UpdateName, uuid.NewString(), one, options.Args...)
	})
	if err := errors.Join(looped, sent); err != nil {
		return nil, err
	}
	c.s.step(one.id)
	for {
		select {
		case <-one.done:
			return one, one.err
		case <-time.After(time.Second):
			if c.s.running(one.id) == nil { // it has ended before it has handled the update
				return nil, unknown(one.id)
			}
		case <-ctx.Done():
			return nil, client.NewWorkflowUpdateServiceTimeoutOrCanceledError(ctx.Err())
		}
	}
}

// step counts a message of a workflow.
func (s *simulatedTemporal) step(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.executions[id]; one != nil {
		one.steps++
	}
}

// startOperation is a workflow that starts with its first update.
type startOperation struct {
	options client.StartWorkflowOptions
	kind    string
	args    []any
}

// Get implements client.WithStartWorkflowOperation.
func (startOperation) Get(context.Context) (client.WorkflowRun, error) { panic("nobody calls it") }

// NewWithStartWorkflowOperation implements client.Client.
func (c temporalClient) NewWithStartWorkflowOperation(
	options client.StartWorkflowOptions, workflow any, args ...any,
) client.WithStartWorkflowOperation {
	return startOperation{options, fmt.Sprint(workflow), args}
}

// UpdateWithStartWorkflow implements client.Client.
func (c temporalClient) UpdateWithStartWorkflow(
	ctx context.Context, options client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	begin := options.StartWorkflowOperation.(startOperation)
	if c.s.running(begin.options.ID) == nil {
		if _, err := c.s.start(ctx, startRequest{id: begin.options.ID, kind: begin.kind, args: begin.args}); err != nil {
			return nil, err
		}
	}
	return c.UpdateWorkflow(ctx, options.UpdateOptions)
}

// ListWorkflow implements client.Client.
func (c temporalClient) ListWorkflow(
	_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	first := 0
	if token := request.GetNextPageToken(); len(token) > 0 {
		first, _ = strconv.Atoi(string(token))
	}
	var rows []*workflowpb.WorkflowExecutionInfo
	for _, one := range c.s.known() {
		fits, err := matches(request.GetQuery(), one)
		if err != nil {
			return nil, err
		}
		if fits {
			rows = append(rows, one.info())
		}
	}
	last := min(len(rows), first+int(request.GetPageSize()))
	listed := &workflowservice.ListWorkflowExecutionsResponse{Executions: rows[min(first, len(rows)):last]}
	if last < len(rows) {
		listed.NextPageToken = []byte(strconv.Itoa(last))
	}
	return listed, nil
}

// CountWorkflow implements client.Client.
func (c temporalClient) CountWorkflow(
	_ context.Context, request *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	var count int64
	for _, one := range c.s.known() {
		fits, err := matches(request.GetQuery(), one)
		if err != nil {
			return nil, err
		}
		if fits {
			count++
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{Count: count}, nil
}

// matches evaluates those list filters of Temporal that the program writes.
func matches(query string, one execution) (bool, error) {
	for _, term := range splitOutside(query, " AND ") {
		fits, err := matchesTerm(term, one)
		if !fits || err != nil {
			return false, err
		}
	}
	return true, nil
}

// splitOutside splits a text at a separator that is not in parentheses.
func splitOutside(text, separator string) []string {
	var parts []string
	depth, begin := 0, 0
	for i := range len(text) {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], separator):
			parts = append(parts, text[begin:i])
			begin = i + len(separator)
		}
	}
	return append(parts, text[begin:])
}

func matchesTerm(term string, one execution) (bool, error) {
	term = strings.TrimSpace(term)
	if inner, found := strings.CutPrefix(term, "("); found {
		for _, either := range splitOutside(strings.TrimSuffix(inner, ")"), " OR ") {
			if fits, err := matchesTerm(either, one); fits || err != nil {
				return fits, err
			}
		}
		return false, nil
	}
	name, condition, _ := strings.Cut(term, " ")
	values := one.valuesOf(name)
	operator, operand, _ := strings.Cut(condition, " ")
	operand = strings.Trim(operand, "'")
	switch operator {
	case "IS":
		return (operand == "NULL") == (len(values) == 0), nil
	case "IN":
		wanted := strings.Split(strings.Trim(operand, "()"), ", ")
		return slices.ContainsFunc(values, func(value string) bool { return slices.Contains(wanted, "'"+value+"'") }), nil
	case "=":
		return slices.Contains(values, operand), nil
	case "!=":
		return len(values) > 0 && !slices.Contains(values, operand), nil
	case ">=":
		return len(values) > 0 && values[0] >= operand, nil
	case "<":
		return len(values) > 0 && values[0] < operand, nil
	}
	return false, serviceerror.NewInvalidArgument("the simulated Temporal does not know the filter " + term)
}

// valuesOf returns the values of an attribute as texts.
func (e *execution) valuesOf(name string) []string {
	switch name {
	case "WorkflowType":
		return []string{e.kind}
	case "ExecutionStatus":
		return []string{map[bool]string{true: "Running", false: "Closed"}[e.status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING]}
	case "StartTime":
		return []string{e.started.UTC().Format(time.RFC3339)}
	case "CloseTime":
		if e.closed.IsZero() {
			return nil
		}
		return []string{e.closed.UTC().Format(time.RFC3339)}
	}
	return textsOf(e.attributes[name])
}

func textsOf(payload *commonpb.Payload) []string {
	var value any
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &value) != nil {
		return nil
	}
	if list, ok := value.([]any); ok {
		var texts []string
		for _, one := range list {
			texts = append(texts, fmt.Sprint(one))
		}
		return texts
	}
	return []string{fmt.Sprint(value)}
}

// schedules starts cycles, as Temporal's schedules do: a cycle that is due while the one before runs is skipped.
type schedules struct {
	client temporalClient
	late   func(id string, since time.Time) // is told of a cycle that still runs when the next one is due
	list   []*schedule
}

// schedule is due at an interval, or each day at a time of a zone.
type schedule struct {
	id           string
	every, phase time.Duration
	at           time.Duration  // since midnight, if every is 0
	zone         *time.Location // of at
	input        workflows.ChainInput
	cycles       []time.Time
	skipped      int
}

// next returns the first time after a time at which the schedule is due.
func (s *schedule) next(after time.Time) time.Time {
	if s.every > 0 {
		return after.Add(-s.phase).Truncate(s.every).Add(s.every + s.phase)
	}
	local := after.In(s.zone)
	for ahead := 0; ; ahead++ { // a time that the night skips is the next instant
		day := time.Date(local.Year(), local.Month(), local.Day()+ahead, int(s.at/time.Hour), int(s.at/time.Minute)%60, 0, 0, s.zone)
		if day.After(after) {
			return day
		}
	}
}

// run starts cycles until ctx ends.
func (s *schedules) run(ctx context.Context, one *schedule, last string) {
	for {
		due := one.next(time.Now())
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return
		}
		if last != "" && s.client.s.running(last) != nil {
			one.skipped++
			s.late(last, one.cycles[len(one.cycles)-1])
			continue
		}
		last = workflows.CycleWorkflowID(one.id) + "-" + due.UTC().Format("2006-01-02T15:04:05Z")
		one.cycles = append(one.cycles, due)
		options := client.StartWorkflowOptions{ID: last}
		if _, err := s.client.ExecuteWorkflow(ctx, options, workflows.CycleWorkflow, one.input); err != nil && ctx.Err() == nil {
			panic(err)
		}
	}
}

type scheduleClient struct {
	client.ScheduleClient

	schedules *schedules
}

// List implements client.ScheduleClient.
func (c scheduleClient) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	return &scheduleIterator{left: c.schedules.list}, nil
}

// GetHandle implements client.ScheduleClient.
func (c scheduleClient) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return scheduleHandle{one: c.schedules.list[slices.IndexFunc(c.schedules.list, func(s *schedule) bool { return s.id == id })]}
}

type scheduleHandle struct {
	client.ScheduleHandle

	one *schedule
}

// Describe implements client.ScheduleHandle.
func (h scheduleHandle) Describe(context.Context) (*client.ScheduleDescription, error) {
	input, err := converter.GetDefaultDataConverter().ToPayload(h.one.input)
	action := &client.ScheduleWorkflowAction{Workflow: workflows.CycleWorkflow, Args: []any{input}}
	return &client.ScheduleDescription{Schedule: client.Schedule{Action: action}}, err
}

type scheduleIterator struct{ left []*schedule }

// HasNext implements client.ScheduleListIterator.
func (i *scheduleIterator) HasNext() bool { return len(i.left) > 0 }

// Next implements client.ScheduleListIterator.
func (i *scheduleIterator) Next() (*client.ScheduleListEntry, error) {
	one := i.left[0]
	i.left = i.left[1:]
	entry := &client.ScheduleListEntry{ID: one.id, NextActionTimes: []time.Time{one.next(time.Now())}}
	entry.WorkflowType.Name = workflows.CycleWorkflow
	return entry, nil
}
