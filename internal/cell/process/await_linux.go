package process

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit waits until cmd's process has ended. It does not reap the process. Until the process is reaped, no other
// process or group can get its number. So a signal cannot reach a wrong process.
func awaitExit(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
