package treeinit

import (
	"errors"
	"strconv"
	"syscall"
)

// capabilities is a set of Linux capabilities, one bit each.
type capabilities uint64

func (c capabilities) has(number uint) bool { return c&(1<<number) != 0 }

// effectiveCapabilities returns the capabilities that the calling thread can use.
func effectiveCapabilities() (capabilities, error) {
	data, err := capget()
	if err != nil {
		return 0, failed("read the capabilities", err)
	}
	return capabilities(data[0].effective) | capabilities(data[1].effective)<<32, nil
}

// dropCapabilities makes sure that no program has other capabilities than those in kept if the calling thread executes
// or starts it. The thread itself keeps its capabilities until then. The argument target is the number of the user who
// will run the program. Without CAP_SETPCAP the thread cannot keep the superuser from regaining what it has, so
// dropCapabilities fails.
func dropCapabilities(kept capabilities, target int) error {
	if err := errors.Join(dropAmbient(), dropInheritable()); err != nil {
		return err
	}
	held, err := effectiveCapabilities()
	if err != nil {
		return err
	}
	for number := range uint(64) {
		if kept.has(number) || !capabilityBounded(number) { // also false if it is unknown to this kernel
			continue
		}
		switch {
		case held.has(capSetpcap):
			if err := prctl(syscall.PR_CAPBSET_DROP, uintptr(number)); err != nil {
				return failed("drop capability "+strconv.Itoa(int(number)), err)
			}
		case target == superuser && held.has(number):
			return errors.New("dropping the capabilities of root takes CAP_SETPCAP")
		}
	}
	return nil
}

// dropAmbient clears the ambient capabilities, so that a program of a user other than root does not inherit them.
func dropAmbient() error {
	if err := prctl(prCapAmbient, prCapAmbientClearAll); err != nil {
		return failed("drop the ambient capabilities", err)
	}
	return nil
}

// dropInheritable clears the inheritable capabilities, which a program of root would get even if they are not bounded.
func dropInheritable() error {
	data, err := capget()
	if err == nil {
		data[0].inheritable, data[1].inheritable = 0, 0
		err = capset(data)
	}
	if err != nil {
		return failed("drop the inheritable capabilities", err)
	}
	return nil
}
