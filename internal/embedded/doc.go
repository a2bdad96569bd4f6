// Package embedded runs a whole Temporal service and its Web UI inside this process, on SQLite.
//
// It serves the all-in-one commands and the tests. A deployment that has a Temporal service
// of its own has no use for it, and the production worker must never import it: it brings in
// a server's worth of code.
//
//	           127.0.0.1 only                 TLS, this process only
//	client --> frontend ----------------+--> history  --+
//	worker -->   (token)                |               +--> one SQLite connection --> file or memory
//	                                    +--> matching --+
//	browser -> Web UI ---> frontend     |
//	  (link or token)                   |
//	system worker --> internal frontend-+
//	  (schedules, batches)
//
// With Options.Token, the frontend and the Web UI ask for it: see token.go and door.go. Without one, whoever can reach the
// loopback address of this host, which includes every local user, can read all workflows, start them and act on them.
// Options.AdmitUI can refuse the UI to some programs even if they have the token. The UI's checks of the page's token and of
// the host name stop other sites' pages in a browser. The other services take connections of this process only: see
// internode.go.
//
// Start returns when the frontend answers and the namespace exists. With a database file,
// every acknowledged step of a workflow is on disk before the client hears of it: a process
// that was killed, or a host that lost power, goes on from there at the next Start.
package embedded
