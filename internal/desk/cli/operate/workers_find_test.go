package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workerpb "go.temporal.io/api/worker/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// report returns a worker's report about one queue. The worker sent the report at the time ago before noon.
func report(identity, process, queue string, ago time.Duration, status enumspb.WorkerStatus) *workerpb.WorkerHeartbeat {
	return &workerpb.WorkerHeartbeat{
		WorkerIdentity: identity, HostInfo: &workerpb.WorkerHostInfo{HostName: "container", WorkerGroupingKey: process},
		TaskQueue: queue, Status: status, HeartbeatTime: timestamppb.New(chaintest.Noon.Add(-ago)),
		DeploymentVersion:     &deploymentpb.WorkerDeploymentVersion{DeploymentName: "ops", BuildId: "v2"},
		ActivityTaskSlotsInfo: &workerpb.WorkerSlotsInfo{CurrentUsedSlots: 1, CurrentAvailableSlots: 3},
	}
}

// TestReportsOfWorkers reads reports of four processes, one of which has stopped.
func TestReportsOfWorkers(t *testing.T) {
	t.Parallel()
	queues := []string{"q", "q-agents"}
	var found []Worker
	for _, heard := range []*workerpb.WorkerHeartbeat{
		report("7@nas claudeops v0.2.0", "a", "q-agents", 10*time.Second, enumspb.WORKER_STATUS_RUNNING),
		report("7@nas claudeops v0.2.0", "a", "q", 12*time.Second, enumspb.WORKER_STATUS_RUNNING),
		report("7@nas claudeops v0.2.0", "b", "q-agents", 3*time.Second, enumspb.WORKER_STATUS_SHUTTING_DOWN),
		report("8@nas claudeops v0.2.0", "c", "q-agents", 3*time.Second, enumspb.WORKER_STATUS_SHUTDOWN),
		report("somebody else", "d", "q", 4*time.Minute, enumspb.WORKER_STATUS_RUNNING),
	} {
		found = addReport(found, heard, queues, chaintest.Noon)
	}
	require.Len(t, found, 3)
	both, draining, silent := found[0], found[1], found[2]
	require.Equal(t, []string{"q", "q-agents"}, both.Queues)
	require.Equal(t, []any{"nas", 7, "v0.2.0", "ops", "v2", Running}, []any{both.Host, both.PID, both.Version, both.Deployment, both.BuildID, both.State})
	require.Equal(t, []int{1, 4}, []int{*both.Agents, *both.MaxAgents})
	require.Equal(t, chaintest.Noon.Add(-10*time.Second), both.LastSeen)
	require.Equal(t, Draining, draining.State)
	require.Equal(t, Silent, silent.State)
	require.Equal(t, "container", silent.Host)
	require.Nil(t, silent.Agents, "the slots of the workflows' queue are not for agents")

	var text strings.Builder
	writeFleet(&text, chaintest.Clock, "q", Fleet{Workers: found, Versions: []Version{
		{Deployment: "ops", BuildID: "v1", State: Drained}, {Deployment: "ops", BuildID: "v2", State: Ramping, Percent: 10},
	}})
	require.Equal(t, strings.Join([]string{
		"HOST       PID  VERSION      STATE     AGENTS  LAST SEEN  QUEUES",
		"nas        7    v0.2.0 (v2)  running   1 of 4  10s ago    q, q-agents",
		"nas        7    v0.2.0 (v2)  draining  1 of 4  3s ago     q-agents",
		"container  -    (v2)         silent    -       4m ago     q",
		"",
		"DEPLOYMENT  BUILD ID  STATE",
		"ops         v1        drained",
		"ops         v2        ramping (10% of new chains)",
		"",
		"No version is current, so only workers without versions begin chains: see `claudeops workers promote`.",
		"",
	}, "\n"), text.String())
	text.Reset()
	writeFleet(&text, chaintest.Clock, "q", Fleet{})
	require.Equal(t, "No workers on task queue q.\n", text.String())
}
