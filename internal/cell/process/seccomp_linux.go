package process

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls lists the system calls that no program in a sandbox may make. Landlock restricts files and signals. These
// calls reach further: into other processes, into the kernel, and past the paths that Landlock knows.
func deniedCalls() []string {
	return []string{
		// Into other processes, besides signals.
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
		"move_pages", "migrate_pages",
		// Into the kernel: interfaces whose defects have often given rights away.
		"bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "fanotify_init", "lookup_dcookie",
		// Other views of the file system. Landlock knows files by their paths.
		"mount", "umount2", "umount", "mount_setattr", "move_mount", "open_tree", "open_tree_attr", "fsopen",
		"fsconfig", "fsmount", "fspick", "pivot_root", "chroot", "open_by_handle_at", "setns", "swapon", "swapoff",
		// The whole host.
		"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct", "iopl",
		"ioperm", "sethostname", "setdomainname", "settimeofday", "clock_settime", "vhangup",
	}
}

// missingCalls lists the calls that fail as on a kernel without them. Programs then use an older way: threads instead
// of the ring, and clone, whose flags a filter can read.
func missingCalls() []string {
	return []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"}
}

// namespaces holds the flags of clone and unshare that create a namespace. In a user namespace a program has all
// capabilities, and with them reaches parts of the kernel that are closed otherwise.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// deniedArguments lists calls that a program may use in part only. Most take a process number, and 0 is the calling
// process. A filter cannot tell the program's own number from the number of the worker.
func deniedArguments() []seccomp.NameWithConditions {
	denied := []seccomp.NameWithConditions{
		when("clone", 0, seccomp.BitsSet, namespaces),
		when("unshare", 0, seccomp.BitsSet, namespaces|unix.CLONE_NEWTIME),
		// A file in memory has no path, so Landlock lets it be executed.
		when("memfd_create", 1, seccomp.BitsNotSet, unix.MFD_NOEXEC_SEAL),
	}
	for _, name := range []string{
		"prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity",
		"sched_setattr",
	} {
		denied = append(denied, when(name, 0, seccomp.NotEqual, 0))
	}
	// The kind of the number comes first: a process, a group, or all processes of a user. For users, 0 is all
	// processes of this user, and the worker may be one of these.
	return append(denied,
		when("setpriority", 1, seccomp.NotEqual, 0), when("setpriority", 0, seccomp.GreaterThan, unix.PRIO_PGRP),
		when("ioprio_set", 1, seccomp.NotEqual, 0), when("ioprio_set", 0, seccomp.GreaterThan, ioprioWhoGroup),
	)
}

// fastOpen lists the calls that connect a TCP socket when they send. Programs then connect first.
func fastOpen() []seccomp.NameWithConditions {
	return []seccomp.NameWithConditions{
		when("sendto", 3, seccomp.BitsSet, unix.MSG_FASTOPEN), when("sendmsg", 2, seccomp.BitsSet, unix.MSG_FASTOPEN),
		when("sendmmsg", 3, seccomp.BitsSet, unix.MSG_FASTOPEN),
	}
}

// otherSockets describes the sockets that no sandbox permits: those of virtual machines and of protocols that a host
// hardly uses, whose addresses nobody here knows. Raw sockets take a capability.
func otherSockets() []seccomp.NameWithConditions {
	noneOf := func(argument uint32, values ...uint64) (all seccomp.ArgumentConditions) {
		for _, value := range values {
			all = append(all, seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value})
		}
		return all
	}
	local := []uint64{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_PACKET}
	protocols := noneOf(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_MPTCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP,
		unix.IPPROTO_ICMPV6,
		unix.IPPROTO_RAW)
	return []seccomp.NameWithConditions{
		{Name: "socket", Conditions: noneOf(0, append(local, unix.AF_INET, unix.AF_INET6)...)},
		{Name: "socket", Conditions: append(noneOf(0, local...), protocols...)},
	}
}

// ioprioWhoGroup is the kernel's IOPRIO_WHO_PGRP.
const ioprioWhoGroup = 2

// when returns a condition on one argument of a system call. The comparison covers all 64 bits. For a number of 32
// bits, a denial by an unequal value therefore holds whatever the upper half is. A denial by an equal value would not.
func when(name string, argument uint32, operation seccomp.Operation, value uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{
		Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: operation, Value: value}},
	}
}

// filter returns the encoded filter of system calls for the programs of a sandbox, and offlineFilter that for a sandbox
// that is offline.
var (
	filter        = sync.OnceValues(func() ([]byte, error) { return newFilter(deniedCalls()) })
	offlineFilter = sync.OnceValues(func() ([]byte, error) { return newFilter(append(deniedCalls(), "socket")) })
)

// newFilter returns an encoded filter that denies system calls, in addition to what no sandbox permits.
func newFilter(denied []string) ([]byte, error) {
	native, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("build a filter of system calls: %w", err)
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{
			{Action: fails(unix.EPERM), Names: known(native, denied), NamesWithCondtions: deniedArguments()},
			{Action: fails(unix.ENOSYS), Names: known(native, missingCalls())},
			{Action: fails(unix.EOPNOTSUPP), NamesWithCondtions: fastOpen()},
			{Action: fails(unix.EAFNOSUPPORT), NamesWithCondtions: otherSockets()},
		},
	}
	instructions, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("build a filter of system calls: %w", err)
	}
	raw, err := bpf.Assemble(append(onlyNative(native), instructions...))
	if err != nil {
		return nil, fmt.Errorf("assemble a filter of system calls: %w", err)
	}
	return encodeFilter(raw), nil
}

// fails returns the action that makes a call fail with an error.
func fails(errno unix.Errno) seccomp.Action { return seccomp.ActionErrno | seccomp.Action(errno) } //nolint:gosec // small

// known leaves out the calls that this architecture does not have.
func known(native *arch.Info, names []string) (found []string) {
	for _, name := range names {
		if _, is := native.SyscallNames[name]; is {
			found = append(found, name)
		}
	}
	return found
}

// onlyNative returns instructions that deny the calls of another architecture, such as those of 32-bit programs. Their
// numbers have other meanings, and the library's filter lets all of them pass.
func onlyNative(native *arch.Info) []bpf.Instruction {
	const architecture = 4 // offset in the kernel's struct seccomp_data
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(native.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(fails(unix.EPERM))},
	}
}

// encodeFilter returns the instructions as the kernel's structs sock_filter.
func encodeFilter(raw []bpf.RawInstruction) []byte {
	encoded := make([]byte, 0, 8*len(raw))
	for _, each := range raw {
		encoded = binary.NativeEndian.AppendUint16(encoded, each.Op)
		encoded = append(encoded, each.Jt, each.Jf)
		encoded = binary.NativeEndian.AppendUint32(encoded, each.K)
	}
	return encoded
}
