package parts

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// The suffixes are appended to the name of the workflows' task queue. The results are the names of the task queues of
// the agents of chains, and of those of conversations. Conversations have places of their own, so that no repair waits
// for them.
const (
	agentsQueueSuffix = "-agents"
	talksQueueSuffix  = "-talks"
)

// AgentsTaskQueue returns the name of the agents' task queue. It is derived from taskQueue, the name of the workflows'
// task queue.
func AgentsTaskQueue(taskQueue string) string { return taskQueue + agentsQueueSuffix }

// TalksTaskQueue returns the name of the task queue of the agents of conversations.
func TalksTaskQueue(taskQueue string) string { return taskQueue + talksQueueSuffix }

// WithRecords returns a context with the options for reading or writing records. Temporal retries these activities
// without limit. So an unavailable database delays a chain, but no paid work is lost. The local activities of
// ReadRecords get one attempt.
func WithRecords(ctx workflow.Context, summary string) workflow.Context {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		// half of a workflow task's timeout; the ordinary activity waits longer for a lock
		ScheduleToCloseTimeout: 5 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary,
	})
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second, // for a few rows; longer than the driver waits for a lock
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    10 * time.Second, // limits the delay after the database is back
		},
		Summary: summary,
	})
}

// WithOpening is like WithRecords, for the activity that records a session before its start. If the chain is cancelled,
// Temporal waits for the current attempt, because that attempt may have stored the record. Temporal starts no further
// attempt.
func WithOpening(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithWaitForCancellation(WithRecords(ctx, summary), true)
}

// WithOneTry is like WithRecords, but with a single attempt. Use it for work that the workers' sweep does later if the
// attempt fails.
func WithOneTry(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithRetryPolicy(WithRecords(ctx, summary), temporal.RetryPolicy{MaximumAttempts: 1})
}

// withTranscript returns a context with the options for asking a worker whether a conversation can be resumed. It
// uses the workflows' task queue, because agents can occupy all slots of their own queue for hours. A gate waits for
// the result before it opens. If the activity fails, the gate opens anyway.
func withTranscript(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    150 * time.Second, // for a transcript from an archive over a slow line
		ScheduleToCloseTimeout: 5 * time.Minute,   // short enough for a gate, because people take longer to answer
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 3},
		Summary:                summary,
	})
}

// WithPush returns a context with the options for pushing an approved commit. It uses the workflows' task queue,
// because agents can occupy all slots of their own queue for hours. Hosts that do not have the commit fail, so there
// are many attempts.
func WithPush(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    5 * time.Minute,  // a push over a slow line, and the start of git
		ScheduleToCloseTimeout: 15 * time.Minute, // then a person pushes
		HeartbeatTimeout:       20 * time.Second, // several heartbeats; then another worker pushes
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumInterval: time.Second,
			MaximumAttempts: 30, // several per host
		},
		Summary: summary,
	})
}

// withProposal returns a context with the options for writing a pull request. Hosts without the forge's program fail,
// so there are several attempts. A forge that limits the login is asked again for more than an hour, with the delay
// that the activity asks for.
func withProposal(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    3 * time.Minute,  // a few calls of a forge that is slow
		ScheduleToCloseTimeout: 90 * time.Minute, // the commit is pushed, so people can open a pull request themselves
		HeartbeatTimeout:       20 * time.Second, // several heartbeats; then another worker writes
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
			MaximumAttempts: 10, // several per host
		},
		Summary: summary,
	})
}

// withSpending returns a context with the options for looking up what an agent has spent so far, just before the agent
// is stopped. The timeouts are short, because a person waits for the cancellation, and the agent still spends.
func withSpending(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              workflow.GetInfo(ctx).TaskQueueName, // replaces the agents' queue, which ctx may have
		StartToCloseTimeout:    time.Second,                         // one call of Temporal's own service
		ScheduleToCloseTimeout: 2 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3},
		Summary:                summary,
	})
}

// WithSchedule returns a context with the options for reading a schedule from Temporal. The timeouts are short,
// because a cycle can run without the answer.
func WithSchedule(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    10 * time.Second, // one call of Temporal's own service
		ScheduleToCloseTimeout: time.Minute,      // also limits the wait for a worker
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 3},
		Summary:                summary,
	})
}

// withNotification returns a context with the options for notifying people from a workflow that does something else.
func withNotification(ctx workflow.Context, summary string) workflow.Context {
	return withAttempts(ctx, summary, notifyPatience)
}

// withDelivery returns a context with the options of a Delivery. Temporal retries for an hour, because the notification
// can be about a network that is down. After that hour the message is outdated.
func withDelivery(ctx workflow.Context, summary string) workflow.Context {
	return withAttempts(ctx, summary, time.Hour)
}

func withAttempts(ctx workflow.Context, summary string, patience time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute, // all services in parallel, each with a timeout of some seconds
		ScheduleToCloseTimeout: patience,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    2 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    2 * time.Minute,
			MaximumAttempts:    50, // about 40 attempts fit into the hour; the limit is for attempts that fail at once
		},
		Summary: summary,
	})
}

const (
	// tierOverhead is the time that an attempt needs in addition to the agent's own limit. This time covers the start,
	// the repair turn for a missing verdict, stopping the process tree, and the checks and previews of what it has
	// committed.
	tierOverhead = 20 * time.Minute
	// tierAttempts limits the attempts at a session. It stops a session that kills its worker every time, for example
	// by exhausting memory. If a model is not reachable, the session fails sooner, because the activity counts such
	// failures (maxFailures). The activity does not count drained and lost workers as failures.
	tierAttempts = 30
	// tierRetryInterval is the pause after a timeout. A worker that has lost its connection stops its agent during the
	// pause. All pauses are equally long, because the next worker may be healthy.
	tierRetryInterval = 10 * time.Second
)

// WithTier returns a context with the options for running an agent. Temporal monitors the activity by heartbeats. If
// the workflow cancels the activity, it waits until the agent's process has ended.
func WithTier(ctx workflow.Context, policy escalation.Policy, tier escalation.Tier, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           AgentsTaskQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: activities.MaxDirectoryWait + policy.For(tier).Timeout.Std() + tierOverhead,
		HeartbeatTimeout:    policy.HeartbeatTimeout(),
		WaitForCancellation: true, // waits for the agent's last output and its cost
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    tierRetryInterval,
			BackoffCoefficient: 1,
			MaximumInterval:    tierRetryInterval,
			MaximumAttempts:    tierAttempts,
		},
		Summary: summary,
	})
}
