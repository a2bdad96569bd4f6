// Package workflows holds the deterministic part of Claude Ops. It touches no clock, no
// randomness, no configuration and no I/O: what it knows of the world comes from
// activities, and what it decides is decided by package escalation.
//
// Histories of every released shape are kept in testdata and replayed by tests. A change
// of what a workflow does, in what order, goes behind workflow.GetVersion.
package workflows
