package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// errPeerGone means that no process has the remote end of a connection open any more.
var errPeerGone = errors.New("the program that opened the connection is gone")

// PeerIsOurs reports whether one of our processes has the remote end of a TCP connection open. Both ends are on this
// host. Our processes are the descendants of this process, and every process whose environment sets the given variable,
// with its descendants. Without superuser rights PeerIsOurs returns false for processes of other users, because it
// cannot inspect them.
//
// An error means that the answer is unknown, for example because the program has already ended.
func PeerIsOurs(local, remote Endpoint, variable string) (bool, error) {
	if err := proctable.Check(); err != nil {
		return false, fmt.Errorf("look for the program that opened a connection: %w", err)
	}
	socket, err := peerSocket(local, remote)
	if err != nil {
		return false, err
	}
	// A child that has not begun its program yet still has copies of all sockets of this process. So a socket that this
	// process itself has open is not an agent's, whoever else has it.
	if holds(os.Getpid(), socket) {
		return false, nil
	}
	for _, entry := range ours(variable) {
		if holds(entry.PID, socket) {
			return true, nil
		}
	}
	// The search misses a program that ended in the meantime. So check whether the socket still exists.
	still, err := peerSocket(local, remote)
	if err == nil && still != socket {
		err = errPeerGone
	}
	return false, err
}

// ours lists the descendants of this process, and every process whose environment sets the given variable, with its
// descendants.
func ours(variable string) []proctable.Entry {
	all := proctable.All()
	roots := []int{os.Getpid()}
	var found []proctable.Entry
	for _, entry := range all {
		if entry.PID != os.Getpid() && entry.EnvironHas(variable+"=") {
			roots = append(roots, entry.PID)
			found = append(found, entry)
		}
	}
	return append(found, proctable.Descendants(all, roots...)...)
}

// holds reports whether a process has a socket open. The argument socket is the kernel's name for the
// socket, such as "socket:[1234]".
func holds(pid int, socket string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended, or belongs to another user
	}
	for _, file := range files {
		if name, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && name == socket {
			return true
		}
	}
	return false
}

// peerSocket returns the kernel's name of a connection's remote socket. That socket has the address remote and is
// connected to the address local.
func peerSocket(local, remote Endpoint) (string, error) {
	for _, table := range []struct {
		file string
		name func(Endpoint) string
	}{{"/proc/self/net/tcp", kernelIPv4}, {"/proc/self/net/tcp6", kernelIPv6}} {
		rows, err := os.ReadFile(table.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return "", err
		}
		if socket := findSocket(string(rows), table.name(remote), table.name(local)); socket != "" {
			return socket, nil
		}
	}
	return "", errPeerGone
}

// findSocket searches the rows of a kernel table for the socket with the given two addresses. It returns the kernel's
// name of the socket, or "" if no process has the socket open.
func findSocket(rows, local, remote string) string {
	const localColumn, remoteColumn, inodeColumn = 1, 2, 9
	for row := range strings.Lines(rows) {
		columns := strings.Fields(row)
		if len(columns) <= inodeColumn || columns[localColumn] != local || columns[remoteColumn] != remote {
			continue
		}
		if inode := columns[inodeColumn]; inode != "0" {
			return "socket:[" + inode + "]"
		}
	}
	return ""
}

// kernelIPv4 returns an endpoint in the form that the kernel's IPv4 table uses. On a little-endian machine
// 127.0.0.1:8080 is "0100007F:1F90". For an IPv6 address kernelIPv4 returns "".
func kernelIPv4(end Endpoint) string {
	ip, is := bytes.CutPrefix(end.IP[:], []byte{10: 0xff, 11: 0xff})
	if !is {
		return ""
	}
	return kernelAddress(ip, end.Port)
}

// kernelIPv6 returns an endpoint in the form that the kernel's IPv6 table uses. That table can also contain IPv4
// connections.
func kernelIPv6(end Endpoint) string { return kernelAddress(end.IP[:], end.Port) }

// kernelAddress returns an address in the kernel's format: every four bytes of ip as a hexadecimal number in native
// byte order, then a colon and the port.
func kernelAddress(ip []byte, port uint16) string {
	var text strings.Builder
	for ; len(ip) >= 4; ip = ip[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(ip))
	}
	fmt.Fprintf(&text, ":%04X", port)
	return text.String()
}
