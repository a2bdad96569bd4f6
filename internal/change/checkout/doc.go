// Package checkout gives each repairing session a directory in which no other session repairs. The directory is a git
// worktree for this session or, if a worktree is not possible, the shared directory under a lock.
//
//	Enter ── inside of a repository that is safe to use ──► a worktree, on a branch of its own
//	   └──── otherwise ───────────────────────────────────► the shared directory, locked
//	Tidy ─── a worktree without changes and commits is removed, any other is kept
//	Release
//
// A session of the work on a plan begins at a Checkpoint, and always has a worktree.
//
// A file lock protects each directory. The lock ends with the process that holds it. The name of a worktree comes from
// the caller's chain. So a later session of the chain gets the same worktree with its content.
//
// Agents can write in a repository, so the repository's files are not trusted. Git runs with the rights of the agents'
// user. Git runs only if all settings of the repository's configuration are known to run no program. Hooks, filters,
// file system monitors and background maintenance are off. Git ignores the configuration of the user and of the system.
package checkout
