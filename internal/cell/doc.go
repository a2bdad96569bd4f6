// Package cell runs an agent safely on a host: one session of the claude CLI, of which nothing is left when it ends but
// its conversation and its Result. The package knows nothing of chains, Temporal, settings or records; a supervisor
// hands in values and a Supervisor.
//
//	Host           what all sessions of a process share: Open, Run, Close     host.go, run.go
//	private        the session's own directories                              private.go, quota.go, reserve.go, modes.go
//	conversations  the host's copies of what sessions said; an agent that     conversations.go, intake.go, lineages.go
//	               changes what it inherited is not resumed
//	workspace      files that are exchanged with the agent                    workspace.go
//	keys           a key of the model's API for one session, and its count    keys.go, upstream.go, cost.go
//	sandboxes      what the kernel denies                                     sandbox.go, probe.go
//	guards         decide on each tool call, program, file and connection     guards.go, post.go, visitors.go, call_audit.go
//
// Programs that are no agent run with the same user and directories through Host.Scratch and RunScript.
package cell
