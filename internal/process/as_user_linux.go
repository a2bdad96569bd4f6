package process

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls fn with the file access rights of user instead of this process's own rights. With a nil user it only
// calls fn. Files that fn creates belong to user. fn must not start goroutines that use files.
//
// Use it in directories that an agent can write to. A symbolic link made by the agent then cannot lead fn to a file
// that the agent itself could not open.
func AsUser(user *User, fn func() error) error {
	if user == nil {
		return fn()
	}
	done := make(chan error)
	go func() {
		// The rights belong to the thread. The thread is never unlocked, so it ends with this goroutine, and no other
		// goroutine runs on it.
		runtime.LockOSThread()
		err := user.takeFileRights()
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	return <-done
}

// takeFileRights gives the calling thread the user's file access rights.
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

// MayRun returns an error that says why user may not run the program at path, or nil if it may. A nil user means the
// user of this process.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		// Without AT_EACCESS the kernel checks the real user id, which is still that of this process.
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("run %s: %w", path, err)
		}
		return nil
	})
}
