package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workerpb "go.temporal.io/api/worker/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Worker is one process that polls the task queues.
type Worker struct {
	Host    string `json:"host"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	// Deployment and BuildID are the worker's version; empty without CLAUDEOPS_DEPLOYMENT.
	Deployment string `json:"deployment,omitempty"`
	BuildID    string `json:"build_id,omitempty"`
	State      State  `json:"state"`
	// Agents is the number of running agents. MaxAgents is the maximum of this number. Both are nil if Temporal does
	// not know them.
	Agents    *int      `json:"agents,omitempty"`
	MaxAgents *int      `json:"max_agents,omitempty"`
	Queues    []string  `json:"queues"`
	StartedAt time.Time `json:"started_at,omitzero"`
	LastSeen  time.Time `json:"last_seen"`

	// key distinguishes workers. Two containers can have the same host name and process ID.
	key string
}

// State is the state of a worker.
type State string

// The states.
const (
	Running  State = "running"
	Draining State = "draining"
	Silent   State = "silent"
)

// silentAfter is the time without a report after which a worker counts as silent. By then, three reports are missing.
const silentAfter = 100 * time.Second

// pollersSilentAfter replaces silentAfter if the server reports only polls. An idle worker polls about once a minute.
const pollersSilentAfter = 3 * time.Minute

// identity matches the identities of this project's workers, such as "4711@host-1 claudeops v0.1.0".
var identity = regexp.MustCompile(`^(\d+)@(.+) claudeops (\S*)$`)

// findWorkers returns the workers of the task queues, sorted by host. It reads the reports that workers send to
// Temporal. If the server keeps no reports, findWorkers returns the workers that poll the queues.
func findWorkers(ctx context.Context, c operations.Connection, queues []string, now time.Time) ([]Worker, error) {
	namespace, err := c.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace})
	var found []Worker
	switch {
	case err != nil:
	case namespace.GetNamespaceInfo().GetCapabilities().GetWorkerHeartbeats():
		found, err = reported(ctx, c, queues, now)
	default:
		found, err = polling(ctx, c, queues, now)
	}
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	slices.SortFunc(found, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.key, b.key))
	})
	return found, nil
}

// reported returns the workers that report to Temporal.
func reported(ctx context.Context, c operations.Connection, queues []string, now time.Time) ([]Worker, error) {
	var found []Worker
	var page []byte
	for {
		listed, err := c.WorkflowService().ListWorkers(ctx, &workflowservice.ListWorkersRequest{
			Namespace: c.Namespace, PageSize: 100, NextPageToken: page,
		})
		if err != nil {
			return nil, err
		}
		for _, listed := range listed.GetWorkers() {
			if !slices.Contains(queues, listed.GetTaskQueue()) {
				continue
			}
			// Get the full report of the worker. The report in the list does not contain the slots, which show how many
			// agents run.
			described, err := c.WorkflowService().DescribeWorker(ctx, &workflowservice.DescribeWorkerRequest{
				Namespace: c.Namespace, WorkerInstanceKey: listed.GetWorkerInstanceKey(),
			})
			if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
				continue
			}
			if err != nil {
				return nil, err
			}
			found = addReport(found, described.GetWorkerInfo().GetWorkerHeartbeat(), queues, now)
		}
		if page = listed.GetNextPageToken(); len(page) == 0 {
			return found, nil
		}
	}
}

// addReport adds a worker to found. The argument report is the worker's report about one of the queues. The last
// element of queues must be the queue of the agents.
func addReport(found []Worker, report *workerpb.WorkerHeartbeat, queues []string, now time.Time) []Worker {
	if report.GetStatus() == enumspb.WORKER_STATUS_SHUTDOWN {
		return found
	}
	one := identified(report.GetWorkerIdentity(), report.GetHostInfo().GetHostName())
	one.key = report.GetWorkerIdentity() + "/" + report.GetHostInfo().GetWorkerGroupingKey()
	one.Deployment, one.BuildID = report.GetDeploymentVersion().GetDeploymentName(),
		report.GetDeploymentVersion().GetBuildId()
	one.StartedAt, one.LastSeen = report.GetStartTime().AsTime(), report.GetHeartbeatTime().AsTime()
	one.Queues, one.State = []string{report.GetTaskQueue()}, Running
	switch {
	case now.Sub(one.LastSeen) > silentAfter:
		one.State = Silent
	case report.GetStatus() == enumspb.WORKER_STATUS_SHUTTING_DOWN:
		one.State = Draining
	}
	slots := report.GetActivityTaskSlotsInfo()
	agents := int(slots.GetCurrentUsedSlots())
	most := agents + int(slots.GetCurrentAvailableSlots())
	if report.GetTaskQueue() == queues[len(queues)-1] && most > 0 { // a worker's first report has no slots yet
		one.Agents, one.MaxAgents = &agents, &most
	}
	return addWorker(found, one)
}

// polling returns the workers that polled the queues in the last few minutes. So it also returns workers that have
// stopped only recently.
func polling(ctx context.Context, c operations.Connection, queues []string, now time.Time) ([]Worker, error) {
	var found []Worker
	for _, queue := range queues {
		for _, kind := range []enumspb.TaskQueueType{
			enumspb.TASK_QUEUE_TYPE_WORKFLOW,
			enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		} {
			described, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
				Namespace: c.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, TaskQueueType: kind,
			})
			if err != nil {
				return nil, err
			}
			for _, poller := range described.GetPollers() {
				one := identified(poller.GetIdentity(), "")
				one.key = poller.GetIdentity()
				one.Deployment = poller.GetDeploymentOptions().GetDeploymentName()
				one.BuildID = poller.GetDeploymentOptions().GetBuildId()
				one.Queues, one.LastSeen, one.State = []string{queue}, poller.GetLastAccessTime().AsTime(), Running
				if now.Sub(one.LastSeen) > pollersSilentAfter {
					one.State = Silent
				}
				found = addWorker(found, one)
			}
		}
	}
	return found, nil
}

// identified returns a worker with the host, the process ID and the version in text, which is the identity of the
// worker. If text has another form, the worker has only a host: the argument host or, if this is empty, text.
func identified(text, host string) Worker {
	parts := identity.FindStringSubmatch(text)
	if parts == nil {
		return Worker{Host: cmp.Or(host, text)} // a worker of another program
	}
	pid, _ := strconv.Atoi(parts[1])
	return Worker{Host: parts[2], PID: pid, Version: parts[3]}
}

// addWorker adds to found a worker that was found on one queue. If found already has this worker, addWorker completes
// the existing entry.
func addWorker(found []Worker, one Worker) []Worker {
	at := slices.IndexFunc(found, func(known Worker) bool { return known.key == one.key })
	if at < 0 {
		return append(found, one)
	}
	known := &found[at]
	if !slices.Contains(known.Queues, one.Queues[0]) {
		known.Queues = append(known.Queues, one.Queues...)
		slices.Sort(known.Queues)
	}
	if one.Agents != nil {
		known.Agents, known.MaxAgents = one.Agents, one.MaxAgents
	}
	if one.LastSeen.After(known.LastSeen) {
		known.LastSeen, known.State = one.LastSeen, one.State
	}
	return found
}
