package process

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the argument zero that makes this executable an init. Its only argument is the mode. Everything else comes
// through the descriptors below.
const initName = "claudeops-init"

// The descriptors of an init, in addition to the program's standard input, output and error.
const (
	// controlDescriptor is a socket for commands to the init and answers from it. It closes when the process that started
	// the init ends.
	controlDescriptor = 3
	// jobDescriptor is a file without a name that contains the job.
	jobDescriptor = 4
)

// job describes the program that an init runs. It is not passed in the init's arguments and environment, because other
// processes could read them as long as the init lives. If Path is empty, the init only sets everything up, and ends.
type job struct {
	Path string
	Args []string // with the program's name
	Env  []string
	Dir  string
	// Sandbox is the sandbox of the program; nil means none.
	Sandbox *Sandbox
	// User is the user of the program; nil means the user of this process.
	User *User
}

// givesUpRights reports whether a launcher has to start the program.
func (j *job) givesUpRights() bool { return j.Sandbox != nil || j.User != nil }

// command is one byte with a command to an init.
type command byte

const (
	commandInterrupt command = 'i' // SIGINT to the program and its group
	commandKill      command = 'k' // SIGKILL to the whole tree
)

// answer is a report of an init.
type answer struct {
	Kind answerKind
	// Sandbox is the sandbox of the program.
	Sandbox Sandboxed
	// Reason or Errno says why the program was not started.
	Errno  syscall.Errno
	Reason string
	// Status is the wait status of the program.
	Status syscall.WaitStatus
	// Survivors counts the processes that the init may not kill, and those still alive after SIGKILL.
	Survivors int
}

// answerKind is the kind of an answer.
type answerKind int

const (
	answerNone     answerKind = iota
	answerLaunched            // the program is about to run; another answer follows
	answerRefused             // the program could not be started
	answerEnded               // the program has ended, and so has its tree, except for the survivors
	answerGivenUp             // the program is one of the survivors
)

// write returns a file without a name that contains j.
func (j *job) write() (*os.File, error) {
	descriptor, err := unix.MemfdCreate("job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "job")
	err = gob.NewEncoder(file).Encode(j)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the job: %w", err)
	}
	return file, nil
}

// readJob reads the job of this init or launcher.
func readJob() (j job, err error) {
	file := os.NewFile(jobDescriptor, "job")
	defer func() { _ = file.Close() }()
	err = gob.NewDecoder(file).Decode(&j)
	return j, err
}

// newControl returns both ends of a control socket.
func newControl() (ours, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create a socket: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil { // so that a read does not occupy a thread
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, nil, fmt.Errorf("set up a socket: %w", err)
	}
	return os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control"), nil
}
