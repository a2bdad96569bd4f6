// Package store keeps the records of Claude Ops: one record per session, the events of every chain, the decisions on
// the calls of agents, the ledger of actions on services, and the locks on services. It also has the queries that
// follow a chain through its sessions.
//
//	OpenSession -> running -> CloseSession -> closed -+
//	     |                                   ^        | a different report replaces
//	     +-> refused: nothing is written     +--------+ the old one, which is kept
//
// The package promises:
//
//   - Recording is idempotent. A retry, or another process, can record the same again, and nothing changes.
//   - No cost is lost. A commit is on disk before a method returns, and a replaced report is kept. RemoveChain,
//     RemoveIncidents and RemoveMemories delete records, ReturnCharge deletes the ledger entries of a call that never
//     ran, and TakeBack the latest of a service. No other method deletes a session, an event, a decision on a call or a ledger entry.
//   - Every open session was admitted. The transaction that reads the facts for its admission also writes its record.
//   - Calls that are charged before they run (Charge) never exceed the limits on a service, over all chains and hosts.
//   - Many goroutines and many processes can use one database at the same time.
//   - A database belongs to one Temporal namespace (Store.Claim), so a workflow ID names a chain.
//
// # Representation
//
// The queries are the same for every database: $1 placeholders and standard SQL, with the extensions RETURNING, ON
// CONFLICT and MATERIALIZED, which SQLite and PostgreSQL share. The differences are in dialect.go, in the files of each
// database (sqlite.go; postgres.go and postgres_conn.go), and in its directory of migrations.
//
// In SQLite, a write transaction takes the lock of the file when it begins. In PostgreSQL, it takes an advisory lock of
// the database. The reasons are in docs/decisions.
//
//   - Times are integers: milliseconds since the Unix epoch in UTC. They sort and subtract the same way everywhere, and
//     neither a driver nor a time zone changes them. Fractions of a millisecond are cut off.
//   - Dollars are double-precision floats, as the CLI prints them. A value comes back bit for bit, and sums over a chain
//     are exact to far below a millionth of a cent.
//   - A verdict and its services are JSON text.
//   - Text is valid UTF-8 without the character NUL; an invalid byte and a NUL are stored as U+FFFD. Texts are compared and
//     sorted byte by byte.
package store
