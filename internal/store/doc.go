// Package store keeps the records of Claude Ops: one record per session, the events of every
// chain, what was decided on the calls of agents, what was done to services and who works on them, and
// the queries that follow a chain through its sessions.
//
//	OpenSession -> running -> CloseSession -> closed -+
//	     |                                   ^        | a different report: it takes
//	     +-> refused: nothing is written     +--------+ over, the old one is kept
//
// What the package promises:
//
//   - Recording is idempotent. Whatever was recorded once can be recorded again, by a
//     retry or by another process, and changes nothing.
//   - Nothing that was paid for is lost. A commit is on disk before a method returns, a
//     record is never deleted, and a report that another one replaces is kept beside it.
//     Only what a call was charged leaves the ledger again, if it never ran.
//   - No session is open that was not admitted, by facts that still held when its record
//     was written.
//   - No call does to a service what the ledger does not allow at that moment, by all chains and hosts
//     together, if it asks first: Charge.
//   - Many goroutines and many processes may use one database at the same time.
//
// # Representation
//
// The queries are written once for every database: $1 placeholders, standard SQL, and of
// the extensions only RETURNING, ON CONFLICT and MATERIALIZED, which SQLite and PostgreSQL share.
// What differs is a file per database (sqlite.go) and a directory of migrations.
//
//   - Times are integers, milliseconds since the Unix epoch in UTC. They sort and subtract
//     the same way everywhere, and neither a driver nor a time zone reinterprets them.
//     What is finer than a millisecond is cut off.
//   - Dollars are double-precision floats, because that is what the CLI prints: a value
//     comes back bit for bit, and sums over a chain are exact to far below a
//     millionth of a cent.
//   - A verdict and the services in it are JSON text.
//   - Text is valid UTF-8; an invalid byte is stored as U+FFFD.
package store
