package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// agentsQueueSuffix is appended to the name of the workflows' task queue, so that renaming it renames the agents' one, too.
const agentsQueueSuffix = "-agents"

// AgentsTaskQueue returns the task queue of the agents' processes for the task queue of the workflows.
func AgentsTaskQueue(taskQueue string) string { return taskQueue + agentsQueueSuffix }

// withRecords is for reading or writing records. Temporal retries it for as long as it takes: a database that is away delays a
// chain, and nothing that was paid for is forgotten. readRecords first tries once as a local activity.
func withRecords(ctx workflow.Context, summary string) workflow.Context {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 5 * time.Second, // half of a workflow task; a lock that is held for longer is no local matter
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary,
	})
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second, // a few rows; longer than the driver waits for a lock
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    10 * time.Second, // a database that is back is noticed soon
		},
		Summary: summary,
	})
}

// withOpening is withRecords for the record of a session that is about to start. When the chain is cancelled, it waits for the
// attempt that is under way, which may have opened the record, and makes no further one.
func withOpening(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithWaitForCancellation(withRecords(ctx, summary), true)
}

// withOneTry is withRecords for what the workers' sweep does later, if it cannot be done now.
func withOneTry(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithRetryPolicy(withRecords(ctx, summary), temporal.RetryPolicy{MaximumAttempts: 1})
}

// withTranscript is for asking the agents' workers about a conversation. A gate waits for the answer before it opens. If none
// comes it opens without.
func withTranscript(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              AgentsTaskQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout:    150 * time.Second, // a transcript comes from an archive over a slow line
		ScheduleToCloseTimeout: 5 * time.Minute,   // all slots may have agents; people answer later than that
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 3},
		Summary:                summary,
	})
}

// withSpending is for looking up what an agent has spent before it is stopped. It takes little time, because the person who
// cancels the chain waits, and the agent still works.
func withSpending(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              workflow.GetInfo(ctx).TaskQueueName, // not the agents', which ctx may be for
		StartToCloseTimeout:    time.Second,                         // one call of Temporal's own service
		ScheduleToCloseTimeout: 2 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3},
		Summary:                summary,
	})
}

// withSchedule is for asking Temporal about a schedule. It gives up soon, because a cycle can do without the answer.
func withSchedule(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    10 * time.Second, // one call of Temporal's own service
		ScheduleToCloseTimeout: time.Minute,      // also when no worker is there
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 3},
		Summary:                summary,
	})
}

// withNotification is for notifying people. It retries for an hour, because the network may be down that the notification is
// about. After that the message is old, and the chain must end.
func withNotification(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute, // all services at once, each has some seconds
		ScheduleToCloseTimeout: time.Hour,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    2 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    2 * time.Minute,
			MaximumAttempts:    50, // some 40 fit into the hour; this bounds attempts that fail at once
		},
		Summary: summary,
	})
}

const (
	// tierOverhead is what an attempt needs beyond the agent's own limit: start, the
	// repair turn for a missing verdict, and stopping the process tree.
	tierOverhead = 5 * time.Minute
	// tierHeartbeatTimeout is the time after which Temporal takes a worker for dead. Heartbeats come every second: so it
	// tolerates a slow network, not a lost host.
	tierHeartbeatTimeout = 30 * time.Second
	// tierAttempts bounds a tier that kills its worker every time, for example by using up the memory. The activity itself gives
	// up sooner on a model that is not reachable. It counts those failures alone, not workers that were drained or lost.
	tierAttempts = 30
	// tierRetryInterval is the pause after a time-out. In it a worker that was cut off ends its agent. It does not grow,
	// because the next worker may be a good one.
	tierRetryInterval = 10 * time.Second
)

// withTier is for running an agent. Heartbeats watch it, and its cancellation waits for the end of its process.
func withTier(ctx workflow.Context, policy escalation.TierPolicy, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           AgentsTaskQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: policy.Timeout.Std() + tierOverhead,
		HeartbeatTimeout:    tierHeartbeatTimeout,
		WaitForCancellation: true, // the agent's last words and its cost are worth the wait
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    tierRetryInterval,
			BackoffCoefficient: 1,
			MaximumInterval:    tierRetryInterval,
			MaximumAttempts:    tierAttempts,
		},
		Summary: summary,
	})
}
