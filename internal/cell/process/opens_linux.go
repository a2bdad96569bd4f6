package process

import (
	"errors"
	"fmt"
	"sync"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process/treeinit"
)

// judgedCalls lists the system calls that open a file by its path, or give a file another path, besides judgedOpens.
// There is no other way to a file: io_uring and open_by_handle_at are denied, and so are the calls of other
// architectures.
func judgedCalls() []string {
	return []string{
		"openat2", "creat", "truncate", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
		"unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod", "mknodat",
	}
}

// judgedOpens describes the opens that are judged. The kernel alone carries out those whose flags, which are in a
// register, let it open nothing but a directory for reading (O_DIRECTORY): its names are no secret, and the sandbox
// permits them. Nor are references to files judged (O_PATH), which can neither be read nor written.
func judgedOpens(native *arch.Info) (judged []seccomp.NameWithConditions) {
	const otherUses = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY
	for flags, name := range []string{1: "open", 2: "openat"} {
		if len(known(native, []string{name})) == 1 {
			judged = append(judged, when(name, uint32(flags), seccomp.BitsNotSet, unix.O_DIRECTORY|unix.O_PATH),
				when(name, uint32(flags), seccomp.BitsSet, otherUses))
		}
	}
	return judged
}

// fileFilter returns the encoded filter that makes the kernel ask before the judged calls, and openFilter one for
// connections, too. A socket without a connection sends nothing over TCP (see fastOpen), and the supervisor listens to
// nothing else.
var (
	openFilter = sync.OnceValues(func() (string, error) { return newOpenFilter(append(judgedCalls(), "connect")) })
	fileFilter = sync.OnceValues(func() (string, error) { return newOpenFilter(judgedCalls()) })
)

func newOpenFilter(judged []string) (string, error) {
	native, err := arch.GetInfo("")
	if err != nil {
		return "", fmt.Errorf("build a filter of system calls: %w", err)
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{
			Action: seccomp.ActionUserNotify, Names: known(native, judged), NamesWithCondtions: judgedOpens(native),
		}},
	}
	instructions, err := policy.Assemble()
	if err != nil {
		return "", fmt.Errorf("build a filter of system calls: %w", err)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return "", fmt.Errorf("assemble a filter of system calls: %w", err)
	}
	return string(encodeFilter(raw)), nil
}

// forInit converts o to the form that an init reads.
func (o *Opens) forInit() (*treeinit.Opens, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // no files are judged
	}
	calls, err := openFilter()
	files, failed := fileFilter()
	opens := &treeinit.Opens{
		Secret: expanded(o.Secret), Kept: expanded(o.Kept), Clear: o.Clear, Keys: expanded(o.Keys),
		Filter: calls, FileFilter: files, Sockets: expanded(o.Sockets), OwnSockets: o.OwnSockets,
		Held: o.Held, HeldRead: o.HeldRead, HeldWrite: o.HeldWrite,
	}
	for _, address := range o.Addresses {
		opens.Addresses = append(opens.Addresses, treeinit.Address(address))
	}
	for _, each := range o.Programs {
		opens.Programs = append(opens.Programs, treeinit.ProgramOpens{
			Program: each.Program, Read: expanded(each.Read), Write: expanded(each.Write),
		})
	}
	return opens, errors.Join(err, failed)
}

// expanded returns patterns without braces that stand for the given patterns.
func expanded(patterns []string) (without []string) {
	for _, pattern := range patterns {
		without = append(without, withoutBraces(pattern)...)
	}
	return without
}

// withoutBraces returns a pattern for each alternative in braces. Braces can be nested.
func withoutBraces(pattern string) (without []string) {
	opened, depth, from := -1, 0, 0
	for at := 0; at < len(pattern); at++ {
		switch symbol := pattern[at]; {
		case symbol == '\\':
			at++
		case symbol == '{':
			depth++
			if depth == 1 {
				opened, from = at, at+1
			}
		case depth == 1 && (symbol == ',' || symbol == '}'):
			// The rest of the pattern may have braces, too. It is expanded once for each alternative.
			without = append(without, pattern[from:at])
			from = at + 1
			if symbol == '}' {
				return joined(pattern[:opened], without, pattern[at+1:])
			}
		case symbol == '}' && depth > 1:
			depth--
		}
	}
	return []string{pattern}
}

// joined expands the pattern for each alternative between its start and its end.
func joined(start string, alternatives []string, end string) (without []string) {
	for _, alternative := range alternatives {
		without = append(without, withoutBraces(start+alternative+end)...)
	}
	return without
}
