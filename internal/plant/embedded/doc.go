// Package embedded runs a whole Temporal service and its Web UI inside this process, on SQLite.
//
// The all-in-one commands and the tests use this package. Deployments with a Temporal service of their own do not need
// it. The production worker must never import this package, because a whole server would then be part of the worker.
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
// With Options.Token, the frontend and the Web UI require the token: see token.go and door.go. Without a token,
// everybody who can reach the loopback address of this host, including every local user, can start, read and change
// workflows. Options.Admit can refuse some programs even if these have the token. The UI checks the CSRF
// token and the host name of each request, so that pages of other sites in the same browser cannot use the UI. The
// other services accept connections from this process only: see internode.go.
//
// Start returns when the frontend answers and the namespace exists. With a database file, every step of a workflow is
// on disk before the server acknowledges it. After a kill or a power failure, the next Start continues from the last
// acknowledged step.
package embedded
