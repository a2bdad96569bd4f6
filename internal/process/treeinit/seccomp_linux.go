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

// installFilter denies system calls to the calling thread, and to the program that the thread executes. The filter is a
// sequence of instructions for the kernel. It uses the call prctl, because filters of service managers let this call
// pass, and not always the call seccomp.
func installFilter(filter string) error {
	if filter == "" || len(filter)%filterStep != 0 || len(filter)/filterStep > 1<<16-1 {
		return errors.New("the filter of system calls is malformed")
	}
	steps := []byte(filter)
	program := filterProgram{length: uint16(len(steps) / filterStep), steps: &steps[0]} //nolint:gosec // checked
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter,
		uintptr(unsafe.Pointer(&program)), 0, 0, 0) //nolint:gosec // how the kernel takes a struct
	if errno != 0 {
		return failed("install a filter of system calls", errno)
	}
	return nil
}
