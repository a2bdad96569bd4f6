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
// Nothing on these ports asks for a name or a password. Whoever can reach the loopback address of this
// host, which includes every local user, can read all workflows, start them and act on them, by gRPC or
// through the Web UI. The UI's checks of token and host name stop other sites' pages in a browser, not a
// program such as curl, which can send what the UI sends. Options.AdmitUI can refuse the UI to some programs;
// gRPC is open to all of them. Who needs more runs a Temporal service with authentication.
//
// Start returns when the frontend answers and the namespace exists. With a database file,
// every acknowledged step of a workflow is on disk before the client hears of it: a process
// that was killed, or a host that lost power, goes on from there at the next Start.
package embedded
