//go:build unix && !linux

package process

import "errors"

// AsUser calls fn. With a user it fails: this system has no way to do that.
func AsUser(user *User, fn func() error) error {
	if user != nil {
		return errors.ErrUnsupported
	}
	return fn()
}
