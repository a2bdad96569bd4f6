// Package embedded runs a whole Temporal service and its Web UI inside this process, on SQLite.
//
// It serves the all-in-one commands and the tests. A deployment that has a Temporal service
// of its own has no use for it, and the production worker must never import it: it brings in
// a server's worth of code.
//
//	           127.0.0.1 only
//	client --> frontend --+--> history  --+
//	worker -->            |               +--> one SQLite connection --> file or memory
//	                      +--> matching --+
//	                      +--> system worker (schedules, batches)
//	browser -> Web UI ---> frontend
//
// Start returns when the frontend answers and the namespace exists. With a database file,
// every acknowledged step of a workflow is on disk before the client hears of it: a process
// that was killed, or a host that lost power, goes on from there at the next Start.
package embedded
