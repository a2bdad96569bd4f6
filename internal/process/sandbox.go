package process

import (
	"context"
	"fmt"
)

// Sandbox is what the kernel keeps a tree from, whatever it runs. It holds on Linux, where the tree has an
// init and the kernel has Landlock. Nothing of it reaches beyond files, signals and abstract sockets: a socket
// that has a path, Docker's among them, can still be connected to by whoever may by its mode.
//
// The tree may read and execute all files but those that are hidden, and may list every directory. It may
// write nothing but what is Writable, and devices such as /dev/null. It cannot look into processes outside of
// it, mount anything, or get back what was dropped of the superuser's capabilities.
//
// Landlock knows grants only, so whatever lies beside a hidden path is granted entry by entry when the tree
// starts. What follows: an entry that comes later, directly in a directory that has something hidden below
// it, is not readable, nor is one that replaces another there by a rename; file systems that are mounted
// later below a granted entry are readable. A link is never granted, only what it leads to, by its own path.
type Sandbox struct {
	// Required has Run fail where the sandbox is not to be had. Otherwise the tree runs without.
	Required bool
	// Hidden are absolute paths of files and directories that the tree must not read. What is mounted
	// elsewhere, too, is hidden in each place.
	Hidden []string
	// Readable and Writable are absolute paths, without symbolic links in them, that the tree may read and
	// execute, or write as well, also where they are hidden or lie below something hidden. If something hidden
	// lies below them they are granted entry by entry, and nothing new can be made directly in them.
	// One that does not exist grants nothing.
	Readable, Writable []string
	// Signals lets the tree send signals to processes outside of it, such as its init.
	Signals bool
	// Setuid says that programs that change the user, such as sudo, must go on to work.
	Setuid bool
}

// Sandboxed is what became of a Sandbox.
type Sandboxed struct {
	// ABI is the version of Landlock's interface that holds the tree; 0 is no sandbox.
	ABI int
	// Remark says why there is no sandbox, or what it lacks; empty when there is nothing to say.
	Remark string
}

// String describes s for a person.
func (s Sandboxed) String() string {
	switch {
	case s.ABI == 0 && s.Remark == "":
		return ""
	case s.ABI == 0:
		return "none: " + s.Remark
	case s.Remark == "":
		return fmt.Sprintf("landlock (ABI %d)", s.ABI)
	}
	return fmt.Sprintf("landlock (ABI %d; %s)", s.ABI, s.Remark)
}

// SandboxError says that a required sandbox, or a user to run as, is not to be had. Nothing was started.
type SandboxError struct{ Reason string }

// Error implements error.
func (e *SandboxError) Error() string { return e.Reason }

// requiredSandbox returns the error about a required sandbox that is not to be had.
func requiredSandbox(why string) error {
	return &SandboxError{Reason: "the agent's sandbox is required, and not to be had here: " + why}
}

// User is whom a tree runs as.
type User struct {
	Name     string
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// ProbeSandbox tells what becomes of a sandbox in a tree with that containment, and whether its programs can run as
// user, which may be nil, by trying it.
func ProbeSandbox(ctx context.Context, choice Mode, sandbox *Sandbox, user *User) (Sandboxed, error) {
	spec := Spec{Containment: choice, Sandbox: sandbox, User: user}
	found, err := Probe(choice)
	if err != nil {
		return Sandboxed{}, err
	}
	if found.Mode == ModeGroup {
		return sandboxOf(spec)
	}
	exit, err := Run(ctx, spec)
	return exit.Sandbox, err
}
