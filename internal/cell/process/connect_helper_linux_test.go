package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// connectAttempt makes the test binary try to reach the forbidden server. The value is a key of connectAttempts.
	connectAttempt = "PROCESS_TEST_CONNECT"
	// connectServers holds the servers, as JSON.
	connectServers = "PROCESS_TEST_CONNECT_SERVERS"
)

// servers holds the addresses to which an attempt connects. The programs may reach Open, OpenPath and OpenName only.
type servers struct {
	Open, Closed         int
	OpenPath, ClosedPath string
	// Name is the abstract name of the forbidden server.
	Name string
	// Host holds an IPv4 address of this host other than those of the loopback device; empty if there is none.
	Host []byte
}

// An attempt sends reached to the server to which it has connected.
const reached = "reached"

func connectTo() {
	var s servers
	if err := json.Unmarshal([]byte(os.Getenv(connectServers)), &s); err != nil {
		panic(err)
	}
	name := os.Getenv(connectAttempt)
	if scenario := connectScenarios()[name]; scenario != nil {
		fmt.Println(scenario(s))
		return
	}
	fmt.Println(connectAttempts()[name](s))
}

// connectAttempts maps names to ways to reach the forbidden server.
func connectAttempts() map[string]func(servers) error {
	stream, datagram := unix.SOCK_STREAM, unix.SOCK_DGRAM
	v4 := func(kind, protocol int, ip ...byte) func(servers) error {
		return func(s servers) error {
			return reach(unix.AF_INET, kind, protocol, &unix.SockaddrInet4{Port: s.Closed, Addr: [4]byte(ip)})
		}
	}
	v6 := func(zone uint32, ip [16]byte) func(servers) error {
		return func(s servers) error {
			return reach(unix.AF_INET6, stream, 0, &unix.SockaddrInet6{Port: s.Closed, Addr: ip, ZoneId: zone})
		}
	}
	local := func(path func(servers) string) func(servers) error {
		return func(s servers) error { return reach(unix.AF_UNIX, stream, 0, &unix.SockaddrUnix{Name: path(s)}) }
	}
	return map[string]func(servers) error{
		"IPv4":                           v4(stream, 0, 127, 0, 0, 1),
		"another address of loopback":    v4(stream, 0, 127, 9, 8, 7),
		"the address 0.0.0.0":            v4(stream, 0, 0, 0, 0, 0),
		"without waiting":                v4(stream|unix.SOCK_NONBLOCK, 0, 127, 0, 0, 1),
		"multipath TCP":                  v4(stream, unix.IPPROTO_MPTCP, 127, 0, 0, 1),
		"UDP":                            v4(datagram, 0, 127, 0, 0, 1),
		"IPv6":                           v6(0, [16]byte{15: 1}),
		"the address ::":                 v6(0, [16]byte{}),
		"IPv4 in IPv6":                   v6(0, [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}),
		"0.0.0.0 in IPv6":                v6(0, [16]byte{10: 0xff, 11: 0xff}),
		"IPv6 with a zone":               v6(1, [16]byte{15: 1}),
		"the path":                       local(func(s servers) string { return s.ClosedPath }),
		"the abstract name":              local(func(s servers) string { return "@" + s.Name }),
		"the path of the caller's files": local(func(s servers) string { return "/proc/self/root" + s.ClosedPath }),
		"a link": local(func(s servers) string {
			_ = os.Symlink(s.ClosedPath, "l")
			return "l"
		}),
		"a descriptor": local(func(s servers) string {
			file, err := unix.Open(s.ClosedPath, unix.O_PATH, 0)
			return fmt.Sprint("/proc/self/fd/", file, err)[:len(fmt.Sprint("/proc/self/fd/", file))]
		}),
		"the host's address": func(s servers) error {
			return reach(unix.AF_INET, stream, 0, &unix.SockaddrInet4{Port: s.Closed, Addr: [4]byte(s.Host)})
		},
		"after a disconnection": func(s servers) error {
			return withSocket(unix.AF_INET, stream, func(socket int) error {
				open, none := inet4(s.Open), make([]byte, 16)
				return errors.Join(rawConnect(socket, open), rawConnect(socket, none), rawConnect(socket, inet4(s.Closed)), tell(socket))
			})
		},
		"another length": func(s servers) error {
			return withSocket(unix.AF_INET, stream, func(socket int) error {
				return errors.Join(rawConnect(socket, append(inet4(s.Closed), make([]byte, 112)...)), tell(socket))
			})
		},
		"the first bytes": func(s servers) error {
			return withSocket(unix.AF_INET, stream, func(socket int) error {
				return errors.Join(sendWithAddress(socket, unix.MSG_FASTOPEN, inet4(s.Closed)), nil)
			})
		},
		"the first bytes of a message": func(s servers) error {
			return withSocket(unix.AF_INET, stream, func(socket int) error {
				_, err := unix.SendmsgN(socket, []byte(reached), nil, &unix.SockaddrInet4{Port: s.Closed, Addr: [4]byte{127, 0, 0, 1}}, unix.MSG_FASTOPEN)
				return err
			})
		},
		"an address that changes": func(s servers) error { return race(unix.AF_INET, inet4(s.Open), inet4(s.Closed)) },
		"a path that changes":     func(s servers) error { return race(unix.AF_UNIX, local1(s.OpenPath), local1(s.ClosedPath)) },
		"a path that turns abstract": func(s servers) error {
			return race(unix.AF_UNIX, local1(s.OpenPath), append([]byte{unix.AF_UNIX, 0, 0}, s.Name...))
		},
		"a link that changes": func(s servers) error {
			_, _ = os.Symlink(s.OpenPath, "l"), os.Symlink(s.ClosedPath, "m")
			swap := func() { _ = unix.Renameat2(unix.AT_FDCWD, "l", unix.AT_FDCWD, "m", unix.RENAME_EXCHANGE) }
			return raceWith(unix.AF_UNIX, local1("l"), swap)
		},
	}
}

// inet4 returns a port of 127.0.0.1 in the kernel's form.
func inet4(port int) []byte {
	return []byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 15: 0} //nolint:gosec // a port
}

// local1 returns the address of a socket with a name in the kernel's form.
func local1(name string) []byte {
	address := make([]byte, 110)
	address[0] = unix.AF_UNIX
	copy(address[2:], name)
	return address[:2+len(name)+1]
}

func rawConnect(socket int, address []byte) error {
	_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address))) //nolint:gosec // an address
	if errno != 0 {
		return errno
	}
	return nil
}

func sendWithAddress(socket, flags int, address []byte) error {
	text := []byte(reached)
	_, _, errno := syscall.Syscall6(unix.SYS_SENDTO, uintptr(socket), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), //nolint:gosec // a text
		uintptr(flags), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address))) //nolint:gosec // an address
	if errno != 0 {
		return errno
	}
	return nil
}

func tell(socket int) error {
	_, err := unix.Write(socket, []byte(reached))
	return err
}

func withSocket(family, kind int, do func(int) error) error {
	socket, err := unix.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(socket), unix.Close(socket))
}

// reach connects a new socket, and tells the server that it is reached.
func reach(family, kind, protocol int, address unix.Sockaddr) error {
	socket, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	if err = unix.Connect(socket, address); errors.Is(err, unix.EINPROGRESS) {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}, -1) //nolint:gosec // a descriptor
	}
	if err != nil {
		return err
	}
	return errors.Join(tell(socket), unix.Close(socket))
}

// race connects to an address that another thread changes between the two, often to each.
func race(family int, open, closed []byte) error {
	size := max(len(open), len(closed))
	shared := make([]byte, size)
	both := [2][]byte{append(open, make([]byte, size-len(open))...), append(closed, make([]byte, size-len(closed))...)}
	copy(shared, both[0])
	at := 0
	return raceWith(family, shared, func() {
		at = 1 - at
		copy(shared, both[at])
	})
}

// raceWith connects to the address until it was often refused and often not, while another thread calls change.
func raceWith(family int, address []byte, change func()) error {
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for !over.Load() {
			change()
		}
	}()
	const often, limit = 100, 60 * time.Second
	accepted, refused := 0, 0
	for began := time.Now(); (accepted < often || refused < often) && time.Since(began) < limit; {
		err := withSocket(family, unix.SOCK_STREAM, func(socket int) error {
			if err := rawConnect(socket, address); err != nil {
				return err
			}
			return tell(socket)
		})
		switch {
		case err == nil:
			accepted++
		case errors.Is(err, unix.EACCES):
			refused++
		}
		if refused == 0 && accepted > often*often {
			break // nobody refuses
		}
	}
	over.Store(true)
	<-ended
	if accepted == 0 {
		return errors.New("nothing was accepted")
	}
	if refused == 0 {
		return nil
	}
	return unix.EACCES
}
