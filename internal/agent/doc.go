// Package agent runs the session of a tier. It translates a run of the domain to a cell.Spec, and what came of it to a
// report:
//
//	Runner      translates, runs the cell and reports             agent.go, report.go
//	session     takes acts and progress to the records            session.go
//	archive     brings a conversation to this host and keeps it   archive.go
//	workplaces  give each repairing session a worktree, or lock   workplace.go
//	            the session's directory
//	inspection  looks at what was committed, and checks it        inspect.go, preview.go
//
// Runner also pushes and proposes what was approved (push.go, propose.go).
//
// The package does not depend on chains. Activities start sessions through activities.Agent, which Runner implements.
package agent
