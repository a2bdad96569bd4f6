// Package process starts one program, waits for it, and ends it together with everything that
// came of it. Nothing else in this repository starts processes.
//
//	start -> running -> exited by itself --------------------------+-> all the rest killed -> reaped
//	            |                                                  |
//	            +-> ctx ended: SIGINT -> grace -> SIGKILL, always --+
//
// How far "everything" reaches is the tree's containment:
//
//   - ModeSubreaper (Linux): an init of our own, which is this very executable started again, runs
//     the program. It adopts every orphan of the tree, and kills until it has no children left. A
//     process of another user, such as one that sudo started, is out of an unprivileged init's reach.
//   - ModeNamespace (Linux): the same init in a PID namespace. When it ends, the kernel kills all
//     that is inside. /proc stays the host's, so that a program that looks at the host sees it.
//   - ModeGroup (anywhere): the program and the processes of its group. One that leaves the group
//     (setsid) stays behind, and so does all of it when this process is killed.
//
// Under an init a tree can also be in a Sandbox, and run as another User: a launcher, which is this executable
// once more, gives up the rights and becomes the program.
//
// Under an init the tree ends within a second of this process, however that dies: the kernel
// signals the init, and the socket between the two closes.
package process
