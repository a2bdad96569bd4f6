// Package process starts one program, waits for it, and ends its tree. The tree is the program and all processes that
// it started, directly or indirectly. Only this package and its init (package treeinit) start processes.
//
//	start -> running -> exited on its own -------------------------+-> all the rest killed -> reaped
//	            |                                                  |
//	            +-> ctx ended: SIGINT -> grace -> SIGKILL, always --+
//
// The tree's containment decides which processes are found and ended:
//
//   - ModeSubreaper (Linux): an init runs the program. The init is this executable, started again. It adopts every
//     orphan of the tree, and kills its children until none is left. An unprivileged init cannot kill a process of
//     another user, for example after sudo.
//   - ModeNamespace (Linux): the same init in a PID namespace. When the init ends, the kernel kills every process of
//     the namespace. /proc stays the host's, so that programs can inspect the host.
//   - ModeGroup (anywhere): the program and the processes of its group. A process that leaves the group (setsid) is not
//     ended. If this process is killed, the tree continues to run.
//
// Under an init, a tree can also be in a Sandbox and run as another User. For these two cases the init starts a
// launcher, which is this executable again. The launcher gives up rights and then executes the program.
//
// Under an init, the tree ends within a second after the death of this process, whatever caused the death. The kernel
// then signals the init, and the socket between this process and the init closes.
package process
