package process

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls fn with the rights of user on files and without this process's own. With a nil user it only calls fn.
// Files that fn creates belong to user. fn must not start goroutines that use files.
//
// Use it for directories in which an agent writes. A link that the agent makes there cannot lead fn to a file that the
// agent itself could not open.
func AsUser(user *User, fn func() error) error {
	if user == nil {
		return fn()
	}
	done := make(chan error)
	go func() {
		// The rights belong to the thread. It is never unlocked, so it ends with this goroutine and no other one runs on it.
		runtime.LockOSThread()
		err := user.takeFileRights()
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	return <-done
}

// takeFileRights gives the calling thread the user's rights on files.
func (u *User) takeFileRights() error {
	// The functions of package unix change the calling thread only; those of package syscall change all threads.
	if err := unix.Setgroups(u.Groups); err != nil {
		return fmt.Errorf("take the groups of user %d: %w", u.UID, err)
	}
	// These calls report no error. They return the previous value, so the last two calls read the result.
	_, _ = unix.SetfsgidRetGid(u.GID)
	_, _ = unix.SetfsuidRetUid(u.UID)
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if gid != u.GID || uid != u.UID {
		return errors.New("this process may not act as another user")
	}
	return nil
}

// MayRun returns an error that says why user may not run the program at path, or nil if it may. A nil user is this
// process's own.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		// Without the flag the kernel checks the real user, which is still this process's.
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("run %s: %w", path, err)
		}
		return nil
	})
}
