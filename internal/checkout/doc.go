// Package checkout gives each repairing session a directory in which no other session repairs. The directory is a git
// worktree for this session or, if a worktree is not possible, the shared directory under a lock.
//
//	Enter ── inside of a repository that is safe to use ──► a worktree, on a branch of its own
//	   └──── otherwise ───────────────────────────────────► the shared directory, locked
//	Tidy ─── a worktree without changes and commits is removed, any other is kept
//	Release
//
// Every place is locked by a file, so that the lock ends with the process that holds it. Worktrees are named after the
// caller's chain: a later session of the chain gets the same worktree with all that is in it.
//
// Agents can write in a repository, so the repository's files are not trusted. Git runs with the rights of the agents'
// user, and only if the repository's configuration has nothing but settings that are known to run no program. Hooks,
// filters, file system monitors and background maintenance are off, and no configuration of the user or the system
// counts.
package checkout
