// Package agent runs the session of a tier: it translates between the words of the domain and those of the claude driver,
// and gives each session what it works with.
//
//	Runner         starts, watches and reports a session      agent.go, report.go
//	workspace      the files that it gets and leaves          workspace.go
//	conversations  restores and archives its transcript       conversations.go
//	keys           its key for the model's API, and its cost  keys.go, upstream.go, cost.go
//	sandboxes      what the kernel keeps it from              sandbox.go, probe.go
//	guards         decide on its calls and record them        guards.go, call_audit.go
//
// The package knows no chains. Activities start sessions through activities.Agent, which Runner implements.
package agent
