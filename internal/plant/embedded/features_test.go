package embedded

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// TestSearchAttributes adds search attributes like a worker. A chain that starts directly afterwards must be
// able to use them.
func TestSearchAttributes(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)
	addAttributes(t, c)
	run := execute(t, c, chainAttributes)

	events := c.GetWorkflowHistory(testContext(t), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		require.NotEqual(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.GetEventType(), "%v", event)
	}
	for _, query := range []string{
		"ClaudeOpsTier >= 2",
		"ClaudeOpsOutcome = 'resolved'",
		"ClaudeOpsGate != 'open' AND ClaudeOpsGate IS NOT NULL",
		"ClaudeOpsServices = 'sonarr'",
		"ClaudeOpsCostUSD BETWEEN 0.2 AND 0.3",
		"ClaudeOpsTrigger IN ('manual', 'schedule')",
	} {
		require.Eventually(t, func() bool { return foundRun(t, c, query) == run.GetRunID() },
			testTimeout, 20*time.Millisecond, query)
	}
	require.Empty(t, foundRun(t, c, "ClaudeOpsTier = 3"))
}

// addAttributes adds the search attributes of a chain.
func addAttributes(t *testing.T, c client.Client) {
	t.Helper()
	attributes := map[string]enumspb.IndexedValueType{
		tierAttribute.GetName():     tierAttribute.GetValueType(),
		outcomeAttribute.GetName():  outcomeAttribute.GetValueType(),
		gateAttribute.GetName():     gateAttribute.GetValueType(),
		servicesAttribute.GetName(): servicesAttribute.GetValueType(),
		costAttribute.GetName():     costAttribute.GetValueType(),
		triggerAttribute.GetName():  triggerAttribute.GetValueType(),
	}
	_, err := c.OperatorService().AddSearchAttributes(testContext(t), &operatorservice.AddSearchAttributesRequest{
		Namespace: DefaultNamespace, SearchAttributes: attributes,
	})
	require.NoError(t, err)
}

// foundRun returns the run found by query, or "".
func foundRun(t *testing.T, c client.Client, query string) string {
	t.Helper()
	listed, err := c.ListWorkflow(testContext(t), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	require.NoError(t, err)
	for _, execution := range listed.GetExecutions() {
		return execution.GetExecution().GetRunId()
	}
	return ""
}

func TestSignalWithStart(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)

	run, err := c.SignalWithStartWorkflow(testContext(t), "signalled", "name", "Ada", onTestQueue("signalled"), waitForName)

	require.NoError(t, err)
	requireName(t, run)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	run, err := c.ExecuteWorkflow(testContext(t), onTestQueue("updated"), waitForName)
	require.NoError(t, err)

	greeted := make(chan error, 1)
	var greeting string
	go func() {
		update, err := c.UpdateWorkflow(testContext(t), nameUpdate("updated"))
		if err == nil {
			err = update.Get(testContext(t), &greeting)
		}
		greeted <- err
	}()
	// The worker starts later than the server's time limit for one call. The update must survive that.
	time.Sleep(3 * time.Second)
	startWorker(t, c)

	require.NoError(t, <-greeted)
	require.Equal(t, "hello Ada", greeting)
	requireName(t, run)
}

func TestUpdateWithStart(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)
	options := onTestQueue("update-with-start")
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	start := c.NewWithStartWorkflowOperation(options, waitForName)

	update, err := c.UpdateWithStartWorkflow(testContext(t), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: nameUpdate(""),
	})

	require.NoError(t, err)
	var greeting string
	require.NoError(t, update.Get(testContext(t), &greeting))
	require.Equal(t, "hello Ada", greeting)
	run, err := start.Get(testContext(t))
	require.NoError(t, err)
	requireName(t, run)
}

func TestReset(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)
	run, err := c.SignalWithStartWorkflow(testContext(t), "reset", "name", "Ada", onTestQueue("reset"), waitForName)
	require.NoError(t, err)
	requireName(t, run)

	reset, err := c.ResetWorkflowExecution(testContext(t), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 DefaultNamespace,
		WorkflowExecution:         execution(run),
		Reason:                    "test",
		RequestId:                 "reset-1",
		WorkflowTaskFinishEventId: 4,
	})

	require.NoError(t, err)
	requireName(t, c.GetWorkflow(testContext(t), "reset", reset.GetRunId()))
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)
	handle, err := c.ScheduleClient().Create(testContext(t), client.ScheduleOptions{
		ID:   "cycle",
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
		Action: &client.ScheduleWorkflowAction{
			ID: "scheduled", Workflow: sleepThenSay, Args: []any{time.Duration(0), "scheduled"}, TaskQueue: testQueue,
		},
	})
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		described, err := handle.Describe(testContext(t))
		return err == nil && len(described.Info.RecentActions) > 0
	}, testTimeout, 100*time.Millisecond)
	require.NoError(t, handle.Delete(testContext(t)))
}

// TestWorkflowDescribesItself checks the summary and the current details of a workflow, which the server stores
// for the Web UI.
func TestWorkflowDescribesItself(t *testing.T) {
	t.Parallel()
	c := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, c)
	options := onTestQueue("described")
	options.StaticSummary, options.StaticDetails = "a summary", "some details"
	run, err := c.ExecuteWorkflow(testContext(t), options, waitForName)
	require.NoError(t, err)

	described, err := c.DescribeWorkflow(testContext(t), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	summary, err := described.GetStaticSummary()
	require.NoError(t, err)
	require.Equal(t, "a summary", summary)
	details, err := described.GetStaticDetails()
	require.NoError(t, err)
	require.Equal(t, "some details", details)

	var metadata sdk.WorkflowMetadata
	// The server limits a query to ten seconds, which include the start of the workflow.
	require.Eventually(t, func() bool {
		answer, err := c.QueryWorkflow(testContext(t), run.GetID(), run.GetRunID(), "__temporal_workflow_metadata")
		return err == nil && answer.Get(&metadata) == nil
	}, testTimeout, 100*time.Millisecond)
	require.Equal(t, "waiting for a **name**", metadata.GetCurrentDetails())
}

// onTestQueue returns options that start a workflow with an ID on the tests' task queue.
func onTestQueue(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: testQueue}
}

// nameUpdate returns the update that sets the workflow's name. An empty ID is for update-with-start.
func nameUpdate(workflowID string) client.UpdateWorkflowOptions {
	return client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: "name", Args: []any{"Ada"}, WaitForStage: client.WorkflowUpdateStageCompleted,
	}
}

func execution(run client.WorkflowRun) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}
}

// requireName checks that the workflow returns the name used in all tests.
func requireName(t *testing.T, run client.WorkflowRun) {
	t.Helper()
	var name string
	require.NoError(t, run.Get(testContext(t), &name))
	require.Equal(t, "Ada", name)
}
