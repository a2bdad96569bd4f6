// Package workflows names the workflows of Claude Ops, with their inputs, results, signals, updates and queries: all
// that clients use.
//
// Below it is the deterministic part, which uses no clock, randomness, configuration or I/O. Activities fetch its data,
// and package escalation makes its decisions:
//
//	parts  what workflows are composed of: sessions, gates, reviews, events, notifications, incidents, requests
//	chain  a chain of sessions, and the cycle of a schedule that starts it
//	plan   the work of an author and a reviewer on a plan
//	talk   a conversation with a person
//
// testdata holds a recorded history of each branch of a chain, which tests replay.
package workflows
