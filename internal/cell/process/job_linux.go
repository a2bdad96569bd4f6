package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process/treeinit"
)

// jobOf returns spec as a job for an init.
func jobOf(spec Spec, mode Mode) (j treeinit.Job, err error) {
	j = treeinit.Job{Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...), Env: spec.Env, Dir: spec.Dir}
	if spec.Sandbox != nil {
		j.Sandbox, err = spec.Sandbox.forInit()
		if mode == ModeNamespace && j.Sandbox.Opens != nil { // /proc shows other process numbers than the kernel tells
			j.Sandbox.Opens = nil
			j.Sandbox.Remark = joinRemarks(j.Sandbox.Remark,
				"files are not judged when they are opened: the containment is a namespace")
		}
	}
	if user := spec.User; user != nil {
		j.User = &treeinit.User{UID: user.UID, GID: user.GID, Groups: user.Groups}
	}
	return j, err
}

// writeJob writes spec as a job for an init to a new file, and returns the file. The file is in memory and has no name.
func writeJob(spec Spec, mode Mode) (*os.File, error) {
	j, err := jobOf(spec, mode)
	if err != nil {
		return nil, err
	}
	descriptor, err := unix.MemfdCreate("job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "job")
	if _, err = file.Write(j.Encode()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the job: %w", err)
	}
	return file, nil
}

// newControl returns both ends of a new control socket: the end of this process, and the end of the init.
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
