package discover

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Port is a TCP port on which a program listens.
type Port struct {
	Number int
	// Program is the name of the program; empty if this user may not see it.
	Program string
	// Local reports that the port is open on this machine only.
	Local bool
}

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// ports lists the listening ports with the names of their programs.
func (l *look) ports(ctx context.Context) error {
	sockets := map[string]Port{} // by the number of the socket's inode
	for _, table := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		text, err := fs.ReadFile(l.host.Files, table)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		readSockets(text, sockets)
	}
	if len(sockets) == 0 {
		return nil
	}
	err := l.programs(ctx, sockets)
	ports := map[int]Port{}
	for _, port := range sockets {
		if known, twice := ports[port.Number]; twice {
			port.Local = port.Local && known.Local
			port.Program = cmp.Or(port.Program, known.Program)
		}
		ports[port.Number] = port
	}
	for _, port := range ports {
		l.found.Ports = append(l.found.Ports, port)
	}
	slices.SortFunc(l.found.Ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	return err
}

// readSockets adds the listening sockets of a table of the kernel (proc_net_tcp.rst) to sockets.
func readSockets(table []byte, sockets map[string]Port) {
	const local, state, inode, columns = 1, 3, 9, 10
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < columns || fields[state] != listening {
			continue
		}
		address, digits, _ := strings.Cut(fields[local], ":")
		number, err := strconv.ParseUint(digits, 16, 16)
		if err != nil || len(sockets) == 10*maxFound {
			continue
		}
		sockets[fields[inode]] = Port{Number: int(number), Local: isLoopback(address)}
	}
}

// isLoopback reports whether an address of the table is 127.0.0.0/8, ::1 or the IPv6 form of the first. The kernel
// prints each word of four bytes in the byte order of the machine, which is little endian on all that Claude Ops is
// built for.
func isLoopback(address string) bool {
	switch len(address) {
	case 8:
		return strings.HasSuffix(address, "7F")
	case 32:
		return address == "00000000000000000000000001000000" ||
			strings.HasPrefix(address, "0000000000000000FFFF0000") && strings.HasSuffix(address, "7F")
	}
	return false
}

// programs looks up the programs that hold the sockets. Without root it finds the user's own.
func (l *look) programs(ctx context.Context, sockets map[string]Port) error {
	processes, err := fs.ReadDir(l.host.Files, "proc")
	if err != nil {
		return nil //nolint:nilerr // the ports are known, and only the names are missing
	}
	for _, process := range processes {
		if _, err := strconv.Atoi(process.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		dir := "proc/" + process.Name()
		descriptors, err := fs.ReadDir(l.host.Files, dir+"/fd")
		if err != nil {
			continue // of another user, or it has ended
		}
		for _, descriptor := range descriptors {
			target, _ := fs.ReadLink(l.host.Files, dir+"/fd/"+descriptor.Name())
			inode := strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")
			port, listens := sockets[inode]
			if !listens {
				continue
			}
			name, _ := fs.ReadFile(l.host.Files, dir+"/comm")
			if port.Program = strings.TrimSpace(string(name)); !usable(port.Program) {
				port.Program = ""
			}
			sockets[inode] = port
		}
	}
	return nil
}
