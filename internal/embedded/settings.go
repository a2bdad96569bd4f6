package embedded

import (
	"maps"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings maps keys of the server's dynamic configuration to values. Absent keys have the server's default.
type settings map[dynamicconfig.Key]any

// client returns s as the server's configuration client. The server queries values very often and caches them
// by the identity of the returned slice, so each value is wrapped only once, here.
func (s settings) client() dynamicconfig.Client {
	client := make(dynamicconfig.StaticClient, len(s))
	for key, value := range s {
		client[key] = []dynamicconfig.ConstrainedValue{{Value: value}}
	}
	return client
}

// stock returns the settings that are needed in any case.
//
// Updates, update-with-start, signal-with-start, schedules, reset and the texts that the Web UI shows beside a
// workflow need no setting: this version of the server enables them. A test checks that.
func stock() settings {
	return settings{
		// Do not let the server report its version to its makers once a day.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// Read the names of custom search attributes from the database at each use, one row each time. Each
		// service caches them for 2 s otherwise, and a worker that has just added its attributes would see its
		// first workflows fail.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// Limit how long the server lets a client wait for a workflow's next event before the client has to ask
		// again. On a busy host the server can lose the notice that a short workflow has ended, and the client
		// waits for the rest of the interval: 20 s by default. Asking again is cheap here.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,
	}
}

// tuned returns stock plus overrides for a single shard on local SQLite. The defaults protect a database that
// hundreds of shards on many hosts share.
func tuned() settings {
	// pollsPerSecond limits how often a task queue of the history service reads its table. Each step of a
	// workflow waits for such a read: 50 ms at the default of 20, 1 ms at 1000. The table is read only if there
	// is a task, so a high limit costs an idle server nothing.
	const pollsPerSecond = 1000

	quick := settings{
		// Dispatch of workflow and activity tasks to workers.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Timers, retries and timeouts.
		dynamicconfig.TimerProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Updates of lists and search attributes.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Payloads outside of the history are not used here. The server counts them by writing to events that
		// it may be sending at the same time (a data race in 1.32.1).
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,
		// Callbacks and Nexus calls.
		dynamicconfig.OutboundProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Reduce the clock difference between hosts that timers allow for. A timer that is due less than this
		// after the previous one is delayed by that much: 1 s by default. One host has one clock.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		// Use one partition for each task queue. The default of 4 distributes it over hosts. On one host a task
		// would reach a waiting worker only through a forwarded call. Both numbers must be equal.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	}
	maps.Copy(quick, stock())
	return quick
}
