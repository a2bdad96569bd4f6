package process

import (
	"context"
	"fmt"
	"strings"
)

// Sandbox describes restrictions that the kernel enforces for all programs of a tree. A sandbox needs Linux with
// Landlock, and a containment with an init. It restricts the use of files, signals and abstract sockets, and of the
// network as a whole (Offline) or by addresses (Opens). Otherwise the tree can connect to a socket with a path, such as
// Docker's, if the socket's mode allows the connection.
//
// The tree may read all files that are not hidden, and may list every directory. Executable limits which of them it may
// execute. It may write only to the Writable paths and to devices such as /dev/null. The tree cannot inspect processes
// outside of the tree, mount anything, or regain capabilities that were dropped.
//
// Landlock can grant access, but cannot deny it below a grant. So if a path below a directory is hidden, the other
// entries of that directory are granted one by one when the tree starts. This has three consequences:
//
//   - In a directory whose entries were granted one by one, a later entry is not readable. The same holds for an entry
//     that replaces another by a rename.
//   - A file system that is mounted below a granted entry later is readable.
//   - A symbolic link is not granted. The file to which it points is granted if that file's own path is granted.
type Sandbox struct {
	// Required makes Run fail if the sandbox is not available. If Required is false and the sandbox is not available,
	// the tree runs without a sandbox.
	Required bool
	// Hidden holds absolute paths of files and directories that the tree must not read. If the same files are also
	// mounted at other paths, they are hidden at those paths, too.
	Hidden []string
	// Readable and Writable hold absolute paths without symbolic links. The tree may read the files at all
	// of these paths, and may write at the Writable paths. Both lists override Hidden: a listed path is granted even if
	// the path, or a directory above it, is hidden. If a hidden path lies below a listed directory, the entries of the
	// directory are granted one by one. The tree can then create nothing directly in this directory. A path that does
	// not exist grants nothing.
	Readable, Writable []string
	// Executable holds absolute paths without symbolic links of the only files that the tree may execute. A directory
	// stands for all files below it. The list must contain the program of the tree, and the interpreters and loaders of
	// all listed files. If Executable is nil, the tree may execute every file that it may read.
	Executable []string
	// Signals allows the tree to send signals to processes outside of the tree, such as the tree's init.
	Signals bool
	// Setuid allows programs such as sudo to change the user.
	Setuid bool
	// Offline denies all sockets: the network, the loopback interface and sockets with a path. The programs of the tree
	// can still talk to each other through pipes and pairs of sockets.
	Offline bool
	// Opens has each file judged when a program of the tree opens it, by its real path, and each connection by its
	// address; nil judges none. It needs Linux 5.14, and a containment in the process numbers of this host. Where it is
	// not to be had, Sandboxed.Remark says so.
	Opens *Opens
	// Judged makes Run fail unless the kernel judges the tree's files and connections by Opens: what may run in the
	// tree relies on it.
	Judged bool
}

// Opens says which files the programs of a tree may open, change or move, in addition to the grants of the sandbox, and
// to which addresses they connect. All patterns are those of doublestar, and match absolute paths without symbolic
// links.
type Opens struct {
	// Secret lists files that no program reads.
	Secret []string
	// Kept lists files that no program changes.
	Kept []string
	// Clear lists directories in which nothing but Keys is secret: those of the system's programs and of the agent
	// itself.
	Clear, Keys []string
	// Programs lists what single programs open nevertheless.
	Programs []ProgramOpens
	// Held lists the absolute paths of the executables of programs that open only what is below the paths in HeldRead
	// and HeldWrite, and devices such as /dev/null.
	Held, HeldRead, HeldWrite []string
	// Addresses lists the addresses to which no program connects.
	Addresses []Address
	// Sockets lists patterns of sockets to which no program connects, except for OwnSockets and those below directories
	// that the tree may write.
	Sockets, OwnSockets []string
	// Refused is called for what a program may not do, from one goroutine. nil ignores it.
	Refused func(Refused)
}

// Address is an address to which no program of a tree connects.
type Address struct {
	// IP is an IPv6 address, or an IPv4 address in IPv6 form. All addresses with the same first Bits bits are meant.
	IP   [16]byte
	Bits int
	// Here stands for all addresses of this host instead.
	Here bool
	// Port 0 stands for all ports except that of the domain name system.
	Port int
	// Except lists programs that connect nevertheless, by the absolute paths of their executables.
	Except []string
	// Reason says why, for people.
	Reason string
}

// ProgramOpens lists secret files that one program reads, and kept files that it changes.
type ProgramOpens struct {
	// Program is the absolute path of an executable, or its file name. A name stands for no file that the tree can
	// write.
	Program string
	// Read and Write are patterns of files.
	Read, Write []string
}

// Refused is a file or an address that a program was not allowed to use.
type Refused struct {
	// Path is the file's real path, or the address.
	Path string
	// Program is the path of the program's executable; "" if the program has ended.
	Program string
	// Write reports that the program wanted to change the file, and Connect that it wanted to connect.
	Write, Connect bool
	// Reason says why it may not.
	Reason string
}

// Sandboxed describes the sandbox that a tree runs in.
type Sandboxed struct {
	// ABI is the version of Landlock's interface in use; 0 means no sandbox.
	ABI int
	// Remark says why there is no sandbox, or what the sandbox cannot enforce or grant. It is empty if neither applies.
	Remark string
	// Opens reports that files are judged when they are opened, and Connects that connections are.
	Opens, Connects bool
}

// String describes s for a person.
func (s Sandboxed) String() string {
	if s.ABI == 0 {
		return strings.TrimSuffix("none: "+s.Remark, "none: ")
	}
	said := fmt.Sprintf("landlock (ABI %d", s.ABI)
	if s.Opens {
		said += "; files judged when opened"
	}
	if s.Connects {
		said += "; connections judged"
	}
	if s.Remark != "" {
		said += "; " + s.Remark
	}
	return said + ")"
}

// SandboxError means that a required sandbox is not available, or that the tree cannot run as another user. In both
// cases the program was not started.
type SandboxError struct{ Reason string }

// Error implements error.
func (e *SandboxError) Error() string { return e.Reason }

// requiredSandbox returns the error for a required sandbox that is not available.
func requiredSandbox(why string) error {
	return &SandboxError{Reason: "the agent's sandbox is required, and not to be had here: " + why}
}

// unjudged begins the error for a tree that the kernel does not judge although Sandbox.Judged is set.
const unjudged = "the kernel does not judge the files and connections of this session, as it did when the worker " +
	"started and looked; start the worker anew, and it will grant less: "

// User is the user that a tree runs as.
type User struct {
	Name     string
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// ProbeSandbox returns the sandbox that a tree would get. Unless the tree would be in ModeGroup, ProbeSandbox starts a
// tree without a program. It fails if the tree cannot run as user, or if a required sandbox is not available. A nil
// user means the user of this process.
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
