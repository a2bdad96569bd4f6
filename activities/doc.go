// Package activities is where a chain touches the world: it reads configuration, keeps
// records and runs agents. Each activity is thin: decode, call what does the work,
// heartbeat, translate the error.
//
// A verdict, a time-out, an exhausted budget or a conversation that is gone are results.
// An error means that nothing could be judged yet, and that trying again may help; only
// an error made by permanent says that it will not.
//
//	Settings  policy snapshot          workflow task queue
//	Records   sessions and events      workflow task queue
//	Notifications  messages to people  workflow task queue
//	Schedules what was left out        workflow task queue
//	Attempts  what an agent has spent  workflow task queue
//	Tiers     agents' processes        agents' task queue
package activities
