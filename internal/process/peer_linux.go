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
)

// errPeerGone is returned for a connection whose other end no process holds any more.
var errPeerGone = errors.New("the program that opened the connection is gone")

// PeerIsOurs reports whether a process of a tree of ours holds the end at remote of a TCP connection within this
// host, whose other end is at local. Such a process comes of this one, has the variable in its environment, or comes of
// one that has it. A process of another user cannot be looked into, and counts as a stranger, unless this is the
// superuser.
//
// The error says that it cannot be told, for example because the program has ended already.
func PeerIsOurs(local, remote Endpoint, variable string) (bool, error) {
	if err := checkProc(); err != nil {
		return false, fmt.Errorf("look for the program that opened a connection: %w", err)
	}
	socket, err := peerSocket(local, remote)
	if err != nil {
		return false, err
	}
	for _, entry := range ours(variable) {
		if entry.holds(socket) {
			return true, nil
		}
	}
	// A program that ended during the look was not seen.
	still, err := peerSocket(local, remote)
	if err == nil && still != socket {
		err = errPeerGone
	}
	return false, err
}

// ours lists what comes of this process, what has the variable in its environment, and what comes of that.
func ours(variable string) []processEntry {
	all := allProcesses()
	roots := []int{os.Getpid()}
	var found []processEntry
	for _, entry := range all {
		if entry.pid != os.Getpid() && entry.environHas(variable+"=") {
			roots = append(roots, entry.pid)
			found = append(found, entry)
		}
	}
	return append(found, descendants(all, roots...)...)
}

// holds reports whether the process has the socket open, which is named as the kernel does: "socket:[1234]".
func (e processEntry) holds(socket string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", e.pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended, or is another user's
	}
	for _, file := range files {
		if name, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && name == socket {
			return true
		}
	}
	return false
}

// peerSocket returns the kernel's name for the socket at remote that is connected with the one at local.
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

// findSocket returns the kernel's name for the socket between the addresses; "" if no process has it.
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

// kernelIPv4 spells an endpoint as the kernel's table of IPv4 does: "0100007F:1F90" is 127.0.0.1:8080 where the
// lowest byte comes first. It is empty for an address of IPv6.
func kernelIPv4(end Endpoint) string {
	ip, is := bytes.CutPrefix(end.IP[:], []byte{10: 0xff, 11: 0xff})
	if !is {
		return ""
	}
	return kernelAddress(ip, end.Port)
}

// kernelIPv6 is kernelIPv4 for the table of IPv6, where a program may have a connection of IPv4, too.
func kernelIPv6(end Endpoint) string { return kernelAddress(end.IP[:], end.Port) }

// kernelAddress spells each four bytes of ip as a number.
func kernelAddress(ip []byte, port uint16) string {
	var text strings.Builder
	for ; len(ip) >= 4; ip = ip[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(ip))
	}
	fmt.Fprintf(&text, ":%04X", port)
	return text.String()
}
