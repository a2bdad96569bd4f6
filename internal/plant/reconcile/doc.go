// Package reconcile cleans up after workers and sessions that died.
//
//	Leases         a locked file for each running activity         leases.go
//	FailOrphaned   fails the activities of dead workers, so
//	               that Temporal retries them at once              orphans.go
//	Sweeper        closes the sessions and releases the services
//	               of chains that ended without doing so           sweep.go
//	PendingReader  reads the last heartbeats of agents             pending.go
//
// The package ends no processes. Before a session starts again on this host, agent.Runner ends the processes that its
// agent has left behind (see claude.EndSession).
package reconcile
