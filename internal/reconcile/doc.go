// Package reconcile cleans up after workers and sessions that died.
//
//	Leases         a locked file for each running activity         leases.go
//	FailOrphaned   fails the activities of dead workers, so
//	               that Temporal retries them at once              orphans.go
//	Sweeper        closes the sessions and releases the services
//	               of chains that ended without doing so           sweep.go
//	PendingReader  reads the last heartbeats of agents             pending.go
//
// The package ends no processes. Processes that an agent has left behind on this host are ended before its session is
// started again: see agent.Runner and claude.EndSession.
package reconcile
