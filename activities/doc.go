// Package activities does the I/O of a chain: it reads configuration, keeps records and runs agents. Each activity is
// thin: it decodes its input, calls another package, sends heartbeats and translates the error.
//
// A verdict, a timeout, an exhausted budget or a lost conversation is a result. An error means that there is no result.
// A retryable error means that a retry can help. A non-retryable error means that no retry can help.
//
//	Settings  policy snapshot          workflow task queue
//	Records   sessions and events      workflow task queue
//	Notifications  messages to people  workflow task queue
//	Schedules cycles left out          workflow task queue
//	Attempts  spending of an agent     workflow task queue
//	Talks     records of conversations workflow task queue
//	Tiers     agents' processes        agents' task queue
package activities
