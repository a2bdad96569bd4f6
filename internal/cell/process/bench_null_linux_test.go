package process_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// BenchmarkNullListener measures a call for which the kernel asks a thread that answers without looking: the least that
// a judged call costs on this machine.
func BenchmarkNullListener(b *testing.B) {
	requireOpens(b)
	const (
		receive, send   = 0xc0502100, 0xc0182101
		setFlags, onCPU = 0x40082104, 1
	)
	listeners, took := make(chan int), make(chan time.Duration)
	go func() {
		runtime.LockOSThread() // never unlocked: the filter is the thread's
		listeners <- listen()
		began := time.Now()
		for range b.N {
			_, _, _ = syscall.Syscall(unix.SYS_GETPGID, 0, 0, 0) // the collector does not wait for this thread
		}
		took <- time.Since(began)
	}()
	listener := <-listeners
	require.Positive(b, listener)
	_, _, _ = syscall.Syscall(unix.SYS_IOCTL, uintptr(listener), setFlags, onCPU)
	go func() {
		runtime.LockOSThread()
		for range b.N {
			var asked [80]byte // struct seccomp_notif, which begins with the id of the call
			for {
				if _, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(listener), receive, uintptr(unsafe.Pointer(&asked))); errno == 0 { //nolint:gosec // a struct
					break
				}
				asked = [80]byte{}
			}
			var answer [24]byte // struct seccomp_notif_resp
			copy(answer[:8], asked[:8])
			_, _, _ = syscall.Syscall(unix.SYS_IOCTL, uintptr(listener), send, uintptr(unsafe.Pointer(&answer))) //nolint:gosec // a struct
		}
	}()
	before := ownTime(b)
	all := <-took
	b.ReportMetric(float64(all.Nanoseconds())/1000/float64(b.N), "us/call")
	b.ReportMetric(float64((ownTime(b)-before).Nanoseconds())/1000/float64(b.N), "us-processor/call")
	require.NoError(b, unix.Close(listener))
}

// listen makes the kernel ask before each getpgid of the calling thread. It returns the descriptor on which it asks.
func listen() int {
	const newListener, asks = 1 << 3, 0x7fc00000 // SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF
	judged := uint32(unix.SYS_GETPGID)
	steps := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: judged},
		{Code: unix.BPF_RET | unix.BPF_K, K: asks},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}, // SECCOMP_RET_ALLOW
	}
	program := unix.SockFprog{Len: uint16(len(steps)), Filter: &steps[0]} //nolint:gosec // four
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	listener, _, _ := syscall.Syscall(unix.SYS_SECCOMP, 1, newListener, uintptr(unsafe.Pointer(&program))) //nolint:gosec // a struct
	return int(listener)
}

// ownTime returns the processor time of this process.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
