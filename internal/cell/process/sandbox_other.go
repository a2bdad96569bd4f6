//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
)

// AsUser calls fn. For a user other than nil it fails, because on this system a single thread cannot have its own file
// access rights.
func AsUser(user *User, fn func() error) error {
	if user != nil {
		return errors.ErrUnsupported
	}
	return fn()
}

// MayRun returns nil if this process may run the program at path. If it may not, the error gives the reason. For a user
// other than nil MayRun fails.
func MayRun(user *User, path string) error {
	return AsUser(user, func() error {
		_, err := exec.LookPath(path)
		return err
	})
}

// LimitExecution calls start. On this system nothing limits the started programs.
func LimitExecution(_ []string, _ bool, start func() error) error { return start() }
