// Package treeinit contains two roles of this executable: the init of a process tree, and the launcher. The init starts
// a launcher for a program in a sandbox, or of another user. The package works on Linux only.
//
//	package process -> init (adopts and kills) -> launcher (gives up rights) -> executes the program
//
// A role runs in an init function of this package and does not return. The sooner that function runs, the sooner the
// program starts. Go initializes packages in the order of their paths, each as soon as its imports are initialized. In
// a worker, almost all packages wait for reflect, strings or path/filepath, and initializing them takes longer than the
// role's own work. Therefore this package imports nothing that waits for these packages. The linter's configuration
// lists the permitted imports, and TestRolesStartEarly in package process checks the order of a real start.
//
// So the package has constants and system calls in kernel_linux.go, and does not use golang.org/x/sys/unix. It has a
// format in wire_linux.go, and does not use encoding/gob or encoding/json. It makes errors without fmt.
package treeinit
