//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
)

// AsUser calls fn. It fails for a user other than nil, because on this system a single thread cannot have its own file
// access rights.
func AsUser(user *User, fn func() error) error {
	if user != nil {
		return errors.ErrUnsupported
	}
	return fn()
}

// MayRun returns an error that says why this process may not run the program at path, or nil if it may. It fails for a
// user other than nil.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		_, err := exec.LookPath(path)
		return err
	})
}
