package year

import (
	"syscall"
	"time"
)

// realTime returns the time that this process has used of its processors. In a bubble, package time knows simulated times only, and the
// wall's time would depend on what else the machine does.
func realTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
