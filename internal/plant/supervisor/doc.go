// Package supervisor assembles a worker: configuration, records, the claude driver and prompts become the activities of
// Temporal workers. The production worker and the all-in-one commands use this package. It links no Temporal server.
//
//	Connect           -> client            Temporal's own settings
//	SetUpNamespace    -> search attributes
//	New, Run          -> two workers       until the context ends, then drained
//
// Package agent runs the sessions. Package reconcile cleans up after workers that died and chains that ended
// abnormally.
package supervisor
