package treeinit

import (
	"os"
	"syscall"
)

const (
	// Image is the path of this executable. Image works even if the executable's file was replaced after the start.
	Image = "/proc/self/exe"

	// initName is the argument zero that makes this executable an init. The only other argument is the mode. The init
	// gets all other data through descriptors.
	initName = "claudeops-init"
	// launchName is the argument zero that makes this executable a launcher. An init starts the launcher, which gives
	// up rights and then executes the program. The launcher is a separate process, because Go cannot run code between
	// fork and exec. The init keeps its rights, because it must be able to kill its tree, and its tree must not be able
	// to kill the init.
	launchName = "claudeops-launch"
)

// The descriptors of an init and of a launcher, in addition to the program's standard input, output and error.
const (
	// controlDescriptor is a socket in an init. The socket carries commands to the init and answers from the init. It
	// closes when the process that started the init ends. In a launcher, controlDescriptor is a pipe for answers to the
	// init.
	controlDescriptor = 3
	// jobDescriptor is an unnamed file with the job.
	jobDescriptor = 4
)

// Mode is the method by which an init finds the processes of its tree.
type Mode string

const (
	// Namespace is the mode of an init that is the first process of a PID namespace.
	Namespace Mode = "namespace"
	// Subreaper is the mode of an init that adopts the orphans of its tree.
	Subreaper Mode = "subreaper"
)

// Arguments returns the arguments that make this executable an init, beginning with argument zero. Start Image with
// these arguments, an empty environment, and two additional descriptors: a socket, and a file with an encoded Job.
func Arguments(mode Mode) []string { return []string{initName, string(mode)} }

// init makes this process an init or a launcher if it was started as one. In these roles the function does not return.
// Like every init function it runs on the process's first thread.
//
// The process's name (argument zero) requests the role. An environment variable would be inherited by children. The
// name is not inherited, so an agent's processes do not take the role by accident. If an agent starts a process with
// that name on purpose, the process has no control socket and ends.
func init() { //nolint:gochecknoinits // a role of this executable; it must run before packages that initialize slowly
	switch {
	case len(os.Args) == 2 && os.Args[0] == initName:
		runInit(Mode(os.Args[1]))
	case len(os.Args) == 1 && os.Args[0] == launchName:
		runLaunch()
	default:
		return
	}
	syscall.Exit(0) // not os.Exit, which takes a second under the race detector
}
