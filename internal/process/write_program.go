package process

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that is about to be executed. A child that this process forks while
// the file is open for writing keeps it open until the child has executed its own program, and
// until then the kernel executes the file for nobody ("text file busy"). So nothing is forked
// while it is written.
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) //nolint:gosec // a program must be executable
}
