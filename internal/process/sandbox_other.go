//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
)

// AsUser calls fn. With a user it fails: this system has no way to do that.
func AsUser(user *User, fn func() error) error {
	if user != nil {
		return errors.ErrUnsupported
	}
	return fn()
}

// MayRun returns why user may not run the program at path; only a nil user can be asked about here.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		_, err := exec.LookPath(path)
		return err
	})
}
