package embedded

import (
	"maps"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings maps keys of the server's dynamic configuration to values. Absent keys have the server's default.
type settings map[dynamicconfig.Key]any

// client returns s as the server's configuration client. The server queries values very often, and caches them by the
// identity of the returned slice. So client wraps each value only once.
func (s settings) client() dynamicconfig.Client {
	client := make(dynamicconfig.StaticClient, len(s))
	for key, value := range s {
		client[key] = []dynamicconfig.ConstrainedValue{{Value: value}}
	}
	return client
}

// stock returns the settings that every server needs.
//
// Updates, update-with-start, signal-with-start, schedules and reset need no setting, because this version of the
// server enables them. The server also enables the texts that the Web UI shows beside a workflow. A test checks that
// all of these are enabled.
func stock() settings {
	return settings{
		// Do not let the server report its version to its makers once a day.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// Read the names of custom search attributes from the database at each use, one row each time. By default each
		// service caches the names for 2 s. A worker that has just added its attributes would then see its first
		// workflows fail.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// Limit the time for which the server lets a client wait for a workflow's next event. After this time the
		// client asks again, which is cheap for this server. On a busy host the server can lose the notice that a short
		// workflow has ended. The client then waits for the rest of this time, which is 20 s by default.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,
	}
}

// tuned returns stock plus overrides for a single shard on local SQLite. The defaults protect a database that
// hundreds of shards on many hosts share.
func tuned() settings {
	// pollsPerSecond limits how often a task queue of the history service reads its table. Each step of a workflow
	// waits for such a read: 50 ms at the default of 20, 1 ms at 1000. The server reads the table only if there is a
	// task, so a high limit costs an idle server nothing.
	const pollsPerSecond = 1000

	quick := settings{
		// Dispatch of workflow and activity tasks to workers.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Timers, retries and timeouts.
		dynamicconfig.TimerProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Updates of lists and search attributes.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Disable payloads outside of the history, which this project does not use. To count such payloads, the server
		// writes to events that it can be sending at the same time (a data race in 1.32.1).
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,
		// Callbacks and Nexus calls.
		dynamicconfig.OutboundProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Reduce the tolerance of timers for clock differences between hosts. If a timer is due less than the tolerance
		// after the previous timer, the server delays the later timer by the tolerance: 1 s by default. A single host
		// has only one clock.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		// Use one partition for each task queue. The default of 4 partitions distributes the queue over hosts. On one
		// host, a task in another partition would reach a waiting worker only through a forwarded call. Both numbers
		// must be equal.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// Lists of workflows and schedules within a second. The default of 10 protects a shared database; beyond it
		// clients wait and repeat. Pages and the API list for several people at once, and a list takes a millisecond
		// here.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 200,
	}
	maps.Copy(quick, stock())
	return quick
}
