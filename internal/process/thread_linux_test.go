package process_test

import (
	"os"
	"runtime"
	"syscall"
)

// leaveFirstThread returns on another thread than the process's first, which it keeps for good.
func leaveFirstThread() {
	for syscall.Gettid() == os.Getpid() {
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			if syscall.Gettid() == os.Getpid() {
				select {}
			}
		}()
		<-locked
	}
}
