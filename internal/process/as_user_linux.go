package process

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls fn with the rights of user on files, and none of this process's own; with a nil user it just calls
// fn. What fn makes belongs to user. fn must not leave its goroutine.
//
// It is for directories in which an agent writes: a link that it makes there leads nowhere that it could not go.
func AsUser(user *User, fn func() error) error {
	if user == nil {
		return fn()
	}
	done := make(chan error)
	go func() {
		// The rights are a thread's. It is never unlocked, so it ends with its goroutine, and nothing else gets it.
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
	// Unlike those of package syscall, the functions of package unix are about the calling thread alone.
	if err := unix.Setgroups(u.Groups); err != nil {
		return fmt.Errorf("take the groups of user %d: %w", u.UID, err)
	}
	// These calls do not fail, they return what held before.
	_, _ = unix.SetfsgidRetGid(u.GID)
	_, _ = unix.SetfsuidRetUid(u.UID)
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if gid != u.GID || uid != u.UID {
		return errors.New("this process may not act as another user")
	}
	return nil
}

// MayRun returns why user may not run the program at path; nil if it may. A nil user is this process's own.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		// Without the flag the kernel asks for the rights of the real user, which are still this process's.
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("run %s: %w", path, err)
		}
		return nil
	})
}
