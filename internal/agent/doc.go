// Package agent runs the session of a tier. It converts between the types of the domain and the types of the claude driver.
// Each session has several helpers:
//
//	Runner         starts, watches and reports a session         agent.go, report.go
//	workplaces     give each repairing session a worktree, or    workplace.go
//	               lock the session's directory
//	workspace      exchanges files with the agent                workspace.go
//	conversations  restores and archives the transcript          conversations.go
//	keys           issues a key for the model's API, and counts  keys.go, upstream.go, cost.go
//	               the cost
//	sandboxes      restricts the agent by the kernel             sandbox.go, probe.go
//	guards         decides on the calls and records them         guards.go, call_audit.go
//
// The package does not depend on chains. Activities start sessions through activities.Agent, which Runner implements.
package agent
