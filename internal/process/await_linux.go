package process

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit returns when cmd's process has ended, without reaping it: until it is reaped, its
// number and its group's cannot belong to anyone else, so signals cannot go astray.
func awaitExit(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
