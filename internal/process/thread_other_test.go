//go:build !linux

package process_test

// leaveFirstThread does nothing where there is no init to tell threads apart.
func leaveFirstThread() {}
