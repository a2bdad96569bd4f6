// Package year has no code for programs. Its tests live with an installation for weeks and years, in seconds.
//
// The workflows, the activities, the records, the operations, the API and the pages are the real ones. The clock is
// simulated: everything runs in a bubble of testing/synctest, in which time passes when nothing else can happen.
// Temporal is the SDK's test environment, with what clients need around it (temporal_test.go, client_test.go).
// Services, agents and people are played (world_test.go, agent_test.go, people_test.go). Everything that happens by
// chance is drawn from a seed.
//
// A watcher looks at the installation each hour, and compares what it shows with what has happened
// (invariants_test.go).
package year
