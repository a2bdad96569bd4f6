package process

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsUser calls fn with the file access rights of user instead of this process's own rights. If user is nil, AsUser
// calls fn and changes no rights. Files that fn creates belong to user. fn must not start goroutines that use files.
//
// Use AsUser in directories that an agent can write to. An agent can create symbolic links there. Through these links,
// fn then reaches only files that the agent could open, too.
func AsUser(user *User, fn func() error) error {
	if user == nil {
		return fn()
	}
	done := make(chan error)
	go func() {
		// The rights belong to the thread. This goroutine never unlocks its thread. So the thread ends with the
		// goroutine, and no other goroutine runs on the thread.
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
	// The functions of package unix change the calling thread. The functions of package syscall would change all
	// threads.
	if err := unix.Setgroups(u.Groups); err != nil {
		return fmt.Errorf("take the groups of user %d: %w", u.UID, err)
	}
	// The Setfs calls report no error, but return the previous value. So the last two calls read the values that the
	// first two calls have set.
	_, _ = unix.SetfsgidRetGid(u.GID)
	_, _ = unix.SetfsuidRetUid(u.UID)
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if gid != u.GID || uid != u.UID {
		return errors.New("this process may not act as another user")
	}
	return nil
}

// MayRun returns nil if user may run the program at path. If user may not run it, the error gives the reason. A nil
// user means the user of this process.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		// Use AT_EACCESS. Without it the kernel checks the real user id, which is still that of this process.
		if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("run %s: %w", path, err)
		}
		return nil
	})
}
