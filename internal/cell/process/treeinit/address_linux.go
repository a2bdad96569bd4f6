package treeinit

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// Address is an address to which no program of a tree connects.
type Address struct {
	// IP is an IPv6 address, or an IPv4 address in IPv6 form. All addresses with the same first Bits bits are meant.
	IP   [16]byte
	Bits int
	// Here stands for all addresses of this host instead.
	Here bool
	// Port 0 stands for all ports except that of the domain name system.
	Port int
	// Except lists programs that connect nevertheless, by the absolute paths of their executables.
	Except []string
	// Reason says why, for people.
	Reason string
}

func (a *Address) encode(e *encoder) {
	e.text(string(a.IP[:]))
	e.number(a.Bits)
	e.flag(a.Here)
	e.number(a.Port)
	e.texts(a.Except)
	e.text(a.Reason)
}

// decodeAddress is the reverse of encode.
func decodeAddress(d *decoder) (a Address) {
	copy(a.IP[:], d.text())
	a.Bits, a.Here, a.Port, a.Except, a.Reason = d.number(), d.flag(), d.number(), d.texts(), d.text()
	return a
}

// The offsets in the kernel's structs sockaddr_un, sockaddr_in and sockaddr_in6.
const (
	unixPath  = 2
	inetPort  = 2
	inetIP    = 4
	inetEnd   = 8
	inetSize  = 16
	inet6IP   = 8
	inet6End  = 24
	inet6Zone = 24
	inet6Size = 28
)

// familyOf returns the family of an address in the kernel's form.
func familyOf(to []byte) int {
	if len(to) < unixPath {
		return syscall.AF_UNSPEC
	}
	return int(to[0]) | int(to[1])<<8
}

// target is the address of a host.
type target struct {
	ip   [16]byte
	zone [4]byte
	port int
}

// targetOf reads an address of IPv4 or IPv6. The zero address is this host, as for the kernel.
func targetOf(to []byte) (t target) {
	t.port = int(to[inetPort])<<8 | int(to[inetPort+1])
	if familyOf(to) == syscall.AF_INET {
		t.ip[10], t.ip[11] = 0xff, 0xff
		copy(t.ip[12:], to[inetIP:inetEnd])
	} else {
		copy(t.ip[:], to[inet6IP:inet6End])
		if len(to) >= inet6Size {
			copy(t.zone[:], to[inet6Zone:])
		}
	}
	switch {
	case t.ip == [16]byte{}:
		t.ip[15] = 1
	case t.isIPv4() && [4]byte(t.ip[12:]) == [4]byte{}:
		t.ip[12], t.ip[15] = 127, 1
	}
	return t
}

func (t *target) isIPv4() bool { return [12]byte(t.ip[:12]) == [12]byte{10: 0xff, 11: 0xff} }

// isHere reports whether the address is one of this host.
func (t *target) isHere() bool {
	if t.isIPv4() && t.ip[12] == 127 || t.ip == [16]byte{15: 1} {
		return true
	}
	// A program can bind a socket to the addresses of its host only.
	family, address := syscall.AF_INET6, make([]byte, inet6Size)
	copy(address[inet6IP:], t.ip[:])
	copy(address[inet6Zone:], t.zone[:])
	if t.isIPv4() {
		family, address = syscall.AF_INET, make([]byte, inetSize)
		copy(address[inetIP:], t.ip[12:])
	}
	address[0] = byte(family)
	socket, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = syscall.Close(socket) }()
	_, _, errno := syscall.Syscall(syscall.SYS_BIND, uintptr(socket),
		uintptr(unsafe.Pointer(&address[0])), uintptr(len(address))) //nolint:gosec // how the kernel takes an address
	return errno != syscall.EADDRNOTAVAIL // any other answer leaves it open
}

// String returns the address as people write it, for a report.
func (t *target) String() string {
	text := ""
	if t.isIPv4() {
		for _, each := range t.ip[12:] {
			text += "." + strconv.Itoa(int(each))
		}
		return text[1:] + ":" + strconv.Itoa(t.port)
	}
	for at := 0; at < len(t.ip); at += 2 {
		text += ":" + strconv.FormatUint(uint64(t.ip[at])<<8|uint64(t.ip[at+1]), 16) //nolint:mnd // hexadecimal
	}
	return "[" + text[1:] + "]:" + strconv.Itoa(t.port)
}

// covers reports whether the rule is about the address.
func (a *Address) covers(t *target) bool {
	const domain = 53
	switch {
	case a.Port != t.port && (a.Port != 0 || t.port == domain):
		return false
	case a.Here:
		return t.isHere()
	}
	for at := range a.Bits {
		if mask := byte(0x80) >> (at % 8); (a.IP[at/8]^t.ip[at/8])&mask != 0 { //nolint:mnd // bits of a byte
			return false
		}
	}
	return true
}

// allowAddress judges an address that is no path.
func (c *call) allowAddress(to []byte) error {
	switch family := familyOf(to); family {
	case syscall.AF_UNSPEC, syscall.AF_UNIX, syscall.AF_NETLINK: // the end of a connection, nothing, or the kernel
		return nil
	case syscall.AF_INET, syscall.AF_INET6:
		if family == syscall.AF_INET && len(to) < inetEnd || family == syscall.AF_INET6 && len(to) < inet6End {
			return syscall.EINVAL
		}
		t := targetOf(to)
		for i := range c.rules.addresses {
			rule := &c.rules.addresses[i]
			if rule.covers(&t) && !c.isExcepted(rule) {
				return c.refuseConnection(t.String(), rule.Reason)
			}
		}
		return nil
	default:
		return c.refuseConnection("an address of family "+strconv.Itoa(family),
			"it is no address of the internet or of this host")
	}
}

func (c *call) isExcepted(rule *Address) bool {
	if len(rule.Except) == 0 {
		return false
	}
	return slices.Contains(rule.Except, c.program())
}

// refuseConnection reports a refused connection, and returns the error for the caller.
func (c *call) refuseConnection(to, reason string) error {
	c.reports <- Refused{Path: to, Program: c.caller.executable(), Connect: true, Reason: reason}
	return syscall.EACCES
}

// allowSocket judges an address of this host's own sockets. The place is that of its file; without a file, the name is
// abstract.
func (c *call) allowSocket(to []byte) (place, error) {
	none := place{file: -1, parent: -1}
	name := to[unixPath:]
	if name[0] == 0 {
		return none, c.allowAbstract(string(name[1:]))
	}
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	start, err := c.directory(atFDCWD, string(name))
	if err != nil {
		return none, err
	}
	defer closeDirectory(start)
	found, err := find(c.caller, start, string(name), true)
	if err != nil {
		return none, err
	}
	if found.file < 0 {
		found.close()
		return none, syscall.ENOENT
	}
	path, err := found.path()
	if err == nil && c.rules.refusesSocket(path) {
		err = c.refuseConnection(path, "it is of the supervisor, of another session or of a person")
	}
	if err != nil {
		found.close()
		return none, err
	}
	return found, nil
}

// refusesSocket reports whether no program connects to the socket at a real path.
func (r *fileRules) refusesSocket(path string) bool {
	// What is below a directory of this session is its own.
	return r.sockets.match(path) && !r.grants(path, toRead|toWrite) && !slices.Contains(r.ownSockets, path)
}

// allowAbstract judges an abstract name: a program of this tree must have it. This process does not have the tree's own
// restriction of such names.
func (c *call) allowAbstract(name string) error {
	table, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return syscall.EACCES
	}
	const inodeColumn = 6
	end := []byte(" @" + name + "\n")
	for at := range end {
		if end[at] == 0 {
			end[at] = '@' // as the table shows it
		}
	}
	wanted := map[string]bool{}
	for row := range bytes.Lines(table) {
		if columns := bytes.Fields(row); bytes.HasSuffix(row, end) && len(columns) > inodeColumn {
			wanted["socket:["+string(columns[inodeColumn])+"]"] = true
		}
	}
	if len(wanted) == 0 {
		return syscall.ECONNREFUSED
	}
	for _, process := range proctable.Descendants(proctable.All(), os.Getpid()) {
		dir := "/proc/" + strconv.Itoa(process.PID) + "/fd"
		descriptors, _ := os.ReadDir(dir)
		for _, each := range descriptors {
			file, _ := os.Readlink(dir + "/" + each.Name())
			delete(wanted, file)
		}
	}
	if len(wanted) > 0 {
		return c.refuseConnection("@"+name, "it is not of this session")
	}
	return nil
}
