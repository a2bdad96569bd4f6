// Package supervisor puts a worker together: configuration, records, the claude driver
// and prompts become the activities of Temporal workers. It is shared by the production
// worker and by the all-in-one programs, and links no Temporal server.
//
//	Connect           -> client            Temporal's own settings
//	SetUpNamespace    -> search attributes
//	New, Run          -> two workers       until the context ends, then drained
//
// Package agent runs the sessions, and package reconcile cleans up after those that died.
package supervisor
