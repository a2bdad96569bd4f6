package process

import (
	"os"
	"syscall"
)

// WriteProgram writes an executable file. During the write this process forks no children, because a child would
// inherit the open file. As long as the child has not yet executed its own program, the kernel would refuse to execute
// the file ("text file busy").
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) //nolint:gosec // a program must be executable
}
