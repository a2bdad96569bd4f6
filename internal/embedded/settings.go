package embedded

import (
	"maps"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings are the dynamic settings of the server, by key. What is absent has the server's default.
type settings map[dynamicconfig.Key]any

// client gives s to a server. The server asks very often and remembers its answer by the slice that
// it was given, so each value is wrapped once, here.
func (s settings) client() dynamicconfig.Client {
	client := make(dynamicconfig.StaticClient, len(s))
	for key, value := range s {
		client[key] = []dynamicconfig.ConstrainedValue{{Value: value}}
	}
	return client
}

// stock are the settings that this package needs whatever the speed.
//
// Updates, update-with-start, signal-with-start, schedules, reset and the texts that the Web UI
// shows beside a workflow need no setting: they are on in this version of the server. A test holds that.
func stock() settings {
	return settings{
		// The server would report its version to its makers once a day.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// Read the names of custom search attributes from the database whenever they matter, one row each
		// time. From the copy that each service keeps for 2 s, a worker that has just added its
		// attributes would see its first workflows fail.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// How long the server lets a client wait for a workflow's next event before the client has to ask
		// again. On a busy host the server can lose the notice that a quick workflow has ended, and its
		// client then waits for the rest of the interval: 20 s by default. Asking again is cheap here.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,
	}
}

// tuned are stock and the settings that make one machine quick. The defaults spare a database that
// hundreds of shards on many hosts share; here one shard has SQLite in its own process.
func tuned() settings {
	// pollsPerSecond is how often a task queue of the history service may read its table. Each step of
	// a workflow waits for such a read: 50 ms at the default of 20, 1 ms at 1000. A read happens only
	// when there is a task to read, so a high limit costs an idle server nothing.
	const pollsPerSecond = 1000

	quick := settings{
		// Workflow and activity tasks on their way to a worker.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Timers, retries and timeouts.
		dynamicconfig.TimerProcessorMaxPollRPS.Key(): pollsPerSecond,
		// What lists and search attributes show.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollsPerSecond,
		// Payloads that are kept outside of the history are not used here, and the server counts them by
		// writing to events that it may be sending at the same time (a data race of 1.32.1).
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,
		// Callbacks and Nexus calls.
		dynamicconfig.OutboundProcessorMaxPollRPS.Key(): pollsPerSecond,
		// The clock difference between hosts that timers allow for: a timer that is due sooner after the
		// last one than this is put off by as much. 1 s by default; one host has one clock.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		// A task queue is 4 partitions by default, to be spread over hosts. On one host, a task and the
		// worker that waits for it would only meet by way of a forwarded call. Both numbers go together.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	}
	maps.Copy(quick, stock())
	return quick
}
