package treeinit

import (
	"errors"
	"syscall"
	"unsafe"
)

// filterStep is the size of one instruction of a filter: the kernel's struct sock_filter.
const filterStep = 8

// filterProgram is the kernel's struct sock_fprog.
type filterProgram struct {
	length uint16
	steps  *byte
}

// The flags of the call seccomp.
const (
	seccompSetModeFilter    = 1
	seccompFlagNewListener  = 1 << 3
	seccompFlagWaitKillable = 1 << 5
)

// installListener makes the kernel ask before certain system calls of the calling thread, and of the program that the
// thread executes. It returns the descriptor on which the kernel asks.
func installListener(filter string) (int, error) {
	program, err := programOf(filter)
	if err != nil {
		return -1, err
	}
	// A signal that does not kill the caller must not begin its call anew. Kernels before 5.19 do not know that flag.
	for _, flags := range []uintptr{seccompFlagNewListener | seccompFlagWaitKillable, seccompFlagNewListener} {
		listener, _, errno := syscall.Syscall(sysSeccomp, seccompSetModeFilter, flags,
			uintptr(unsafe.Pointer(&program))) //nolint:gosec // how the kernel takes a struct
		if errno == 0 {
			return int(listener), nil
		}
		if errno == syscall.EBUSY { // the kernel takes one listener a thread
			return -1, errors.New("a filter around this program asks already, such as that of its container: start " +
				"the container with one that does not (SCMP_ACT_NOTIFY)")
		}
		if errno != syscall.EINVAL {
			return -1, failed("have the kernel ask before files are opened", errno)
		}
	}
	return -1, errors.New("this kernel cannot ask before files are opened; it takes Linux 5.14")
}

// programOf returns the kernel's form of a filter.
func programOf(filter string) (filterProgram, error) {
	if filter == "" || len(filter)%filterStep != 0 || len(filter)/filterStep > 1<<16-1 {
		return filterProgram{}, errors.New("the filter of system calls is malformed")
	}
	steps := []byte(filter)
	return filterProgram{length: uint16(len(steps) / filterStep), steps: &steps[0]}, nil //nolint:gosec // checked
}

// installFilter denies system calls to the calling thread, and to the program that the thread executes. The filter is a
// sequence of instructions for the kernel. It uses the call prctl, because filters of service managers let this call
// pass, and not always the call seccomp.
func installFilter(filter string) error {
	program, err := programOf(filter)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter,
		uintptr(unsafe.Pointer(&program)), 0, 0, 0) //nolint:gosec // how the kernel takes a struct
	if errno != 0 {
		return failed("install a filter of system calls", errno)
	}
	return nil
}
