package process_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connectScenarios maps names to programs that do nothing forbidden. They return what they have found.
func connectScenarios() map[string]func(servers) any {
	loopback := func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}} }
	return map[string]func(servers) any{
		"reach the others": func(s servers) any {
			return errors.Join(
				reach(unix.AF_INET, unix.SOCK_STREAM, 0, loopback(s.Open)),
				reach(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0, loopback(s.Open)),
				reach(unix.AF_INET6, unix.SOCK_STREAM, 0, &unix.SockaddrInet6{Port: s.Open, Addr: [16]byte{15: 1}}),
				reach(unix.AF_INET, unix.SOCK_DGRAM, 0, loopback(s.Open)),
				reach(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.OpenPath}),
				reach(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: "open"}),
			)
		},
		"errors": func(s servers) any {
			socket, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			packets, _ := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			local, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			null, _ := unix.Open("/dev/null", unix.O_RDWR, 0)
			call := func(descriptor int, address uintptr, length uintptr) error {
				_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(descriptor), address, length)
				return errno
			}
			return []error{
				call(-1, 0, 16), call(999, 0, 16), call(null, 0, 0), call(socket, 16, 16), call(socket, 0, 129), call(socket, 0, 1<<31), call(socket, 0, 0),
				rawConnect(socket, inet4(s.Open)[:8]), rawConnect(socket, []byte{unix.AF_INET6, 0, 1}), rawConnect(socket, inet4(1)),
				rawConnect(socket, local1(s.OpenPath)), rawConnect(packets, inet4(1)), rawConnect(packets, make([]byte, 16)), rawConnect(packets, inet4(2)),
				rawConnect(local, []byte{unix.AF_UNIX, 0}), rawConnect(local, local1("missing")), rawConnect(local, local1("notes")), rawConnect(local, local1("")),
				rawConnect(local, local1("notes/x")), rawConnect(local, inet4(s.Open)), rawConnect(local, local1("open")), rawConnect(local, local1("open")),
			}
		},
		"an abstract name of its own": func(s servers) any {
			name := "@own-" + s.Name
			listener, err := net.Listen("unix", name)
			if err != nil {
				return err
			}
			defer func() { _ = listener.Close() }()
			return reach(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: name})
		},
		"the kernel": func(servers) any {
			_, err := net.InterfaceAddrs()
			return errors.Join(err, withSocket(unix.AF_NETLINK, unix.SOCK_RAW, func(socket int) error {
				return unix.Connect(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
			}))
		},
		"a time limit": func(servers) any {
			busy, took := busyServer(), time.Now()
			err := withSocket(unix.AF_INET, unix.SOCK_STREAM, func(socket int) error {
				_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Usec: 300_000})
				return unix.Connect(socket, loopback(busy))
			})
			return fmt.Sprint(err, time.Since(took) >= 300*time.Millisecond)
		},
		"a signal": func(servers) any {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, unix.SIGUSR1)
			busy := busyServer()
			runtime.LockOSThread()
			stop := signalEach(unix.Gettid())
			defer stop()
			// The runtime installs handlers with SA_RESTART, so the kernel itself would go on.
			return withSocket(unix.AF_INET, unix.SOCK_STREAM, func(socket int) error {
				_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 60})
				return unix.Connect(socket, loopback(busy))
			})
		},
		"many that wait": func(s servers) any {
			busy, group := busyServer(), sync.WaitGroup{}
			for range 150 {
				group.Go(func() {
					_ = withSocket(unix.AF_INET, unix.SOCK_STREAM, func(socket int) error {
						_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 2})
						return unix.Connect(socket, loopback(busy))
					})
				})
			}
			_, err := os.ReadFile("notes")
			err = errors.Join(err, reach(unix.AF_INET, unix.SOCK_STREAM, 0, loopback(s.Open)))
			group.Wait()
			return err
		},
		"a burst that waits": func(servers) any {
			busy, group, ended := busyServer(), sync.WaitGroup{}, sync.Map{}
			for range 600 {
				group.Go(func() {
					ended.Store(fmt.Sprint(withSocket(unix.AF_INET, unix.SOCK_STREAM, func(socket int) error {
						_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 2})
						return unix.Connect(socket, loopback(busy))
					})), true)
				})
			}
			group.Wait()
			var all []string
			ended.Range(func(err, _ any) bool { all = append(all, err.(string)); return true })
			return strings.Join(all, ", ")
		},
		"a path with a full queue": func(servers) any {
			listener, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			_ = unix.Bind(listener, &unix.SockaddrUnix{Name: "queue"})
			_ = unix.Listen(listener, 0)
			var all [3]error
			var group sync.WaitGroup
			for at := range all {
				group.Go(func() { all[at] = reach(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: "queue"}) })
			}
			for range all {
				time.Sleep(50 * time.Millisecond)
				_, _, _ = unix.Accept(listener)
			}
			group.Wait()
			return all
		},
		"a thread with descriptors of its own": func(s servers) any {
			result := make(chan any)
			go func() {
				runtime.LockOSThread()
				_ = unix.Unshare(unix.CLONE_FILES)
				result <- reach(unix.AF_INET, unix.SOCK_STREAM, 0, loopback(s.Open))
			}()
			return <-result
		},
		"sockets of other kinds": func(servers) any {
			var all []string
			for _, kind := range [][3]int{
				{unix.AF_VSOCK, unix.SOCK_STREAM, 0},
				{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP},
				{unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
				{unix.AF_INET6, unix.SOCK_DCCP, unix.IPPROTO_DCCP},
				{unix.AF_TIPC, unix.SOCK_STREAM, 0},
				{unix.AF_SMC, unix.SOCK_STREAM, 0},
				{unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
			} {
				_, err := unix.Socket(kind[0], kind[1], kind[2])
				all = append(all, fmt.Sprint(err))
			}
			return strings.Join(all, ", ")
		},
	}
}

// busyServer returns a port at which nobody answers.
func busyServer() int {
	listener, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	_ = unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	_ = unix.Listen(listener, 0)
	bound, _ := unix.Getsockname(listener)
	port := bound.(*unix.SockaddrInet4).Port
	for range 3 { // its queue is full then
		socket, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		_ = rawConnect(socket, inet4(port))
	}
	return port
}

// signalEach sends a signal to a thread again and again, until the function that it returns is called.
func signalEach(thread int) (stop func()) {
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGUSR1)
			}
		}
	}()
	return func() { close(over) }
}
