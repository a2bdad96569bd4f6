package process

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the argument zero by which this executable is asked to be an init. Its only argument
// is the mode; all else comes through the descriptors below.
const initName = "claudeops-init"

// The descriptors that an init has beside the program's three.
const (
	// controlDescriptor is a socket: commands come in, answers go out, and its end is the end of
	// whoever started the init.
	controlDescriptor = 3
	// orderDescriptor is a file without a name that holds the order.
	orderDescriptor = 4
)

// order says what an init is to run. It does not come as arguments and environment of the init,
// where everybody could read it for as long as the init lives. Without a Path there is nothing
// to run: the init sets everything up, and ends.
type order struct {
	Path string
	Args []string // with the program's name
	Env  []string
	Dir  string
	// Sandbox and User are those of the program; nil is none, and this process's own.
	Sandbox *Sandbox
	User    *User
}

// givesUpRights reports whether a launcher has to start the program.
func (o *order) givesUpRights() bool { return o.Sandbox != nil || o.User != nil }

// command is one byte that tells an init what to do.
type command byte

const (
	commandInterrupt command = 'i' // SIGINT to the program and its group
	commandKill      command = 'k' // SIGKILL to everything
)

// answer is what an init tells.
type answer struct {
	Kind answerKind
	// Sandbox is what became of the order's.
	Sandbox Sandboxed
	// Errno is why the program was refused, unless Reason says it.
	Errno  syscall.Errno
	Reason string
	// Status is how the program ended.
	Status syscall.WaitStatus
	// Survivors counts the processes that could not be killed, or did not die of it.
	Survivors int
}

// answerKind is what an answer is about.
type answerKind int

const (
	answerNone     answerKind = iota
	answerLaunched            // the program is about to run, and more will be told
	answerRefused             // the program could not be started
	answerEnded               // it has ended, and all that came of it but the survivors
	answerGivenUp             // it is one of the survivors
)

// write returns a file without a name that holds o.
func (o *order) write() (*os.File, error) {
	descriptor, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "order")
	err = gob.NewEncoder(file).Encode(o)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the order: %w", err)
	}
	return file, nil
}

// readOrder reads the order of this init.
func readOrder() (o order, err error) {
	file := os.NewFile(orderDescriptor, "order")
	defer func() { _ = file.Close() }()
	err = gob.NewDecoder(file).Decode(&o)
	return o, err
}

// newControl returns both ends of a control socket.
func newControl() (ours, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create a socket: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil { // reading it must not take a thread
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, nil, fmt.Errorf("set up a socket: %w", err)
	}
	return os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control"), nil
}
